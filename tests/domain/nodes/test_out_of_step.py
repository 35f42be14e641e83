"""What happens to a node whose record in Slurm no longer says what Kubernetes has."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Down,
    Drain,
    NodeAction,
    RemoveTaint,
    RenewPartitions,
    Respond,
    SetAddress,
    SetCondition,
    SetFeatures,
    SetTaint,
    SetTopology,
    SetWeight,
    Undrain,
)
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names
from tests.make import placing as build
from tests.make.placing import MARK, NO_TAINTS
from tests.make.registration import BUSY, NAME, SETTINGS, TAINT, TAINTED, decided, drained, look


@pytest.mark.parametrize(
    ("slurm_node", "expected"),
    [
        pytest.param(
            build.slurm_node("k1", "disk=hdd"),
            [SetFeatures(slurm_node=NAME, features=("slurm-bridge", MARK, NO_TAINTS, "disk=ssd"))],
            id="labels changed",
        ),
        pytest.param(
            build.slurm_node("k1", "disk=ssd", address="10.0.0.9"),
            [SetAddress(slurm_node=NAME, address="10.0.0.1")],
            id="address changed",
        ),
        pytest.param(
            build.slurm_node(
                "k1", "disk=ssd", features=("disk=ssd", MARK, NO_TAINTS, "slurm-bridge")
            ),
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
        assert [Undrain(slurm_nodes=(NAME,))] == decided(
            build.kube_node(gpus=4, **TAINTED), self.waiting(), reason_age=timedelta(seconds=20)
        )

    def test_in_the_end_it_is_made_anew_without_them(self) -> None:
        bare = build.kube_node(**TAINTED)

        assert [Delete(slurm_node=NAME)] == decided(bare, self.waiting(), reason_age=self.PATIENCE)

    def test_a_node_that_crashed_is_declared_so_before_its_devices_are_waited_for(self) -> None:
        (down,) = decided(build.kube_node(**TAINTED), self.HAD, is_crashed=True)

        assert isinstance(down, Down)

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
    ],
)
def test_what_is_merely_not_ideal_is_made_anew_only_when_idle(slurm_node: SlurmNodeFacts) -> None:
    """A DaemonSet's pod that is being replaced looks like a node that has grown: not worth a drain."""
    kube_node = build.kube_node(**TAINTED)

    assert Delete(slurm_node=NAME) in decided(kube_node, slurm_node)
    assert [] == decided(
        kube_node, replace(slurm_node, alloc_cpus=1, states=slurm_node.states | {"MIXED"})
    )


def test_where_slurm_looked_for_a_slurmd_it_is_answered_while_jobs_run() -> None:
    """Else whoever signals an own job closes the node; without jobs it is made anew, as nothing is lost by that."""
    kube_node = build.kube_node(**TAINTED)
    idle = build.slurm_node(states=frozenset({"IDLE", "EXTERNAL", "NOT_RESPONDING"}))
    busy = replace(idle, alloc_cpus=1, states=idle.states - {"IDLE"} | {"MIXED"})
    answer = [
        Respond(slurm_node=NAME, record=busy),
        SetAddress(slurm_node=NAME, address="10.0.0.1"),
    ]

    assert Delete(slurm_node=NAME) in decided(kube_node, idle)
    assert answer == decided(kube_node, busy)
    assert Respond not in map(type, decided(replace(kube_node, is_ready=False), busy))
    down = replace(busy, states=busy.states | {"DOWN"})
    assert Respond not in map(type, decided(kube_node, down)), "it might come back by that"


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
            ("slurm-bridge", MARK, NO_TAINTS, "disk=ssd"),
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
