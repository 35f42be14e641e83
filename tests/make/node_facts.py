"""Arbitrary facts of one node, contradictory ones included, from a source of choices.

They agree more often than chance would have it: a node whose sides have nothing in common is only ever left alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from bridge.domain.model import demand
from bridge.domain.model.hybrid import HybridRule
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

T = TypeVar("T")
OURS = [
    node_state.REASON_PREFIX + text
    for text in (
        node_state.CORDONED,
        node_state.NOT_READY,
        node_state.GIVEN_UP,
        node_state.CRASHED,
        node_state.TAKEN,
        "pods run here whose jobs Slurm has lost",
        "no longer wanted",
        "devices are missing: Slurm has gpu:a100:4, Kubernetes has none",
    )
]
OFTEN = [
    frozenset({"IDLE", "EXTERNAL"}),
    frozenset({"MIXED", "EXTERNAL"}),
    frozenset({"IDLE", "EXTERNAL", "DRAIN"}),
    frozenset({"MIXED", "EXTERNAL", "DRAIN"}),
    frozenset({"IDLE", "DOWN", "EXTERNAL"}),
    frozenset({"IDLE"}),
]
FLAGS = [
    *("IDLE", "MIXED", "ALLOCATED", "COMPLETING", "DRAIN", "DOWN", "FAIL", "EXTERNAL"),
    *("NOT_RESPONDING", "RESERVED", "MAINTENANCE", "PLANNED", ""),
]
MARKS = (names.BRIDGED_FEATURE, MARK, NO_TAINTS)
FEATURES: list[tuple[str, ...]] = [
    *(MARKS, MARKS, (*MARKS, "gpu"), (*MARKS, "disk=ssd"), (MARK, names.PARKED_FEATURE)),
    *((), ("own",), (*MARKS, "own"), (f"{names.CLUSTER_FEATURE}=other",)),
]
GRES = ["", "", "gpu:a100:4", "gpu:a100:4(S:0-1)", "gpu:a100:2", "gpu", "nic:2", ":,:("]
ANNOTATIONS = {
    names.PARTITIONS_ANNOTATION: ["", "gpu", "gpu", "gpu, debug", 'a" State=DOWN'],
    names.TOPOLOGY_ANNOTATION: ["", "t:s1", "t:s1,t:s2", "a b"],
    names.WEIGHT_ANNOTATION: ["1", "9", "-1", "many", ""],
    names.THREADS_ANNOTATION: ["1", "2", "0", "x"],
    names.CORDON_ANNOTATION: ["ops"],
}
DAEMONS = [
    demand.total([]),
    demand.total([]),
    demand.total([build.demands("1", "1Gi")]),
    demand.total([build.demands(**{"nvidia.com/gpu": "1"})]),
    demand.total([build.demands("900", "900Gi")]),
]


class Chance:
    """Whoever draws: `random.Random(seed).choice`."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self._choose = choose

    def of(self, *options: T) -> T:
        """One of these."""
        chosen: T = self._choose(options)
        return chosen

    def now_and_then(self, share: int = 4) -> bool:
        """True once in so many times."""
        return bool(self._choose(range(share)) == 0)

    def some(self, options: Sequence[T], most: int) -> tuple[T, ...]:
        """A few of them."""
        return tuple(self._choose(options) for _ in range(self._choose(range(most + 1))))


def settings(chance: Chance) -> NodeSettings:
    return NodeSettings(
        publishing=PUBLISHING,
        policy=node_state.NodeRules(
            drain_conditions=chance.of(frozenset[str](), frozenset({"KernelDeadlock"})),
            cordons=chance.of(False, True),
            hybrid=chance.of(*HybridRule, HybridRule.ALTERNATE),
        ),
        taint_effect=chance.of("NoSchedule", "NoExecute", ""),
    )


def condition(chance: Chance) -> NodeCondition:
    return NodeCondition(
        type=chance.of(names.SLURM_STATE_CONDITION, "KernelDeadlock", "Ready"),
        status=chance.of("True", "False", "Unknown"),
        reason=chance.of(node_state.IN_SERVICE, nodes.NAME_TAKEN, "Drained", ""),
        message=chance.of("", "Slurm starts jobs on node k1"),
    )


def taint(chance: Chance) -> Taint:
    return Taint(
        key=chance.of(names.MANAGED_NODE_TAINT, "other", "node.kubernetes.io/not-ready"),
        value=chance.of("", names.SCHEDULER_NAME),
        effect=chance.of("NoSchedule", "NoExecute"),
    )


def kube_node(chance: Chance, name: str = "k1") -> KubeNodeFacts:
    labels = {
        names.EXTERNAL_NODE_LABEL: chance.of("true", "true", "true", "false", "", "maybe"),
        names.HYBRID_NODE_LABEL: chance.of("false", "false", "false", "true"),
        "disk": chance.of("ssd", "hdd"),
    }
    annotations = {
        key: chance.of(*values) for key, values in ANNOTATIONS.items() if chance.now_and_then()
    }
    extended = {
        resource: chance.of(0, 1, 2, 4, 4, 4, 10**9)
        for resource in ("nvidia.com/gpu", "x/nic")
        if chance.now_and_then(2)
    }
    return KubeNodeFacts(
        name=KubeNode(name),
        uid=f"uid-{name}",
        labels=labels if chance.of(True, True, False) else {names.EXTERNAL_NODE_LABEL: "true"},
        annotations=annotations if chance.of(True, False) else {},
        taints=tuple(taint(chance) for _ in range(chance.of(0, 1, 2))),
        is_unschedulable=chance.now_and_then(),
        is_ready=not chance.now_and_then(),
        is_deleting=chance.now_and_then(8),
        conditions=tuple(condition(chance) for _ in range(chance.of(0, 1, 2))),
        allocatable=Allocatable(
            milli_cpu=chance.of(8000, 8000, 8000, 8000, 0, 7999, 64_000),
            memory_bytes=chance.of(32, 32, 32, 32, 0, 512) * GIB,
            extended=extended if chance.now_and_then(2) else {},
        ),
        internal_ip=chance.of(*["10.0.0.1"] * 8, "", "k1.example", "::1"),
    )


def slurm_node(chance: Chance, name: SlurmNode = NAME) -> SlurmNodeFacts:
    return SlurmNodeFacts(
        name=name,
        states=frozenset(chance.some(FLAGS, 4)) if chance.now_and_then() else chance.of(*OFTEN),
        cpus=chance.of(8, 8, 8, 8, 0, 7, 9, 64),
        memory_mib=chance.of(32 * 1024, 32 * 1024, 32 * 1024, 0, 1, 10**9),
        features=chance.of(*FEATURES),
        gres=chance.of(*GRES) if chance.now_and_then(2) else "",
        address=chance.of("10.0.0.1", "10.0.0.1", "10.9.9.9", ""),
        alloc_cpus=chance.of(0, 0, 0, 2),
        reason=chance.of("", "ops", "disk is dying", *OURS),
        reason_by=chance.of("", "root"),
        reservation=chance.of("", "exam"),
        partitions=chance.of((), ("gpu",), ("gpu", "debug")),
        topology=chance.of("", "", "t:s1", "t:s2,t:s1"),
        weight=chance.of(1, 1, 9),
        threads_per_core=chance.of(1, 1, 1, 2),
    )


def job(chance: Chance) -> SlurmJob:
    """A placeholder that names the node, or does not after all."""
    return replace(
        lives.waiting(),
        id=JobId(chance.of(1, 2, 3)),
        phase=chance.of(*JobPhase),
        required_nodes=chance.some([NAME, SlurmNode("k2")], 2),
        excluded_nodes=chance.some([NAME, SlurmNode("k2")], 2),
    )


def companion(chance: Chance) -> Companion:
    name = SlurmNode("k2")
    record = None if chance.now_and_then() else slurm_node(chance, name)
    return Companion(name=name, slurm_node=record, hold=chance.of(*Hold, Hold.RESTORING))


def refusal(chance: Chance, node: KubeNodeFacts, daemons: demand.Demand) -> NodeRefusal:
    is_faulty = bool(node_spec.faults(node, PUBLISHING))
    refused = node_spec.spec(build.kube_node() if is_faulty else node, daemons, PUBLISHING)
    if chance.now_and_then():
        refused = replace(refused, cpus=1)
    return NodeRefusal(spec=refused, words="no such switch")


def shared(node: KubeNodeFacts) -> KubeNodeFacts:
    """The same with a slurmd."""
    return replace(node, labels={**node.labels, names.HYBRID_NODE_LABEL: "true"}, annotations={})


def taken(record: SlurmNodeFacts) -> SlurmNodeFacts:
    """Its record while pods have it."""
    reason = node_state.REASON_PREFIX + node_state.TAKEN
    return replace(record, states=frozenset({"IDLE", "DRAIN"}), features=MARKS, reason=reason)


def facts(chance: Chance) -> NodeFacts:
    """Everything that may be known of one node at once."""
    node = None if chance.now_and_then(8) else kube_node(chance)
    record = None if chance.now_and_then() else slurm_node(chance)
    if node and record and chance.now_and_then():
        node, record = shared(node), taken(record)
    daemons = chance.of(*DAEMONS)
    refused = refusal(chance, node, daemons) if node and chance.now_and_then() else None
    return NodeFacts(
        name=NAME,
        kube_node=node,
        slurm_node=record,
        is_confirmed=chance.of(False, True),
        rivals=(kube_node(chance, "k9"),) if chance.now_and_then() else (),
        daemons=daemons,
        is_given_up=chance.now_and_then(),
        is_crashed=chance.now_and_then(),
        named_by=chance.of((), None, tuple(job(chance) for _ in range(chance.of(1, 2)))),
        hold=chance.of(*[Hold.HELD] * 5, *Hold, Hold.RESTORING),
        has_tenants=chance.of(False, True),
        idle_for=chance.of(timedelta(), timedelta(seconds=1), timedelta(seconds=2)),
        leader=chance.of(None, None, None, SlurmNode("k0")),
        companions=tuple(companion(chance) for _ in range(chance.of(0, 0, 1, 2))),
        refusal=refused,
        retry=timedelta(seconds=40) if refused else None,
        reason_age=chance.of(
            None,
            timedelta(seconds=20),
            timedelta(minutes=5),
            timedelta(days=30_000),
            timedelta(days=-30_000),
        ),
    )
