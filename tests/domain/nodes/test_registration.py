"""Keeping Slurm's nodes in step with Kubernetes': what is done at one look, and where repeated looks lead."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain import names
from bridge.domain.ids import KubeNode, SlurmNode
from bridge.domain.model import demand, nodes
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec, Taint
from bridge.domain.nodes import registration
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Drain,
    NodeAction,
    RemoveCondition,
    RemoveTaint,
    Rename,
    RenewPartitions,
    SetAddress,
    SetCondition,
    SetFeatures,
    SetTaint,
    SetTopology,
    SetWeight,
    Uncordon,
    Undrain,
    Withdraw,
)
from bridge.domain.nodes.decision import Node, NodeDecision, NodeRefusal, NodeSettings
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.spec import Publishing
from tests.make import lives
from tests.make import placing as build
from tests.make.placing import MARK

PUBLISHING = Publishing(
    cluster=build.CLUSTER,
    node_features=("topology.kubernetes.io/*", "disk"),
    gpu_resources={"nvidia.com/gpu": "gpu:a100"},
)
SETTINGS = NodeSettings(publishing=PUBLISHING)
NO_DAEMONS = demand.total([])
TAINT = Taint(key=names.MANAGED_NODE_TAINT, value=names.SCHEDULER_NAME, effect="NoSchedule")
TAINTED: dict[str, Any] = {"taints": (TAINT,)}
NAME = SlurmNode("k1")
PARKED = SlurmNodeSpec(
    name=NAME, address="", cpus=8, memory_mib=1, features=(MARK, names.PARKED_FEATURE)
)
BUSY: dict[str, Any] = {"alloc_cpus": 2, "states": frozenset({"MIXED", "EXTERNAL"})}


def look(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    daemons: Demand = NO_DAEMONS,
    settings: NodeSettings = SETTINGS,
    **more: Any,
) -> NodeDecision:
    return registration.decide(
        Node(kube_node=kube_node, slurm_node=slurm_node, daemons=daemons, **more), settings
    )


def decided(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    daemons: Demand = NO_DAEMONS,
    settings: NodeSettings = SETTINGS,
    **more: Any,
) -> list[NodeAction]:
    """Without what is said on the node about it: that has tests of its own."""
    actions = look(kube_node, slurm_node, daemons, settings, **more).actions
    return [action for action in actions if not isinstance(action, SetCondition)]


def told(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, **more: Any
) -> tuple[str, str, str]:
    """Status, reason and message that the node gets."""
    said = [a for a in look(kube_node, slurm_node, **more).actions if isinstance(a, SetCondition)]
    condition = said[0].condition
    return (condition.status, condition.reason, condition.message)


def drained(reason: str, **fields: Any) -> SlurmNodeFacts:
    states = frozenset({"IDLE", "DRAIN", "EXTERNAL"}) | fields.pop("states", frozenset())
    return build.slurm_node(states=states, reason=reason, **fields)


def leaves_parking(created: SlurmNodeSpec, then: Sequence[NodeAction]) -> bool:
    """In no NodeSet when it is created; only the drained node gets their features, and then its partitions."""
    features = build.slurm_node().features
    parked, renew, unpark = then
    assert isinstance(renew, RenewPartitions)
    assert (MARK,) == renew.spare.features
    assert NAME != renew.spare.name
    return (
        (MARK, names.PARKED_FEATURE) == created.features
        and SetFeatures(slurm_node=NAME, features=(*features, names.PARKED_FEATURE)) == parked
        and SetFeatures(slurm_node=NAME, features=features) == unpark
    )


def unlabelled(**fields: Any) -> KubeNodeFacts:
    return build.kube_node(labels={names.EXTERNAL_NODE_LABEL: "false"}, **fields)


def test_a_labelled_node_is_tainted_then_created() -> None:
    kube_node = build.kube_node(
        labels={"topology.kubernetes.io/zone": "a", "disk": "ssd", "other": "x"},
        annotations={names.PARTITIONS_ANNOTATION: "gpu, debug", names.TOPOLOGY_ANNOTATION: "t:s1"},
        gpus=2,
    )
    daemons = demand.total([build.demands("250m", "1Gi"), build.demands("1", "1.5Mi")])

    expected = SlurmNodeSpec(
        name=NAME,
        address="10.0.0.1",
        cpus=6,
        memory_mib=31 * 1024 - 2,
        features=(
            "slurm-bridge",
            "slurm-bridge.dev/cluster=c-1",
            "gpu",
            "debug",
            "disk=ssd",
            "topology.kubernetes.io/zone=a",
        ),
        gres="gpu:a100:2",
        gres_conf="count=2,name=gpu,type=a100,file=gpu-0,file=gpu-1",
        topology="t:s1",
    )

    assert [SetTaint(kube_node=KubeNode("k1"), taint=TAINT), Create(spec=expected)] == decided(
        kube_node, None, daemons
    )


def test_gpus_that_daemons_hold_are_not_handed_out() -> None:
    daemons = demand.total([build.demands(**{"nvidia.com/gpu": "1"})])

    assert "gpu:a100:3" == node_spec.spec(build.kube_node(gpus=4), daemons, PUBLISHING).gres
    assert "" == node_spec.spec(build.kube_node(gpus=1), daemons, PUBLISHING).gres


def test_a_gres_without_type_has_none_in_its_files() -> None:
    publishing = replace(PUBLISHING, gpu_resources={"nvidia.com/gpu": "gpu"})
    spec = node_spec.spec(build.kube_node(gpus=1), NO_DAEMONS, publishing)

    assert ("gpu:1", "count=1,name=gpu,file=gpu-0") == (spec.gres, spec.gres_conf)


def test_several_kinds_of_gres_are_records_of_one_node() -> None:
    """MIG slices and whole GPUs of one machine: files are counted through, so that none is named twice."""
    resources = {"nvidia.com/gpu": "gpu", "nvidia.com/mig-1g.10gb": "gpu:1g.10gb", "x/nic": "nic"}
    publishing = replace(
        PUBLISHING, gpu_resources=resources, gpu_type_labels=("nvidia.com/gpu.product",)
    )
    kube_node = build.kube_node(labels={"nvidia.com/gpu.product": "A100"})
    extended = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2, "x/nic": 1}
    kube_node = replace(kube_node, allocatable=replace(kube_node.allocatable, extended=extended))

    spec = node_spec.spec(kube_node, NO_DAEMONS, publishing)

    assert "gpu:1g.10gb:2,gpu:a100:1,nic:1" == spec.gres
    assert spec.gres_conf.split("+") == [
        "count=2,name=gpu,type=1g.10gb,file=gpu-0,file=gpu-1",
        "count=1,name=gpu,type=a100,file=gpu-2",
        "count=1,name=nic,file=nic-0",
    ]
    shown = "gpu:a100:1(S:0),gpu:1g.10gb:2(S:0),nic:1"
    assert spec.gres == node_spec.plain_gres(shown)


def test_slurms_name_may_be_another() -> None:
    kube_node = build.kube_node("k1.example.com", labels={names.SLURM_NODE_NAME_LABEL: "s1"})

    assert SlurmNode("s1") == node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING).name


@pytest.mark.parametrize(
    ("kube_node", "daemons", "reason"),
    [
        pytest.param(
            replace(build.kube_node(), internal_ip=""),
            NO_DAEMONS,
            "the kubelet has reported no InternalIP",
            id="no address",
        ),
        pytest.param(
            build.kube_node(cpus=1),
            demand.total([build.demands("1m")]),
            "nothing is left of it beside the DaemonSets' pods",
            id="no whole CPU left",
        ),
        pytest.param(
            build.kube_node(annotations={names.PARTITIONS_ANNOTATION: 'gpu,a" State=DOWN'}),
            NO_DAEMONS,
            "metadata.annotations[scheduler.slinky.slurm.net/external-node-partitions]: "
            "expected names separated by commas, found 'a\" State=DOWN'",
            id="an annotation that would not be one word of node_conf",
        ),
    ],
)
def test_a_node_that_cannot_be_described_is_not_created(
    kube_node: KubeNodeFacts, daemons: Demand, reason: str
) -> None:
    tainted = replace(kube_node, taints=(TAINT,))

    assert reason == look(tainted, None, daemons).reason == told(tainted, None, daemons=daemons)[2]
    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(tainted, None, daemons)


def test_a_node_in_step_is_left_alone() -> None:
    assert [] == decided(build.kube_node(**TAINTED), build.slurm_node())
    assert "in step" == look(build.kube_node(**TAINTED), build.slurm_node()).reason


@pytest.mark.parametrize(
    ("slurm_node", "expected"),
    [
        pytest.param(
            build.slurm_node("k1", "disk=hdd"),
            [SetFeatures(slurm_node=NAME, features=("slurm-bridge", MARK, "disk=ssd"))],
            id="labels changed",
        ),
        pytest.param(
            build.slurm_node("k1", "disk=ssd", address="10.0.0.9"),
            [SetAddress(slurm_node=NAME, address="10.0.0.1")],
            id="address changed",
        ),
        pytest.param(
            build.slurm_node("k1", "disk=ssd", features=("disk=ssd", MARK, "slurm-bridge")),
            [],
            id="order does not matter",
        ),
    ],
)
def test_what_can_be_changed_is_changed_also_while_jobs_run(
    slurm_node: SlurmNodeFacts, expected: list[NodeAction]
) -> None:
    kube_node = build.kube_node(labels={"disk": "ssd"}, **TAINTED)

    assert expected == decided(kube_node, slurm_node)
    assert expected == decided(kube_node, replace(slurm_node, **BUSY))


def test_a_node_whose_partitions_changed_is_drained_and_made_anew_when_idle() -> None:
    slurm_node = build.slurm_node("k1", "debug")
    kube_node = build.kube_node(**TAINTED)
    drain = Drain(slurm_node=NAME, reason="slurm-bridge: its partitions changed")

    assert [drain, Delete(slurm_node=NAME)] == decided(kube_node, slurm_node)
    assert [drain] == decided(kube_node, replace(slurm_node, **BUSY))


class TestMissingDevices:
    """A kubelet or a device plugin that restarts has no devices for some seconds."""

    HAD = build.slurm_node(gres="gpu:a100:4(S:0-1)")
    REASON = "slurm-bridge: devices are missing: Slurm has gpu:a100:4(S:0-1), Kubernetes has none"
    PATIENCE = SETTINGS.policy.device_patience

    @pytest.mark.parametrize("busy", [{}, BUSY])
    def test_the_node_is_drained_at_once_and_stays(self, busy: dict[str, Any]) -> None:
        bare = build.kube_node(**TAINTED)

        assert [Drain(slurm_node=NAME, reason=self.REASON)] == decided(
            bare, replace(self.HAD, **busy)
        )
        waiting = look(bare, self.waiting(), reason_age=timedelta(seconds=20))
        assert [] == [a for a in waiting.actions if not isinstance(a, SetCondition)]
        assert self.PATIENCE - timedelta(seconds=20) == waiting.again

    def test_it_serves_again_once_they_are_back(self) -> None:
        assert [Undrain(slurm_node=NAME)] == decided(
            build.kube_node(gpus=4, **TAINTED), self.waiting(), reason_age=timedelta(seconds=20)
        )

    def test_in_the_end_it_is_made_anew_without_them(self) -> None:
        bare = build.kube_node(**TAINTED)

        assert [Delete(slurm_node=NAME)] == decided(bare, self.waiting(), reason_age=self.PATIENCE)

    def test_when_their_number_changes_the_wait_begins_again(self) -> None:
        (drain,) = decided(
            build.kube_node(gpus=1, **TAINTED), self.waiting(), reason_age=self.PATIENCE
        )

        assert isinstance(drain, Drain)
        assert drain.reason.endswith("Kubernetes has gpu:a100:1")

    def test_more_devices_than_slurm_knows_are_no_reason_to_wait(self) -> None:
        drain, delete = decided(build.kube_node(gpus=8, **TAINTED), self.HAD)

        assert isinstance(drain, Drain)
        assert Delete(slurm_node=NAME) == delete

    def waiting(self) -> SlurmNodeFacts:
        return drained(self.REASON, gres=self.HAD.gres)


@pytest.mark.parametrize(
    ("slurm_node", "why"),
    [
        (build.slurm_node(cpus=9), "Slurm has 9 CPUs, Kubernetes has 8 left"),
        (build.slurm_node(memory_mib=32769), "Slurm has 32769 MiB, Kubernetes has 32768 left"),
    ],
)
def test_what_kubernetes_has_less_of_drains_no_node_that_is_in_use(
    slurm_node: SlurmNodeFacts, why: str
) -> None:
    """Fillers hold the difference; whoever creates a pod must not drain a node by it."""
    kube_node = build.kube_node(**TAINTED)
    drain = Drain(slurm_node=NAME, reason=f"slurm-bridge: {why}")

    assert [drain, Delete(slurm_node=NAME)] == decided(kube_node, slurm_node)
    assert [] == decided(kube_node, replace(slurm_node, **BUSY))


@pytest.mark.parametrize(
    "slurm_node",
    [
        build.slurm_node(cpus=7),
        build.slurm_node(memory_mib=1024),
        build.slurm_node(states=frozenset({"IDLE", "EXTERNAL", "NOT_RESPONDING"})),
    ],
)
def test_what_is_merely_not_ideal_is_made_anew_only_when_idle(slurm_node: SlurmNodeFacts) -> None:
    """A DaemonSet's pod that is being replaced looks like a node that has grown: not worth a drain."""
    kube_node = build.kube_node(**TAINTED)

    assert Delete(slurm_node=NAME) in decided(kube_node, slurm_node)
    assert [] == decided(
        kube_node, replace(slurm_node, alloc_cpus=1, states=slurm_node.states | {"MIXED"})
    )


@pytest.mark.parametrize("state", ["DRAIN", "DOWN", "FAIL"])
@pytest.mark.parametrize("cpus", [7, 9])
def test_what_others_took_out_of_service_is_not_made_anew(state: str, cpus: int) -> None:
    """It would come back in service."""
    slurm_node = build.slurm_node(
        cpus=cpus, states=frozenset({"IDLE", "EXTERNAL", state}), reason="disk is dying, ask ops"
    )

    assert [] == decided(build.kube_node(**TAINTED), slurm_node)
    assert [Drain, Delete] == [
        type(action)
        for action in decided(
            build.kube_node(**TAINTED),
            replace(slurm_node, cpus=9, states=frozenset({"IDLE", "EXTERNAL"})),
        )
    ]


def test_a_node_that_takes_no_pods_is_created_drained() -> None:
    kube_node = build.kube_node(is_unschedulable=True, **TAINTED)
    create, drain, *leave = decided(kube_node, None)

    assert isinstance(create, Create)
    assert Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes") == drain
    assert leaves_parking(create.spec, leave)


def test_gpus_bound_to_sockets_are_the_same_gpus() -> None:
    assert [] == decided(
        build.kube_node(gpus=4, **TAINTED), build.slurm_node(gres="gpu:a100:4(S:0-1)")
    )


@pytest.mark.parametrize(
    ("kube_node", "why"),
    [
        (build.kube_node(is_unschedulable=True, **TAINTED), "cordoned in Kubernetes"),
        (build.kube_node(is_ready=False, **TAINTED), "not ready in Kubernetes"),
    ],
)
def test_a_node_that_takes_no_pods_takes_no_jobs(kube_node: KubeNodeFacts, why: str) -> None:
    drain = Drain(slurm_node=NAME, reason=f"slurm-bridge: {why}")

    assert [drain] == decided(kube_node, build.slurm_node())
    assert [drain] == decided(kube_node, build.slurm_node(**BUSY))
    assert [] == decided(kube_node, drained(f"slurm-bridge: {why}"))


def test_only_our_own_drain_is_taken_back() -> None:
    kube_node = build.kube_node(**TAINTED)

    assert [Undrain(slurm_node=NAME)] == decided(
        kube_node, drained("slurm-bridge: cordoned in Kubernetes")
    )
    assert [] == decided(kube_node, drained("disk is dying, ask ops"))
    assert [] == decided(kube_node, drained(""))


@pytest.mark.parametrize(
    "kube_node",
    [
        pytest.param(unlabelled(**TAINTED), id="unlabelled"),
        pytest.param(build.kube_node(is_deleting=True, **TAINTED), id="being deleted"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_node_that_is_not_wanted_any_more_goes_when_its_jobs_have(
    kube_node: KubeNodeFacts | None,
) -> None:
    busy = decided(kube_node, build.slurm_node(**BUSY))
    idle = decided(kube_node, build.slurm_node())
    idle_and_drained = decided(kube_node, drained("slurm-bridge: no longer wanted"))

    assert [Drain] == [type(action) for action in busy]
    assert [Drain, Delete] == [type(action) for action in idle]
    assert [Delete(slurm_node=NAME)] == idle_and_drained


def test_the_taint_goes_last() -> None:
    kube_node = unlabelled(**TAINTED)

    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, None)
    assert [] == decided(unlabelled(), None)
    assert [] == decided(None, None)


@pytest.mark.parametrize(
    ("taints", "effect", "expected"),
    [
        pytest.param((), "NoSchedule", [SetTaint(kube_node=KubeNode("k1"), taint=TAINT)], id="new"),
        pytest.param((TAINT,), "NoSchedule", [], id="there"),
        pytest.param(
            (TAINT,),
            "NoExecute",
            [SetTaint(kube_node=KubeNode("k1"), taint=replace(TAINT, effect="NoExecute"))],
            id="another effect",
        ),
        pytest.param((TAINT,), "", [RemoveTaint(kube_node=KubeNode("k1"))], id="switched off"),
        pytest.param((), "", [], id="off and not there"),
    ],
)
def test_the_taint_follows_the_setting(
    taints: tuple[Taint, ...], effect: str, expected: list[NodeAction]
) -> None:
    settings = replace(SETTINGS, taint_effect=effect)

    assert expected == decided(
        build.kube_node(taints=taints), build.slurm_node(), settings=settings
    )


@pytest.mark.parametrize(
    "features",
    [
        pytest.param((), id="without our mark"),
        pytest.param(("slurm-bridge", "slurm-bridge.dev/cluster=other"), id="another cluster's"),
    ],
)
@pytest.mark.parametrize("kube_node", [build.kube_node(), unlabelled(), None])
def test_slurm_nodes_that_are_not_ours_are_never_touched(
    kube_node: KubeNodeFacts | None, features: tuple[str, ...]
) -> None:
    assert [] == decided(kube_node, build.slurm_node(features=features, cpus=99))


def test_what_slurm_can_change_is_changed_in_place() -> None:
    kube_node = build.kube_node(
        annotations={names.TOPOLOGY_ANNOTATION: "t:s2,b:b1", names.WEIGHT_ANNOTATION: "7"},
        **TAINTED,
    )
    slurm_node = build.slurm_node(topology="t:s1", weight=1, **BUSY)

    assert [
        SetTopology(slurm_node=NAME, topology="t:s2,b:b1"),
        SetWeight(slurm_node=NAME, weight=7),
    ] == decided(kube_node, slurm_node)
    assert [] == decided(kube_node, replace(slurm_node, topology="b:b1,t:s2", weight=7))


def test_threads_of_one_core_are_given_out_together() -> None:
    kube_node = build.kube_node(cpus=7, annotations={names.THREADS_ANNOTATION: "2"}, **TAINTED)
    spec = node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING)

    assert (6, 2) == (spec.cpus, spec.threads_per_core)
    assert [Drain, Delete] == [
        type(action) for action in decided(kube_node, build.slurm_node(cpus=6))
    ]


@pytest.mark.parametrize(
    ("labels", "resource", "gres"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-80GB"}, "gpu", "gpu:nvidia-a100-80gb:2"),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-80GB"}, "gpu:a100", "gpu:a100:2"),
        ({}, "gpu", "gpu:2"),
    ],
)
def test_the_type_of_gpus_comes_from_the_nodes_labels(
    labels: dict[str, str], resource: str, gres: str
) -> None:
    publishing = replace(
        PUBLISHING,
        gpu_resources={"nvidia.com/gpu": resource},
        gpu_type_labels=("nvidia.com/gpu.product",),
    )

    found = node_spec.spec(build.kube_node(gpus=2, labels=labels), NO_DAEMONS, publishing)
    assert gres == found.gres


@pytest.mark.parametrize("weight", ["", "-1", "many", "4294967295", "1 State=DOWN"])
def test_an_annotation_that_is_no_number_is_said_on_the_node(weight: str) -> None:
    kube_node = build.kube_node(annotations={names.WEIGHT_ANNOTATION: weight})
    status, reason, message = told(kube_node, None)

    assert ("False", "InvalidAnnotation") == (status, reason)
    assert message == (
        f"metadata.annotations[slurm-bridge.dev/weight]: expected a whole number from 0 to 4294967294, "
        f"found {weight!r}"
    )
    assert [] == decided(kube_node, None)


def test_a_refused_node_is_not_created_again_as_it_is() -> None:
    kube_node = build.kube_node(**TAINTED)
    wanted = node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING)
    refusal = NodeRefusal(spec=wanted, words="no such switch")

    assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, None, refusal=refusal)
    assert ("False", "Refused", "Slurm refuses the node: no such switch") == told(
        kube_node, None, refusal=refusal
    )
    changed = replace(refusal, spec=replace(wanted, cpus=1))
    assert [Create(spec=wanted)] == decided(kube_node, None, refusal=changed)


def test_a_refused_change_leaves_the_node_in_service() -> None:
    kube_node = build.kube_node(annotations={names.TOPOLOGY_ANNOTATION: "t:nope"}, **TAINTED)
    refusal = NodeRefusal(
        spec=node_spec.spec(kube_node, NO_DAEMONS, PUBLISHING), words="no such switch"
    )

    assert [] == decided(kube_node, build.slurm_node(), refusal=refusal)
    assert ("True", "ChangeRefused", "Slurm refuses a change of the node: no such switch") == told(
        kube_node, build.slurm_node(), refusal=refusal
    )


def test_a_partition_that_does_not_exist_is_said_on_the_node() -> None:
    kube_node = build.kube_node(annotations={names.PARTITIONS_ANNOTATION: "gpu,typo"}, **TAINTED)
    slurm_node = build.slurm_node("k1", "gpu", "typo")
    text = "Slurm has no partition {} that takes nodes with a feature of that name"

    assert ("True", "PartitionMissing", text.format("typo")) == told(
        kube_node, replace(slurm_node, partitions=("gpu",))
    )
    assert ("False", "NoPartition", text.format("gpu, typo")) == told(kube_node, slurm_node)
    status, reason, _ = told(kube_node, replace(slurm_node, partitions=("typo", "gpu")))
    assert ("True", "InService") == (status, reason)


def test_the_loser_of_a_name_is_told_and_left_to_others() -> None:
    first = build.kube_node("a", labels={names.SLURM_NODE_NAME_LABEL: "s1"})
    second = build.kube_node("b", labels={names.SLURM_NODE_NAME_LABEL: "s1"}, **TAINTED)
    assert first is nodes.holder([second, first])

    said, *rest = registration.yield_to(second, first).actions
    assert isinstance(said, SetCondition)
    assert nodes.NAME_TAKEN == said.condition.reason
    assert "node a already has the Slurm name s1" in said.condition.message
    assert [RemoveTaint(kube_node=KubeNode("b"))] == rest


def test_who_has_a_name_keeps_it() -> None:
    """Whoever came first, also against one whose name comes first; and it goes with the label."""
    label = {names.SLURM_NODE_NAME_LABEL: "s1"}
    in_service = node_state.condition(build.slurm_node())
    taken = node_state.problem(nodes.NAME_TAKEN, "")
    old = build.kube_node("b", labels=label, conditions=(in_service,))
    new = build.kube_node("a", labels=label, conditions=(taken,))

    assert old is nodes.holder([new, old])
    assert new is nodes.holder([new, unlabelled_as(old)])
    assert nodes.holder([]) is None


def unlabelled_as(kube_node: KubeNodeFacts) -> KubeNodeFacts:
    return replace(kube_node, labels={**kube_node.labels, names.EXTERNAL_NODE_LABEL: "false"})


class TestJobsThatNameANodeThatLeaves:
    """Slurm refuses every update of a job that names a node which is gone."""

    def test_waiting_ones_forget_it_before_it_goes(self) -> None:
        job = replace(build_job(), required_nodes=(NAME, SlurmNode("k2")), excluded_nodes=(NAME,))

        assert [
            Rename(
                job_id=job.id,
                sluid=job.sluid,
                required_nodes=(SlurmNode("k2"),),
                excluded_nodes=(),
            )
        ] == decided(unlabelled(), drained("slurm-bridge: no longer wanted"), named_by=(job,))

    def test_nothing_goes_before_they_are_known(self) -> None:
        """One that was submitted a moment ago is in no reading yet."""
        decision = look(unlabelled(), build.slurm_node(), named_by=None)

        assert [Drain] == [type(action) for action in decision.actions]
        assert registration.SOON == decision.again

    def test_one_that_has_no_other_is_submitted_again(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))

        assert [Withdraw(job_id=job.id, sluid=job.sluid)] == decided(
            None, drained("slurm-bridge: gone from Kubernetes"), named_by=(job,)
        )

    def test_the_record_stays_while_a_running_one_excludes_it(self) -> None:
        """Its lists cannot be changed any more (2073)."""
        job = replace(build_job(), phase=JobPhase.RUNNING, excluded_nodes=(NAME,))
        decision = look(unlabelled(), drained("slurm-bridge: no longer wanted"), named_by=(job,))

        assert ((), registration.LATER) == (decision.actions, decision.again)

    def test_they_keep_a_node_that_comes_back_at_once(self) -> None:
        job = replace(build_job(), required_nodes=(NAME,))
        assert Delete(slurm_node=NAME) in decided(
            build.kube_node(**TAINTED), build.slurm_node(cpus=9), named_by=(job,)
        )


def build_job() -> SlurmJob:
    return lives.waiting()


class TestHybrid:
    """A slurmd's record: we only mark it, and drains pass both ways."""

    KUBE = replace(
        build.kube_node(labels={names.HYBRID_NODE_LABEL: "true", "disk": "ssd"}), taints=(TAINT,)
    )

    @staticmethod
    def slurmds(*features: str, **fields: Any) -> SlurmNodeFacts:
        states = frozenset({"IDLE"}) | fields.pop("states", frozenset())
        return build.slurm_node(features=features, states=states, cpus=64, **fields)

    def test_it_is_marked_beside_its_own_features(self) -> None:
        (action,) = decided(self.KUBE, self.slurmds("fast", "disk=hdd"))

        assert (
            SetFeatures(slurm_node=NAME, features=("fast", "slurm-bridge", MARK, "disk=ssd"))
            == action
        )
        assert [] == decided(self.KUBE, self.slurmds("fast", "slurm-bridge", MARK, "disk=ssd"))

    def test_it_is_never_created_resized_deleted_or_declared_down(self) -> None:
        marked = self.slurmds("slurm-bridge", MARK, "disk=ssd")
        dead = replace(self.KUBE, is_ready=False)

        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(self.KUBE, None)
        assert ("False", "NotRegistered") == told(self.KUBE, None)[:2]
        assert [Drain(slurm_node=NAME, reason="slurm-bridge: not ready in Kubernetes")] == decided(
            dead, marked, is_given_up=True
        )

    def test_without_the_label_it_is_as_it_was(self) -> None:
        kube_node = replace(self.KUBE, labels={})
        marked = self.slurmds(
            "fast", "slurm-bridge", MARK, "disk=ssd", states=frozenset({"DRAIN"}), reason="ops"
        )

        assert [
            SetFeatures(slurm_node=NAME, features=("fast",)),
            RemoveTaint(kube_node=KubeNode("k1")),
        ] == decided(kube_node, marked)

    def test_another_clusters_is_left_alone(self) -> None:
        theirs = self.slurmds("slurm-bridge", "slurm-bridge.dev/cluster=other")

        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(self.KUBE, theirs)
        assert ("False", nodes.NAME_TAKEN) == told(self.KUBE, theirs)[:2]

    def test_an_external_record_of_ours_makes_room(self) -> None:
        assert Delete(slurm_node=NAME) in decided(self.KUBE, build.slurm_node())

    def test_a_slurmds_record_is_not_taken_for_an_external_one(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert ("False", nodes.NAME_TAKEN) == told(kube_node, self.slurmds("fast"))[:2]
        assert [RemoveTaint(kube_node=KubeNode("k1"))] == decided(kube_node, self.slurmds("fast"))


def test_nothing_of_ours_is_left_on_a_node_that_is_not_wanted() -> None:
    kube_node = unlabelled(
        annotations={names.CORDON_ANNOTATION: "ops"},
        is_unschedulable=True,
        conditions=(node_state.problem("Drained", ""),),
        **TAINTED,
    )

    assert [RemoveTaint, Uncordon, RemoveCondition] == [
        type(action) for action in decided(kube_node, None)
    ]


KUBE_NODES = st.none() | st.builds(
    lambda wanted, cpus, ready, cordoned, zone, tainted: build.kube_node(
        labels={names.EXTERNAL_NODE_LABEL: wanted, "disk": zone},
        cpus=cpus,
        is_ready=ready,
        is_unschedulable=cordoned,
        taints=(TAINT,) if tainted else (),
    ),
    st.sampled_from(["true", "false"]),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["ssd", "hdd"]),
    st.booleans(),
)
SLURM_NODES = st.none() | st.builds(
    lambda cpus, features, flags, reason: build.slurm_node(
        cpus=cpus,
        features=features,
        states=frozenset({"IDLE", "EXTERNAL", *flags}),
        reason=reason if "DRAIN" in flags else "",
    ),
    st.integers(1, 3),
    st.sampled_from(
        [
            ("slurm-bridge", MARK),
            ("slurm-bridge", MARK, "disk=ssd"),
            (MARK, names.PARKED_FEATURE),
            ("slurm-bridge", MARK, names.PARKED_FEATURE),
            ("theirs",),
        ]
    ),
    st.sets(st.sampled_from(["DRAIN", "NOT_RESPONDING"])),
    st.sampled_from(["slurm-bridge: cordoned in Kubernetes", "ask ops"]),
)


@given(KUBE_NODES, SLURM_NODES)
def test_repeated_looks_at_an_idle_node_come_to_rest(
    kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None
) -> None:
    """Carry out every decision: soon nothing is left to do, and Slurm has what it should have."""
    for _ in range(5):
        for action in decided(kube_node, slurm_node):
            kube_node, slurm_node = _carried_out(action, kube_node, slurm_node)

    assert [] == decided(kube_node, slurm_node)
    is_wanted = nodes.is_wanted(kube_node)
    is_theirs = slurm_node is not None and MARK not in slurm_node.features
    if kube_node and not is_theirs:
        can_be_there = is_wanted and kube_node.allocatable.milli_cpu > 0
        drained_by_others = slurm_node is not None and slurm_node.reason == "ask ops"
        assert can_be_there == (slurm_node is not None) or drained_by_others
    if kube_node and slurm_node and is_wanted and not is_theirs:
        assert TAINT in kube_node.taints
        takes_pods = kube_node.is_ready and not kube_node.is_unschedulable
        takes_jobs = "DRAIN" not in slurm_node.states
        assert takes_pods or not takes_jobs
        if takes_jobs:
            assert slurm_node.cpus * 1000 == kube_node.allocatable.milli_cpu


def _carried_out(
    action: NodeAction, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None
) -> tuple[KubeNodeFacts | None, SlurmNodeFacts | None]:
    match action:
        case SetTaint(taint=taint):
            assert kube_node
            return replace(kube_node, taints=(taint,)), slurm_node
        case RemoveTaint():
            assert kube_node
            return replace(kube_node, taints=()), slurm_node
        case RenewPartitions():
            return kube_node, slurm_node
        case Create(spec=spec):
            return kube_node, SlurmNodeFacts(
                name=spec.name,
                states=frozenset({"IDLE", "EXTERNAL"}),
                cpus=spec.cpus,
                memory_mib=spec.memory_mib,
                features=spec.features,
                gres=spec.gres,
                address=spec.address,
            )
        case Delete() | Drain() | Undrain() | SetFeatures() | SetAddress():
            assert slurm_node
            assert MARK in slurm_node.features, "touched a stranger's node"
            return kube_node, _changed(action, slurm_node)
        case _:
            raise AssertionError(f"not expected here: {action}")


def _changed(
    action: Delete | Drain | Undrain | SetFeatures | SetAddress, slurm_node: SlurmNodeFacts
) -> SlurmNodeFacts | None:
    match action:
        case Delete():
            return None
        case Drain(reason=reason):
            assert not node_state.is_by_others(slurm_node), "wrote over a stranger's drain"
            return replace(slurm_node, states=slurm_node.states | {"DRAIN"}, reason=reason)
        case Undrain():
            assert slurm_node.reason.startswith("slurm-bridge: "), "took a stranger's drain back"
            return replace(slurm_node, states=slurm_node.states - {"DRAIN"}, reason="")
        case SetFeatures(features=features):
            return replace(slurm_node, features=features)
        case SetAddress(address=address):
            return replace(slurm_node, address=address)


class TestPodsWithoutPlaceholders:
    """Slurm has lost jobs whose pods run on: nobody else may start where they are."""

    LOST = "slurm-bridge: pods run here whose jobs Slurm has lost"

    def test_a_node_comes_back_drained(self) -> None:
        create, drain, *leave = decided(build.kube_node(**TAINTED), None, hold=Hold.MISSING)

        assert isinstance(create, Create)
        assert Drain(slurm_node=NAME, reason=self.LOST) == drain
        assert leaves_parking(create.spec, leave)

    @pytest.mark.parametrize("hold", Hold)
    @pytest.mark.parametrize("features", [(MARK,), (names.BRIDGED_FEATURE, MARK)])
    @pytest.mark.parametrize("is_drained", [False, True])
    def test_whoever_died_on_the_way_another_one_ends_it(
        self, hold: Hold, features: tuple[str, ...], *, is_drained: bool
    ) -> None:
        slurm_node = drained(self.LOST) if is_drained else build.slurm_node()
        slurm_node = replace(slurm_node, features=(*features, names.PARKED_FEATURE))
        drain = [Drain(slurm_node=NAME, reason=self.LOST)]

        actions = decided(build.kube_node(**TAINTED), slurm_node, hold=hold)

        assert actions[:-3] == ([] if is_drained or hold is Hold.HELD else drain)
        assert leaves_parking(PARKED, actions[-3:])

    def test_whose_drain_it_is_that_keeps_a_parked_node_does_not_matter(self) -> None:
        slurm_node = drained("bad fan", features=(MARK, names.PARKED_FEATURE))

        actions = decided(build.kube_node(**TAINTED), slurm_node, hold=Hold.MISSING)

        assert [SetFeatures, RenewPartitions, SetFeatures] == [type(each) for each in actions]

    def test_a_parked_node_that_nobody_wants_goes(self) -> None:
        slurm_node = build.slurm_node(features=(MARK, names.PARKED_FEATURE))

        assert Delete(slurm_node=NAME) in decided(None, slurm_node)

    @pytest.mark.parametrize("hold", [Hold.MISSING, Hold.UNDECIDED])
    def test_a_node_is_drained_once(self, hold: Hold) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Drain(slurm_node=NAME, reason=self.LOST)] == decided(
            kube_node, build.slurm_node(), hold=hold
        )
        assert [] == decided(kube_node, drained(self.LOST), hold=hold)

    def test_nothing_is_taken_back_while_slurm_does_not_say(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [] == decided(kube_node, drained(self.LOST), hold=Hold.UNSURE)

    def test_a_cordon_counts_at_once_all_the_same(self) -> None:
        """On a busy node there is always a pod of which Slurm has not been read yet."""
        kube_node = build.kube_node(is_unschedulable=True, **TAINTED)
        drain = Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes")

        assert [drain] == decided(kube_node, build.slurm_node(), hold=Hold.UNSURE)

    @pytest.mark.parametrize("cordoned", [False, True])
    def test_they_may_start_again_even_on_a_cordoned_node(self, *, cordoned: bool) -> None:
        kube_node = build.kube_node(is_unschedulable=cordoned, **TAINTED)

        assert [Undrain(slurm_node=NAME)] == decided(
            kube_node, drained(self.LOST), hold=Hold.RESTORING
        )

    def test_an_administrators_drain_stands(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [] == decided(kube_node, drained("bad fan"), hold=Hold.RESTORING)

    def test_a_node_is_not_made_anew_under_them(self) -> None:
        smaller = build.slurm_node(cpus=1)

        assert [] == decided(build.kube_node(**TAINTED), smaller, hold=Hold.RESTORING)

    def test_it_is_looked_at_again(self) -> None:
        for hold in set(Hold) - {Hold.HELD}:
            decision = look(build.kube_node(**TAINTED), drained(self.LOST), hold=hold)
            assert decision.again is not None

    def test_afterwards_all_is_as_before(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Undrain(slurm_node=NAME)] == decided(kube_node, drained(self.LOST))
