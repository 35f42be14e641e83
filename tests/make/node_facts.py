"""Arbitrary facts of one node, contradictory ones included, for Hypothesis.

They agree more often than chance would have it: a node whose sides have nothing in common is only ever left alone.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from bridge.domain.model import demand
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.decision import Companion, NodeFacts, NodeRefusal, NodeSettings
from bridge.domain.nodes.hold import Hold
from slurmruntime.model import nodes
from slurmruntime.model.nodes import (
    Allocatable,
    KubeNodeFacts,
    NodeCondition,
    SlurmNodeFacts,
    Taint,
)
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, SlurmNode
from tests.make import lives
from tests.make import placing as build
from tests.make.placing import GIB, MARK, NO_TAINTS
from tests.make.registration import NAME, PUBLISHING

OURS = [
    node_state.REASON_PREFIX + text
    for text in (
        node_state.CORDONED,
        node_state.NOT_READY,
        node_state.GIVEN_UP,
        node_state.CRASHED,
        "pods run here whose jobs Slurm has lost",
        "no longer wanted",
        "devices are missing: Slurm has gpu:a100:4, Kubernetes has none",
    )
]
WORDS = st.one_of(st.sampled_from(["", "ops", "disk is dying", *OURS]), st.text(max_size=12))
FLAGS = st.sampled_from(
    [
        "IDLE", "MIXED", "ALLOCATED", "COMPLETING", "DRAIN", "DOWN", "FAIL", "EXTERNAL", "NOT_RESPONDING", "RESERVED",
        "MAINTENANCE", "PLANNED", "",
    ]
)  # fmt: skip
MARKS = (names.BRIDGED_FEATURE, MARK, NO_TAINTS)
FEATURES = st.one_of(
    st.sampled_from([MARKS, (*MARKS, "gpu"), (*MARKS, "disk=ssd"), (MARK, names.PARKED_FEATURE)]),
    st.lists(
        st.sampled_from(
            [*MARKS, "gpu", "disk=hdd", names.PARKED_FEATURE, f"{names.CLUSTER_FEATURE}=other"]
        ),
        unique=True,
    ).map(tuple),
)
GRES = st.sampled_from(
    ["", "gpu:a100:4", "gpu:a100:4(S:0-1)", "gpu:a100:2", "gpu", "nic:2", ":,:("]
)
YES_OR_NO = st.sampled_from(["true", "false", "", "maybe"])
MOMENTS = st.datetimes(
    datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)  # it gets one
)  # fmt: skip

SETTINGS = st.builds(
    NodeSettings,
    publishing=st.just(PUBLISHING),
    policy=st.builds(
        node_state.NodeRules,
        drain_conditions=st.sampled_from([frozenset[str](), frozenset({"KernelDeadlock"})]),
        cordons=st.booleans(),
    ),
    taint_effect=st.sampled_from(["NoSchedule", "NoExecute", ""]),
)

CONDITIONS = st.builds(
    NodeCondition,
    type=st.sampled_from([names.SLURM_STATE_CONDITION, "KernelDeadlock", "Ready"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from([node_state.IN_SERVICE, nodes.NAME_TAKEN, "Drained", ""]),
    message=st.sampled_from(["", "Slurm starts jobs on node k1"]),
)

TAINTS = st.builds(
    Taint,
    key=st.sampled_from([names.MANAGED_NODE_TAINT, "other", "node.kubernetes.io/not-ready"]),
    value=st.sampled_from(["", names.SCHEDULER_NAME]),
    effect=st.sampled_from(["NoSchedule", "NoExecute"]),
)

ALLOCATABLE = st.builds(
    Allocatable,
    milli_cpu=st.sampled_from([8000] * 5 + [0, 7999, 64_000]),
    memory_bytes=st.sampled_from([32 * GIB] * 5 + [0, 512 * GIB]),
    extended=st.dictionaries(
        st.sampled_from(["nvidia.com/gpu", "x/nic"]), st.sampled_from([0, 1, 2, 4, 4, 4, 4, 10**9])
    ),
)


def kube_nodes(name: str = "k1", wanted: str | None = None) -> st.SearchStrategy[KubeNodeFacts]:
    """Kubernetes' side; wanted in Slurm by that label, or by any."""
    labels = st.fixed_dictionaries(
        {names.EXTERNAL_NODE_LABEL: st.just("true") if wanted else YES_OR_NO},
        optional={
            names.HYBRID_NODE_LABEL: YES_OR_NO,
            "disk": st.sampled_from(["ssd", "hdd"]),
            names.SLURM_NODE_NAME_LABEL: st.just("k1"),
        },
    )
    annotations: dict[Any, st.SearchStrategy[str]] = {
        names.PARTITIONS_ANNOTATION: st.sampled_from(["", "gpu", "gpu, debug", 'a" State=DOWN']),
        names.TOPOLOGY_ANNOTATION: st.sampled_from(["", "t:s1", "t:s1,t:s2", "a b"]),
        names.WEIGHT_ANNOTATION: st.sampled_from(["1", "9", "-1", "many", ""]),
        names.THREADS_ANNOTATION: st.sampled_from(["1", "2", "0", "x"]),
        names.CORDON_ANNOTATION: st.just("ops"),
    }
    return st.builds(
        KubeNodeFacts,
        name=st.just(KubeNode(name)),
        uid=st.just(f"uid-{name}"),
        labels=labels,
        annotations=st.one_of(
            st.just({}),
            st.just({names.PARTITIONS_ANNOTATION: "gpu"}),
            st.fixed_dictionaries({}, optional=annotations),
        ),
        taints=st.lists(TAINTS, max_size=2).map(tuple),
        is_unschedulable=st.booleans(),
        is_ready=st.booleans(),
        is_deleting=st.sampled_from([False, False, False, True]),
        conditions=st.lists(CONDITIONS, max_size=2).map(tuple),
        allocatable=ALLOCATABLE,
        internal_ip=st.sampled_from(["10.0.0.1"] * 6 + ["", "k1.example", "::1"]),
    )


def slurm_nodes(name: SlurmNode = NAME) -> st.SearchStrategy[SlurmNodeFacts]:
    """Slurm's side."""
    states = st.one_of(
        st.sampled_from(
            [
                frozenset({"IDLE", "EXTERNAL"}),
                frozenset({"MIXED", "EXTERNAL"}),
                frozenset({"IDLE", "EXTERNAL", "DRAIN"}),
                frozenset({"IDLE"}),
            ]
        ),
        st.frozensets(FLAGS, max_size=5),
    )
    return st.builds(
        SlurmNodeFacts,
        name=st.just(name),
        states=states,
        cpus=st.sampled_from([8, 8, 0, 7, 9, 64]),
        memory_mib=st.sampled_from([32 * 1024, 32 * 1024, 0, 1, 10**9]),
        features=FEATURES,
        gres=GRES,
        address=st.sampled_from(["10.0.0.1", "10.0.0.1", "10.9.9.9", ""]),
        alloc_cpus=st.sampled_from([0, 0, 2]),
        reason=WORDS,
        reason_by=st.sampled_from(["", "root"]),
        reason_at=st.one_of(st.none(), MOMENTS),
        reservation=st.sampled_from(["", "exam"]),
        partitions=st.sampled_from([(), ("gpu",), ("gpu", "debug")]),
        topology=st.sampled_from(["", "t:s1", "t:s2,t:s1"]),
        weight=st.sampled_from([1, 1, 9]),
        threads_per_core=st.sampled_from([1, 1, 2]),
    )


def jobs() -> st.SearchStrategy[SlurmJob]:
    """Placeholders that name the node, or do not after all."""
    lists = st.lists(st.sampled_from([NAME, SlurmNode("k2")]), max_size=3).map(tuple)

    def named(number: int, phase: JobPhase, required: Any, excluded: Any) -> SlurmJob:
        return build_job(JobId(number), phase, required, excluded)

    return st.builds(named, st.integers(1, 9), st.sampled_from(JobPhase), lists, lists)


def build_job(
    job_id: JobId, phase: JobPhase, required: tuple[SlurmNode, ...], excluded: tuple[SlurmNode, ...]
) -> SlurmJob:
    """A placeholder with these lists."""
    return replace(
        lives.waiting(), id=job_id, phase=phase, required_nodes=required, excluded_nodes=excluded
    )


@st.composite
def node_facts(draw: st.DrawFn) -> NodeFacts:
    """Everything that may be known of one node at once."""
    kube_node = draw(st.one_of(st.none(), kube_nodes(), kube_nodes(wanted="yes")))
    slurm_node = draw(st.one_of(st.none(), slurm_nodes(), slurm_nodes()))
    daemons = draw(
        st.sampled_from(
            [
                demand.total([]),
                demand.total([build.demands("1", "1Gi")]),
                demand.total([build.demands(**{"nvidia.com/gpu": "1"})]),
                demand.total([build.demands("900", "900Gi")]),
            ]
        )
    )
    refusal = None
    if kube_node is not None and draw(st.booleans()):
        is_faulty = bool(node_spec.faults(kube_node, PUBLISHING))
        described = kube_node if not is_faulty else build.kube_node()
        refused = node_spec.spec(described, daemons, PUBLISHING)
        refusal = NodeRefusal(spec=refused, words="no such switch")
    companions = st.lists(
        st.builds(
            Companion,
            name=st.just(SlurmNode("k2")),
            slurm_node=st.one_of(st.none(), slurm_nodes(SlurmNode("k2"))),
            hold=st.sampled_from(Hold),
        ),
        max_size=2,
    ).map(tuple)
    return NodeFacts(
        name=NAME,
        kube_node=kube_node,
        slurm_node=slurm_node,
        is_confirmed=draw(st.booleans()),
        rivals=draw(st.lists(kube_nodes("k9"), max_size=1).map(tuple)),
        daemons=daemons,
        is_given_up=draw(st.booleans()),
        is_crashed=draw(st.booleans()),
        named_by=draw(st.one_of(st.just(()), st.none(), st.lists(jobs(), max_size=3).map(tuple))),
        hold=draw(st.sampled_from([Hold.HELD, Hold.HELD, *Hold])),
        leader=draw(st.sampled_from([None, None, SlurmNode("k0")])),
        companions=draw(companions),
        refusal=refusal,
        reason_age=draw(
            st.one_of(
                st.none(),
                st.timedeltas(timedelta(days=-30_000), timedelta(days=30_000)),
                st.sampled_from([timedelta(seconds=20), timedelta(minutes=5)]),
            )
        ),
    )
