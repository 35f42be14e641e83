"""A hybrid node that native jobs and pods have in turns: the drain, how it is shown, and that it holds in any order of events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.domain.model import hybrid
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.nodes import registration
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import Drain, SetCondition, Undrain
from bridge.domain.nodes.decision import NodeFacts, NodeSettings
from bridge.domain.nodes.state import NodeRules
from slurmruntime.model.nodes import NodeCondition, SlurmNodeFacts
from slurmruntime.values import names
from tests.make import placing as build
from tests.make.placing import MARK, NO_TAINTS
from tests.make.registration import NAME, NO_DAEMONS, PUBLISHING, TAINT, decided, look

KUBE = replace(build.kube_node(labels={names.HYBRID_NODE_LABEL: "true"}), taints=(TAINT,))
TAKEN = f"slurm-bridge: {node_state.TAKEN}"
DRAIN = Drain(slurm_node=NAME, reason=TAKEN)
UNDRAIN = Undrain(slurm_nodes=(NAME,))


def by(rule: HybridRule) -> NodeSettings:
    return NodeSettings(publishing=PUBLISHING, policy=NodeRules(hybrid=rule))


IN_TURNS = by(HybridRule.ALTERNATE)


def slurmds(*flags: str, reason: str = "", alloc_cpus: int = 0) -> SlurmNodeFacts:
    base = "ALLOCATED" if alloc_cpus else "IDLE"
    return build.slurm_node(
        features=("slurm-bridge", MARK, NO_TAINTS),
        states=frozenset({base, *flags}),
        reason=reason,
        cpus=8,
        alloc_cpus=alloc_cpus,
    )


def said(slurm_node: SlurmNodeFacts, rule: HybridRule) -> NodeCondition:
    actions = look(KUBE, slurm_node, settings=by(rule)).actions
    (condition,) = [action.condition for action in actions if isinstance(action, SetCondition)]
    return condition


def test_it_is_drained_while_pods_have_it_and_not_before() -> None:
    assert [] == decided(KUBE, slurmds(), settings=IN_TURNS)
    assert [DRAIN] == decided(KUBE, slurmds(alloc_cpus=8), settings=IN_TURNS, has_tenants=True)
    drained = slurmds("DRAIN", reason=TAKEN, alloc_cpus=8)
    assert [] == decided(KUBE, drained, settings=IN_TURNS, has_tenants=True)


def test_it_stays_drained_until_containers_and_their_job_are_gone() -> None:
    cancelled = slurmds("DRAIN", reason=TAKEN)
    between_two_members = slurmds("DRAIN", reason=TAKEN, alloc_cpus=8)

    assert [] == decided(KUBE, cancelled, settings=IN_TURNS, has_tenants=True)
    assert [] == decided(KUBE, between_two_members, settings=IN_TURNS)
    assert [] == decided(KUBE, cancelled, settings=IN_TURNS)
    assert node_state.SEEN_WITHIN == look(KUBE, cancelled, settings=IN_TURNS).again
    assert [UNDRAIN] == decided(KUBE, cancelled, settings=IN_TURNS, idle_for=node_state.SEEN_WITHIN)


@pytest.mark.parametrize("rule", [rule for rule in HybridRule if rule is not HybridRule.ALTERNATE])
def test_with_another_answer_pods_drain_nothing_and_a_drain_that_is_left_is_lifted(
    rule: HybridRule,
) -> None:
    left = slurmds("DRAIN", reason=TAKEN, alloc_cpus=8)
    assert [] == decided(KUBE, slurmds(alloc_cpus=8), settings=by(rule), has_tenants=True)
    assert [UNDRAIN] == decided(KUBE, left, settings=by(rule), has_tenants=True)


def test_external_nodes_are_not_drained_for_their_pods() -> None:
    kube_node = replace(build.kube_node(), taints=(TAINT,))
    assert [] == decided(kube_node, build.slurm_node(), settings=IN_TURNS, has_tenants=True)


def test_somebodys_drain_stays_theirs_and_a_cordon_comes_first() -> None:
    theirs = slurmds("DRAIN", reason="bad fan", alloc_cpus=8)
    cordoned = replace(KUBE, is_unschedulable=True)

    assert [] == decided(KUBE, theirs, settings=IN_TURNS, has_tenants=True)
    assert [Drain(slurm_node=NAME, reason="slurm-bridge: cordoned in Kubernetes")] == decided(
        cordoned, slurmds("DRAIN", reason=TAKEN), settings=IN_TURNS, has_tenants=True
    )


def test_the_node_says_whose_turn_it_is_and_why_it_gets_no_pods() -> None:
    turn = said(slurmds("DRAIN", reason=TAKEN, alloc_cpus=8), HybridRule.ALTERNATE)
    assert ("True", node_state.IN_SERVICE) == (turn.status, turn.reason)
    assert "native jobs wait" in turn.message

    unanswered = said(slurmds(), HybridRule.NONE)
    assert ("False", "NoPods", hybrid.UNANSWERED) == (
        unanswered.status,
        unanswered.reason,
        unanswered.message,
    )
    assert "True" == said(slurmds(), HybridRule.ACCEPT_OVERLAP).status
    assert "Drained" == said(slurmds("DRAIN", reason="bad fan"), HybridRule.NONE).reason


@dataclass
class Machine:
    """One node: what Slurm has there, the pod, and what the controllers last saw of the pod."""

    is_drained: bool = False
    has_placeholder: bool = False
    """With the whole node."""
    is_native_job_there: bool = False
    pod: str = ""
    """"", assigned, running; stopping after its end."""
    seen: str = ""
    idle_for: timedelta = timedelta()
    is_idle: bool = False
    """At the controllers' last look."""

    def slurm_node(self) -> SlurmNodeFacts:
        is_busy = self.has_placeholder or self.is_native_job_there
        drain = ("DRAIN",) if self.is_drained else ()
        reason = TAKEN if self.is_drained else ""
        return slurmds(*drain, reason=reason, alloc_cpus=8 if is_busy else 0)

    def start_placeholder(self) -> None:
        if not (self.is_drained or self.has_placeholder or self.is_native_job_there):
            self.has_placeholder = True

    def start_native_job(self) -> None:
        if not (self.is_drained or self.has_placeholder):
            self.is_native_job_there = True

    def end_native_job(self) -> None:
        self.is_native_job_there = False

    def end_placeholder(self) -> None:
        """By scancel, a time limit, preemption: at any moment."""
        self.has_placeholder = False

    def assign(self) -> None:
        if self.has_placeholder and not self.pod:
            self.pod = "assigned"

    def bind(self) -> None:
        """As `bridge.escrow.shares.last_check` allows it: first the node, then the job."""
        is_open = hybrid.why_open(self.slurm_node(), HybridRule.ALTERNATE)
        if self.pod == "assigned" and not is_open and self.has_placeholder:
            self.pod = "running"

    def end_pod(self) -> None:
        self.pod = {"running": "stopping", "stopping": "", "assigned": ""}.get(self.pod, "")

    def see(self) -> None:
        self.seen = self.pod

    def lapse(self) -> None:
        """Time enough passes for the controllers to see every pod as it was before."""
        self.seen = self.pod
        if self.is_idle:
            self.idle_for += node_state.SEEN_WITHIN

    def look(self) -> None:
        """The controllers' look: pods as they last saw them, the node as it was read for this."""
        slurm_node = self.slurm_node()
        if slurm_node.is_busy or not self.is_idle:
            self.idle_for = timedelta()
        self.is_idle = not slurm_node.is_busy
        facts = NodeFacts(
            name=NAME,
            kube_node=KUBE,
            slurm_node=slurm_node,
            is_confirmed=True,
            daemons=NO_DAEMONS,
            has_tenants=bool(self.seen),
            idle_for=self.idle_for,
        )
        for action in registration.plan(facts, IN_TURNS).actions:
            if isinstance(action, Drain | Undrain):
                self.is_drained = isinstance(action, Drain)


STEPS: tuple[Callable[[Machine], None], ...] = (
    Machine.start_placeholder,
    Machine.start_native_job,
    Machine.end_native_job,
    Machine.end_placeholder,
    Machine.assign,
    Machine.bind,
    Machine.end_pod,
    Machine.see,
    Machine.lapse,
    Machine.look,
)
UNSEEN = [
    Machine.start_placeholder,
    Machine.assign,
    Machine.see,
    Machine.look,
    Machine.end_pod,
    Machine.see,
    Machine.assign,
    Machine.bind,
    Machine.end_placeholder,
    Machine.look,
    Machine.start_native_job,
]
"""A second pod of the job gets the node, and the job ends before the controllers see that pod."""


@example(UNSEEN)
@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_containers_and_native_jobs_are_never_there_together(
    steps: list[Callable[[Machine], None]],
) -> None:
    machine = Machine()
    for step in steps:
        step(machine)
        is_container_there = machine.pod in ("running", "stopping")
        assert not (machine.is_native_job_there and is_container_there), steps


@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_when_all_is_over_the_node_takes_jobs_again(steps: list[Callable[[Machine], None]]) -> None:
    machine = Machine()
    for step in steps:
        step(machine)
    machine.end_placeholder()
    machine.end_native_job()
    machine.pod = ""
    machine.see()
    machine.look()
    machine.lapse()
    machine.look()
    assert not machine.is_drained
