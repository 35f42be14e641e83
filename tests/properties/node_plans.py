"""What every plan for a node keeps to, whatever is known of the node, however it contradicts itself."""

import random
from collections.abc import Callable
from dataclasses import replace

from bridge.domain.model.hybrid import HybridRule
from bridge.domain.nodes import registration
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Delete,
    Down,
    Drain,
    Forget,
    NodeAction,
    RenewPartitions,
    Respond,
    Resume,
    SetAddress,
    SetFeatures,
    SetTaint,
    SetTopology,
    SetWeight,
    Undrain,
)
from bridge.domain.nodes.decision import NodeFacts, NodePlan, NodeSettings
from bridge.domain.nodes.hold import Hold
from slurmruntime.model import nodes
from slurmruntime.values import names
from tests.make import node_facts
from tests.make import placing as build
from tests.make.node_facts import Chance

ON_RECORDS = (Drain, Down, Resume, Respond, SetFeatures, SetAddress, SetTopology, SetWeight, Delete)
"""What changes the record of one node in Slurm."""
IN_SLURM = (*ON_RECORDS, Create, Undrain, RenewPartitions)

UNCLEAR = (Hold.UNSURE, Hold.MISSING, Hold.UNDECIDED)


def has(plan: NodePlan, *kinds: type[NodeAction]) -> bool:
    return any(isinstance(action, kinds) for action in plan.actions)


def there_is_one_plan(facts: NodeFacts, settings: NodeSettings) -> None:
    plan = registration.plan(facts, settings)

    assert plan == registration.plan(facts, settings)
    assert plan.reason
    assert repr(plan)


def nothing_is_done_on_facts_that_may_be_stale(facts: NodeFacts, settings: NodeSettings) -> None:
    unsure = registration.plan(replace(facts, is_confirmed=False), settings)
    sure = registration.plan(replace(facts, is_confirmed=True), settings)

    assert all(isinstance(action, registration.REPEATABLE) for action in unsure.actions)
    assert () == sure.confirm
    if unsure.confirm:
        assert ((), ()) == (unsure.actions, unsure.rivals)
        assert facts.name == unsure.confirm[-1]
    else:
        assert sure == unsure


def only_what_is_ours_idle_and_named_by_nobody_is_deleted(
    facts: NodeFacts, settings: NodeSettings
) -> None:
    record = facts.slurm_node
    if not has(registration.plan(confirmed(facts), settings), Delete):
        return

    assert record is not None
    assert build.MARK in record.features
    assert record.is_external
    assert not record.is_busy
    if nodes.is_wanted(facts.kube_node):
        is_hybrid = facts.kube_node is not None and nodes.is_hybrid(facts.kube_node)
        is_held = facts.hold is Hold.HELD and not nodes.is_parked(record)
        assert is_hybrid or (is_held and not node_state.is_by_others(record))
    else:
        assert () == facts.named_by


def a_node_is_only_drained_while_its_pods_are_unclear(
    facts: NodeFacts, settings: NodeSettings
) -> None:
    record = facts.slurm_node
    if record is None or nodes.is_parked(record) or not nodes.is_wanted(facts.kube_node):
        return
    for hold in UNCLEAR:
        plan = registration.plan(replace(confirmed(facts), hold=hold), settings)
        assert not has(plan, Undrain, Resume, Down)
        assert not has(plan, Delete) or plan.reason.startswith("its own slurmd must register")


def a_parked_node_takes_no_jobs_while_its_pods_are_unclear(
    facts: NodeFacts, settings: NodeSettings
) -> None:
    for hold in (*UNCLEAR, Hold.RESTORING):
        facts = replace(confirmed(facts), hold=hold)
        plan = registration.plan(facts, settings)
        if has(plan, RenewPartitions) and hold in UNCLEAR[1:]:
            first = next(action for action in plan.actions if isinstance(action, IN_SLURM))
            is_out = bool(facts.slurm_node and facts.slurm_node.states & node_state.OUT_OF_SERVICE)
            assert has(plan, Drain) or is_out
            assert isinstance(first, Create | Drain) or is_out


def the_word_of_others_in_slurm_stands(facts: NodeFacts, settings: NodeSettings) -> None:
    plan = registration.plan(confirmed(facts), settings)
    if facts.slurm_node is not None and node_state.is_by_others(facts.slurm_node):
        assert not has(plan, Drain, Undrain, Resume, Down)


def a_record_without_our_mark_is_never_touched(facts: NodeFacts, settings: NodeSettings) -> None:
    if facts.slurm_node is None:
        return
    features = tuple(set(facts.slurm_node.features) - {build.MARK})
    record = replace(facts.slurm_node, features=features)
    plan = registration.plan(replace(confirmed(facts), slurm_node=record), settings)

    is_hybrid = facts.kube_node is not None and nodes.is_hybrid(facts.kube_node)
    if record.is_external or not is_hybrid:
        assert not has(plan, *IN_SLURM)
    assert not has(plan, Create, Delete, Down)


def only_a_lost_external_node_is_declared_down(facts: NodeFacts, settings: NodeSettings) -> None:
    plan = registration.plan(confirmed(facts), settings)
    if has(plan, Down):
        assert facts.slurm_node is not None
        assert facts.slurm_node.is_external
        assert facts.hold is Hold.HELD
        assert facts.is_crashed or facts.is_given_up


def nothing_else_may_use_what_slurm_hands_out(facts: NodeFacts, settings: NodeSettings) -> None:
    """The taint is set before the node is created, and stays until it is gone."""
    plan = registration.plan(confirmed(facts), settings)
    kinds = [type(action) for action in plan.actions]
    if Create in kinds and settings.taint_effect and facts.kube_node is not None:
        is_tainted = any(one.key == names.MANAGED_NODE_TAINT for one in facts.kube_node.taints)
        assert is_tainted or kinds.index(SetTaint) < kinds.index(Create)


def a_refused_description_is_not_tried_again(facts: NodeFacts, settings: NodeSettings) -> None:
    plan = registration.plan(confirmed(facts), settings)
    if facts.refusal is None:
        return
    for action in plan.actions:
        assert not (isinstance(action, Create) and action.spec == facts.refusal.spec)
    assert plan.wanted != facts.refusal.spec


def only_this_node_is_changed_and_only_if_it_is_there(
    facts: NodeFacts, settings: NodeSettings
) -> None:
    plan = registration.plan(confirmed(facts), settings)
    known = {facts.name, *(companion.name for companion in facts.companions)}
    is_created = has(plan, Create)

    assert not is_created or facts.slurm_node is None
    for action in plan.actions:
        match action:
            case Create(spec=spec):
                assert spec.name == facts.name
            case Undrain(slurm_nodes=released):
                assert set(released) <= known
            case Forget(slurm_node=name):
                assert facts.slurm_node is None
                assert name == facts.name
            case _:
                if isinstance(action, ON_RECORDS):
                    assert action.slurm_node == facts.name
                    assert facts.slurm_node is not None or is_created


def pods_keep_their_turn(facts: NodeFacts, settings: NodeSettings) -> None:
    """What is drained stays so while containers, their job, or a pod that is not seen yet may be there."""
    kube_node, record = facts.kube_node, facts.slurm_node
    is_shared = kube_node is not None and nodes.is_hybrid(kube_node)
    if record is None or not is_shared or settings.policy.hybrid is not HybridRule.ALTERNATE:
        return
    is_in_use = record.is_busy or facts.idle_for < node_state.SEEN_WITHIN
    is_kept = node_state.is_drained_for_pods(record) and is_in_use
    if facts.hold is Hold.HELD and (facts.has_tenants or is_kept):
        assert not has(registration.plan(confirmed(facts), settings), Undrain)


def confirmed(facts: NodeFacts) -> NodeFacts:
    return replace(facts, is_confirmed=True)


RULES: tuple[Callable[[NodeFacts, NodeSettings], None], ...] = (
    there_is_one_plan,
    nothing_is_done_on_facts_that_may_be_stale,
    only_what_is_ours_idle_and_named_by_nobody_is_deleted,
    a_node_is_only_drained_while_its_pods_are_unclear,
    a_parked_node_takes_no_jobs_while_its_pods_are_unclear,
    the_word_of_others_in_slurm_stands,
    a_record_without_our_mark_is_never_touched,
    only_a_lost_external_node_is_declared_down,
    nothing_else_may_use_what_slurm_hands_out,
    a_refused_description_is_not_tried_again,
    only_this_node_is_changed_and_only_if_it_is_there,
    pods_keep_their_turn,
)


def hunt(count: int, seed: int) -> str:
    """Tell the first rule that does not hold for so many arbitrary facts; "" if all do."""
    chance = Chance(random.Random(seed).choice)  # noqa: S311  # nobody has to be unable to guess it
    for _ in range(count):
        facts, settings = node_facts.facts(chance), node_facts.settings(chance)
        for rule in RULES:
            try:
                rule(facts, settings)
            except Exception as fault:  # noqa: BLE001  # whatever it is, it is a fault
                return f"{type(fault).__name__}: {rule.__name__}: {fault}\n{facts}"
    return ""
