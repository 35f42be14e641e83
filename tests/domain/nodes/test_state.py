"""Whether a node takes work: each side's word reaches the other one, only our own is taken back, and it ends."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import Cordon, Down, Drain, NodeAction, Resume, Uncordon, Undrain
from bridge.domain.nodes.state import NodeRules
from slurmruntime.model.nodes import KubeNodeFacts, NodeCondition, SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
from tests.make import placing as build

NAME = SlurmNode("k1")
KUBE = KubeNode("k1")
POLICY = NodeRules(drain_conditions=frozenset({"KernelDeadlock"}))
CORDONS = replace(POLICY, cordons=True)
OURS = "slurm-bridge: cordoned in Kubernetes"
CORDONED = build.kube_node(is_unschedulable=True)
CORDONED_BY_US = replace(CORDONED, annotations={names.CORDON_ANNOTATION: "ops"})
NOT_READY = build.kube_node(is_ready=False)


def slurm(*flags: str, reason: str = "", **fields: Any) -> SlurmNodeFacts:
    base = {"DOWN"} if "DOWN" in flags else {"IDLE"}
    return build.slurm_node(states=frozenset({"EXTERNAL", *base, *flags}), reason=reason, **fields)


def to_slurm(
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    *,
    given_up: bool = False,
    crashed: bool = False,
) -> list[NodeAction]:
    standing = node_state.standing(
        kube_node, slurm_node, POLICY, is_given_up=given_up, is_crashed=crashed
    )
    return list(standing.to_slurm.actions)


def to_kube(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts | None, policy: NodeRules = CORDONS
) -> list[NodeAction]:
    return list(node_state.to_kube(kube_node, slurm_node, policy))


def drain(why: str) -> Drain:
    return Drain(slurm_node=NAME, reason=f"slurm-bridge: {why}")


def sick(status: str = "True", kind: str = "KernelDeadlock") -> KubeNodeFacts:
    condition = NodeCondition(type=kind, status=status, reason="AUFSUmountHung")
    return build.kube_node(conditions=(condition,))


@pytest.mark.parametrize(
    ("kube_node", "why"),
    [
        (CORDONED, "cordoned in Kubernetes"),
        (NOT_READY, "not ready in Kubernetes"),
        (sick(), "condition KernelDeadlock (AUFSUmountHung)"),
    ],
)
def test_what_keeps_pods_away_keeps_jobs_away(kube_node: KubeNodeFacts, why: str) -> None:
    assert [drain(why)] == to_slurm(kube_node, slurm())
    assert [] == to_slurm(kube_node, slurm("DRAIN", reason=f"slurm-bridge: {why}"))
    assert [Undrain(slurm_nodes=(NAME,))] == to_slurm(
        build.kube_node(), slurm("DRAIN", reason=f"slurm-bridge: {why}")
    )


@pytest.mark.parametrize("kube_node", [sick("False"), sick("Unknown"), sick(kind="Other")])
def test_other_conditions_drain_nothing(kube_node: KubeNodeFacts) -> None:
    assert [] == to_slurm(kube_node, slurm())


def test_the_reason_follows_what_is_the_matter_now() -> None:
    assert [drain("not ready in Kubernetes")] == to_slurm(NOT_READY, slurm("DRAIN", reason=OURS))


@pytest.mark.parametrize("flag", ["DRAIN", "DOWN", "FAIL"])
@pytest.mark.parametrize("reason", ["", "disk is dying", "slurm-bridge by name only"])
@pytest.mark.parametrize("kube_node", [build.kube_node(), CORDONED, NOT_READY, sick()])
@pytest.mark.parametrize("given_up", [False, True])
def test_what_a_person_said_in_slurm_is_neither_lifted_nor_written_over(
    flag: str, reason: str, kube_node: KubeNodeFacts, given_up: bool
) -> None:
    assert [] == to_slurm(kube_node, slurm(flag, reason=reason), given_up=given_up)


@pytest.mark.parametrize("flags", [("DOWN", "DRAIN"), ("DOWN",), ("FAIL",)])
def test_down_and_fail_over_a_drain_of_ours_are_theirs(flags: tuple[str, ...]) -> None:
    """Slurm leaves our reason where they gave none."""
    for kube_node in (build.kube_node(), CORDONED, NOT_READY):
        assert [] == to_slurm(kube_node, slurm(*flags, reason=OURS))


def test_a_node_is_lost_once_kubernetes_has_given_its_pods_up() -> None:
    why = "slurm-bridge: not ready in Kubernetes, its pods were given up"
    drained = slurm("DRAIN", reason="slurm-bridge: not ready in Kubernetes")

    assert [] == to_slurm(NOT_READY, drained)
    assert [Down(slurm_node=NAME, reason=why)] == to_slurm(NOT_READY, drained, given_up=True)
    down = slurm("DOWN", "DRAIN", reason=why)
    assert [] == to_slurm(NOT_READY, down, given_up=True)
    assert [] == to_slurm(NOT_READY, down)
    assert [Resume(slurm_node=NAME)] == to_slurm(build.kube_node(), down)
    assert [Resume(slurm_node=NAME), drain("cordoned in Kubernetes")] == to_slurm(CORDONED, down)


def test_pods_that_go_from_a_node_that_is_ready_are_no_loss() -> None:
    assert [] == to_slurm(build.kube_node(), slurm(), given_up=True)


def test_a_node_that_crashed_is_down_until_its_pods_are_settled_and_then_resumed() -> None:
    """Only DOWN ends a job as NODE_FAIL; DOWN again after the RESUME would end the next ones."""
    why = "slurm-bridge: crashed, and all its pods with it"
    down = slurm("DOWN", reason=why)

    assert [Down(slurm_node=NAME, reason=why)] == to_slurm(build.kube_node(), slurm(), crashed=True)
    assert [] == to_slurm(build.kube_node(), down, crashed=True)
    assert [Resume(slurm_node=NAME)] == to_slurm(build.kube_node(), down)


def test_neither_a_slurmds_node_nor_one_that_others_drained_is_declared_crashed() -> None:
    slurmds = replace(slurm(), states=frozenset({"IDLE"}))

    assert [] == to_slurm(build.kube_node(), slurmds, crashed=True)
    assert [] == to_slurm(build.kube_node(), slurm("DRAIN", reason="ops"), crashed=True)


@pytest.mark.parametrize("flag", ["DRAIN", "DOWN", "FAIL"])
@pytest.mark.parametrize("reason", ["", "disk is dying"])
def test_what_is_out_of_service_in_slurm_is_cordoned_where_that_is_wanted(
    flag: str, reason: str
) -> None:
    out = slurm(flag, reason=reason)
    (action,) = to_kube(build.kube_node(), out)

    assert Cordon(kube_node=KUBE, reason=reason or "no reason given") == action
    assert [] == to_kube(CORDONED_BY_US, out)
    assert [] == to_kube(build.kube_node(), out, POLICY)
    assert [Uncordon(kube_node=KUBE)] == to_kube(CORDONED_BY_US, slurm())


def test_only_our_own_cordon_is_lifted() -> None:
    assert [] == to_kube(CORDONED, slurm())
    assert [Uncordon(kube_node=KUBE)] == to_kube(CORDONED_BY_US, None)
    assert [Uncordon(kube_node=KUBE)] == to_kube(CORDONED_BY_US, slurm("DRAIN"), POLICY)


def test_somebody_who_lifts_our_cordon_has_his_way_until_slurm_has_it_back() -> None:
    lifted = replace(CORDONED_BY_US, is_unschedulable=False)

    assert [] == to_kube(lifted, slurm("DRAIN", reason="ops"))
    assert [Uncordon(kube_node=KUBE)] == to_kube(lifted, slurm())


def test_no_loop() -> None:
    assert [] == to_slurm(CORDONED_BY_US, slurm()), "a cordon of ours is no reason to drain"
    assert [] == to_kube(CORDONED, slurm("DRAIN", reason=OURS)), "nor a drain of ours to cordon"


SINCE = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("slurm_node", "expected"),
    [
        (slurm(), ("True", "InService", "Slurm starts jobs on node k1")),
        (
            slurm("DRAIN", reason="bad memory", reason_by="ops", reason_at=SINCE),
            ("False", "Drained", "bad memory, by ops, since 2026-05-04T12:00:00Z"),
        ),
        (slurm("DRAIN"), ("False", "Drained", "no reason given")),
        (slurm("DRAIN", reason="x", alloc_cpus=1), ("False", "Draining", "x")),
        (slurm("DOWN", "DRAIN", reason="x"), ("False", "Down", "x")),
        (slurm("FAIL", reason="x"), ("False", "Failing", "x")),
        (
            slurm("RESERVED", reservation="maint"),
            ("False", "Reserved", "only jobs of reservation maint start there"),
        ),
        (
            slurm("MAINTENANCE", "RESERVED", reservation="maint"),
            ("False", "Maintenance", "only jobs of reservation maint start there"),
        ),
        (
            slurm("NOT_RESPONDING", "DRAIN", reason="x"),
            (
                "False",
                "NotResponding",
                (
                    "a job there was signalled or suspended, and Slurm looked for a slurmd; "
                    "slurm-bridge answers for it"
                ),
            ),
        ),
    ],
)
def test_the_condition_says_what_who_and_since_when(
    slurm_node: SlurmNodeFacts, expected: tuple[str, str, str]
) -> None:
    said = node_state.condition(slurm_node)

    assert expected == (said.status, said.reason, said.message)
    assert names.SLURM_STATE_CONDITION == said.type


EVENTS = st.lists(
    st.sampled_from(
        [
            "cordon",
            "uncordon",
            "not ready",
            "ready",
            "admin drains",
            "admin drains without a reason",
            "admin resumes",
            "we look",
        ]
    ),
    max_size=12,
)


@given(EVENTS, st.booleans())
def test_whatever_people_do_their_word_stands_and_we_come_to_rest(
    events: list[str], cordons: bool
) -> None:
    """After every history: nothing of a person's is undone, and looking twice does nothing the second time."""
    world = _World(replace(POLICY, cordons=cordons))
    for event in events:
        world.happens(event)
    world.rest()

    drained = bool(world.slurm.states & {"DRAIN"})
    if world.admin_drained:
        assert drained
        assert not world.slurm.reason.startswith(node_state.REASON_PREFIX)
    else:
        assert drained == (world.admin_cordoned or not world.kube.is_ready)
        assert world.kube.is_unschedulable == world.admin_cordoned
    if world.admin_cordoned:
        assert world.kube.is_unschedulable


class _World:
    """One node; and what people last said of it on either side."""

    def __init__(self, policy: NodeRules) -> None:
        self.policy = policy
        self.kube, self.slurm = build.kube_node(), slurm()
        self.admin_cordoned = self.admin_drained = False

    def happens(self, event: str) -> None:
        is_ours = names.CORDON_ANNOTATION in self.kube.annotations
        match event:
            case "cordon":
                # What we have cordoned cannot be cordoned by a person: kubectl says so and does nothing.
                self.admin_cordoned |= not self.kube.is_unschedulable and not is_ours
                if self.admin_cordoned:
                    self.kube = replace(self.kube, is_unschedulable=True)
            case "uncordon":
                self.admin_cordoned = False
                self.kube = replace(self.kube, is_unschedulable=False)
            case "not ready" | "ready":
                self.kube = replace(self.kube, is_ready=event == "ready")
            case "admin drains" | "admin drains without a reason":
                self.admin_drained = True
                self.slurm = slurm("DRAIN", reason="ops" if event == "admin drains" else "")
            case "admin resumes":
                self.admin_drained = False
                self.slurm = slurm()
            case _:
                self.look()

    def look(self) -> bool:
        """Whether there was something to do."""
        standing = node_state.standing(
            self.kube, self.slurm, self.policy, is_given_up=False, is_crashed=False
        )
        actions = [*standing.to_slurm.actions, *standing.to_kube]
        for action in actions:
            self._carry_out(action)
        return bool(actions)

    def rest(self) -> None:
        for _ in range(3):
            self.look()
        assert not self.look()

    def _carry_out(self, action: NodeAction) -> None:
        match action:
            case Drain(reason=reason):
                assert not self.admin_drained, "wrote over a person's drain"
                self.slurm = slurm("DRAIN", reason=reason)
            case Undrain():
                assert not self.admin_drained, "lifted a person's drain"
                self.slurm = slurm()
            case Cordon(reason=reason):
                mark = {names.CORDON_ANNOTATION: reason}
                self.kube = replace(self.kube, is_unschedulable=True, annotations=mark)
            case Uncordon():
                assert not self.admin_cordoned, "lifted a person's cordon"
                self.kube = replace(self.kube, is_unschedulable=False, annotations={})
            case _:
                raise AssertionError(f"not expected here: {action}")
