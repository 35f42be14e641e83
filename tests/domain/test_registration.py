"""Keeping Slurm's nodes in step with Kubernetes': what is done at one look, and where repeated looks lead."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain import demand, names, registration
from bridge.domain.demand import Demand
from bridge.domain.ids import KubeNode, SlurmNode
from bridge.domain.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec, Taint
from bridge.domain.registration import (
    Create,
    Delete,
    Drain,
    NodeAction,
    RemoveTaint,
    SetAddress,
    SetFeatures,
    SetTaint,
    Settings,
    Undrain,
)
from bridge.domain.restore import Hold
from tests.domain import builders as build
from tests.domain.builders import MARK

SETTINGS = Settings(
    cluster=build.CLUSTER,
    node_features=("topology.kubernetes.io/*", "disk"),
    gpu_resources={"nvidia.com/gpu": "gpu:a100"},
)
NO_DAEMONS = demand.total([])
TAINT = Taint(key=names.MANAGED_NODE_TAINT, value=names.SCHEDULER_NAME, effect="NoSchedule")
TAINTED: dict[str, Any] = {"taints": (TAINT,)}
NAME = SlurmNode("k1")
BUSY: dict[str, Any] = {"alloc_cpus": 2, "states": frozenset({"MIXED", "EXTERNAL"})}


def decided(
    kube_node: KubeNodeFacts | None,
    slurm_node: SlurmNodeFacts | None,
    daemons: Demand = NO_DAEMONS,
    settings: Settings = SETTINGS,
    hold: Hold = Hold.HELD,
) -> list[NodeAction]:
    return list(registration.decide(kube_node, daemons, slurm_node, settings, hold=hold).actions)


def drained(reason: str, **fields: Any) -> SlurmNodeFacts:
    states = frozenset({"IDLE", "DRAIN", "EXTERNAL"}) | fields.pop("states", frozenset())
    return build.slurm_node(states=states, reason=reason, **fields)


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

    assert "gpu:a100:3" == registration.spec(build.kube_node(gpus=4), daemons, SETTINGS).gres
    assert "" == registration.spec(build.kube_node(gpus=1), daemons, SETTINGS).gres


def test_a_gres_without_type_has_none_in_its_files() -> None:
    settings = replace(SETTINGS, gpu_resources={"nvidia.com/gpu": "gpu"})
    spec = registration.spec(build.kube_node(gpus=1), NO_DAEMONS, settings)

    assert ("gpu:1", "count=1,name=gpu,file=gpu-0") == (spec.gres, spec.gres_conf)


def test_slurms_name_may_be_another() -> None:
    kube_node = build.kube_node("k1.example.com", labels={names.SLURM_NODE_NAME_LABEL: "s1"})

    assert SlurmNode("s1") == registration.spec(kube_node, NO_DAEMONS, SETTINGS).name


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
            "expected names with commas between, found 'a\" State=DOWN'",
            id="an annotation that would not be one word of node_conf",
        ),
    ],
)
def test_a_node_that_cannot_be_described_is_not_created(
    kube_node: KubeNodeFacts, daemons: Demand, reason: str
) -> None:
    decision = registration.decide(kube_node, daemons, None, SETTINGS)

    assert reason == decision.reason
    assert not any(isinstance(action, Create) for action in decision.actions)


def test_a_node_in_step_is_left_alone() -> None:
    decision = registration.decide(
        build.kube_node(**TAINTED), NO_DAEMONS, build.slurm_node(), SETTINGS
    )

    assert ((), "in step") == (decision.actions, decision.reason)


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


@pytest.mark.parametrize(
    ("slurm_node", "why"),
    [
        (build.slurm_node(cpus=9), "Slurm has 9 CPUs, Kubernetes has 8 left"),
        (build.slurm_node(memory_mib=32769), "Slurm has 32769 MiB, Kubernetes has 32768 left"),
        (build.slurm_node(gres="gpu:a100:4"), "Slurm has GRES 'gpu:a100:4', Kubernetes has ''"),
        (build.slurm_node("k1", "debug"), "its partitions changed"),
    ],
)
def test_what_slurm_hands_out_too_much_of_is_drained_and_made_anew_when_idle(
    slurm_node: SlurmNodeFacts, why: str
) -> None:
    kube_node = build.kube_node(**TAINTED)
    drain = Drain(slurm_node=NAME, reason=f"slurm-bridge: {why}")

    assert [drain, Delete(slurm_node=NAME)] == decided(kube_node, slurm_node)
    assert [drain] == decided(kube_node, replace(slurm_node, **BUSY))


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
            build.kube_node(**TAINTED), replace(slurm_node, cpus=9, states=frozenset({"IDLE"}))
        )
    ]


def test_a_node_that_takes_no_pods_is_created_drained() -> None:
    kube_node = build.kube_node(is_unschedulable=True, **TAINTED)
    create, drain = decided(kube_node, None)

    assert isinstance(create, Create)
    assert Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes") == drain


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
    st.sampled_from([("slurm-bridge", MARK), ("slurm-bridge", MARK, "disk=ssd"), ("theirs",)]),
    st.sets(st.sampled_from(["DRAIN", "NOT_RESPONDING"])),
    st.sampled_from(["slurm-bridge: cordoned in Kubernetes", "ask ops"]),
)


@given(KUBE_NODES, SLURM_NODES)
def test_repeated_looks_at_an_idle_node_come_to_rest(
    kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None
) -> None:
    """Carry out every decision: soon nothing is left to do, and Slurm has what it should have."""
    for _ in range(4):
        for action in decided(kube_node, slurm_node):
            kube_node, slurm_node = _carried_out(action, kube_node, slurm_node)

    assert [] == decided(kube_node, slurm_node)
    is_wanted = registration.is_wanted(kube_node)
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


def _changed(
    action: Delete | Drain | Undrain | SetFeatures | SetAddress, slurm_node: SlurmNodeFacts
) -> SlurmNodeFacts | None:
    match action:
        case Delete():
            return None
        case Drain(reason=reason):
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
        create, drain = decided(build.kube_node(**TAINTED), None, hold=Hold.MISSING)

        assert isinstance(create, Create)
        assert Drain(slurm_node=NAME, reason=self.LOST) == drain

    def test_a_node_is_drained_once(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Drain(slurm_node=NAME, reason=self.LOST)] == decided(
            kube_node, build.slurm_node(), hold=Hold.MISSING
        )
        assert [] == decided(kube_node, drained(self.LOST), hold=Hold.MISSING)

    def test_nothing_is_taken_back_while_slurm_does_not_say(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [] == decided(kube_node, drained(self.LOST), hold=Hold.UNSURE)

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
        for hold in (Hold.MISSING, Hold.RESTORING, Hold.UNSURE):
            decision = registration.decide(
                build.kube_node(**TAINTED), NO_DAEMONS, drained(self.LOST), SETTINGS, hold=hold
            )
            assert not decision.is_settled

    def test_afterwards_all_is_as_before(self) -> None:
        kube_node = build.kube_node(**TAINTED)

        assert [Undrain(slurm_node=NAME)] == decided(kube_node, drained(self.LOST))
