"""What holds for the plan of a NodeSet, whatever the facts are and however they contradict each other."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

import msgspec

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan import planning, status
from slurmoperator.nodesets.plan.admission import admit
from slurmoperator.nodesets.plan.look import NodeSetFacts, Outcome
from slurmoperator.nodesets.plan.planning import (
    CreateWorkers,
    DeleteRecords,
    DeleteVolumes,
    KeepReservation,
    MoveWorkers,
    NewWorker,
    NodeSetPlan,
    ReportStates,
)
from slurmoperator.objects.workers import host_name
from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ReleaseWorker,
    UndrainWorker,
)
from slurmoperator.workers.situation import BUSY, REASON_PREFIX, PodStage
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

OUTCOMES: Final = (
    Outcome(),
    Outcome(refused="expected an image", notes=("node a stays",)),
    Outcome(
        is_reservation_known=True,
        reservation=(names.RESERVED, "True", "Reserved", "from now"),
    ),
)


def a_node_set_is_admitted_or_refused_with_a_reason(facts: NodeSetFacts) -> None:
    admitted = admit(facts.node_set, None, facts.others)

    assert admitted == admit(facts.node_set, None, facts.others)
    _, refusal = admitted
    assert refusal is None or (refusal.text and not facts.is_leaving)


def there_is_one_plan_and_one_status_for_any_facts(facts: NodeSetFacts) -> None:
    plan = planning.plan(facts)

    assert plan == planning.plan(facts)
    assert repr(plan)
    for outcome in OUTCOMES:
        after = status.compute(facts, plan, outcome)
        assert after == status.compute(facts, plan, outcome)
        kinds = [condition.type for condition in after.conditions]
        assert len(kinds) == len(set(kinds))
    assert {pod.worker.uid for pod in facts.pods if pod.key is not None} == {
        worker.pod.worker.uid for worker in plan.workers if worker.pod
    }


def a_worker_that_runs_is_deleted_or_released_only_on_proof(facts: NodeSetFacts) -> None:
    for worker in planning.plan(facts).workers:
        proofless = (PodStage.OVER, PodStage.UNSTARTED)
        for action in worker.decision.actions:
            if not isinstance(action, DeleteWorker | ReleaseWorker):
                continue
            assert worker.pod is not None
            pod = worker.pod.worker
            assert (pod.uid, pod.resource_version) == (action.uid, action.resource_version)
            if isinstance(action, DeleteWorker) and pod.stage in proofless:
                assert pod.stage is PodStage.OVER or worker.facts.goes
                continue
            seen = facts.slurm.observations[worker.node]
            assert facts.slurm.has_jobs
            assert seen.is_sure
            assert seen.node is not None
            assert "DRAIN" in seen.node.states
            assert not seen.node.states & BUSY
            assert not seen.has_jobs
            assert seen.quiet_readings >= 2
            assert worker.facts.goes if isinstance(action, DeleteWorker) else worker.facts.cordoned


def no_drain_of_somebody_else_is_lifted(facts: NodeSetFacts) -> None:
    for worker in planning.plan(facts).workers:
        for action in worker.decision.actions:
            if isinstance(action, DrainWorker):
                assert action.reason.startswith(REASON_PREFIX)
            if isinstance(action, UndrainWorker):
                node = facts.slurm.observations[worker.node].node
                assert node is not None
                assert node.reason.startswith(REASON_PREFIX)


def workers_go_for_a_reason_that_the_facts_give(facts: NodeSetFacts) -> None:
    """A refused template, or nodes that cannot be read, make nobody go."""
    plan = planning.plan(facts)
    for worker in plan.workers:
        if not worker.facts.goes or worker.pod is None:
            continue
        goes = worker.facts.goes
        if facts.prepared.refusal or not facts.prepared.is_stored or facts.template_fault:
            assert "another template" not in goes
        machine = getattr(worker.key, "kube_node", None)
        is_on_nodes = facts.is_on_nodes and machine is not None
        if is_on_nodes and machine not in facts.kube_nodes and machine in facts.unreadable_nodes:
            assert not goes.startswith("Kubernetes has no node")
    if not facts.is_leaving and not facts.is_on_nodes:
        gone = [worker for worker in plan.workers if worker.facts.goes == "scaled in"]
        numbered = [pod for pod in facts.pods if isinstance(pod.key, int)]
        assert len(gone) == max(len(numbered) - plan.desired, 0)


def workers_are_created_only_where_one_is_surely_missing(facts: NodeSetFacts) -> None:
    plan = planning.plan(facts)
    created = new_workers(plan)
    keys = [worker.key for worker in created]
    missing = [worker for worker in plan.workers if worker.pod is None]

    assert len(keys) == len(set(keys))
    assert not keys or not (facts.prepared.refusal or facts.is_leaving or facts.template_fault)
    assert not {pod.key for pod in facts.pods} & set(keys)
    assert len(missing) <= plan.desired
    assert all(CreateWorker() in worker.decision.actions for worker in missing)
    for worker in created:
        node = facts.slurm.listed(host_name(facts.node_set, worker.key))
        if facts.slurm.is_known and node is not None and node.is_busy:
            assert worker.lost_jobs


def new_workers(plan: NodeSetPlan) -> tuple[NewWorker, ...]:
    """The workers that it creates."""
    steps = [step for step in plan.steps if isinstance(step, CreateWorkers)]
    assert len(steps) <= 1
    return steps[0].workers if steps else ()


def no_volume_or_record_of_a_worker_goes_and_none_on_doubt(facts: NodeSetFacts) -> None:
    plan = planning.plan(facts)
    ordinals = {pod.key for pod in facts.pods if isinstance(pod.key, int)}
    deletions = [step for step in plan.steps if isinstance(step, DeleteVolumes | DeleteRecords)]
    assert not deletions or not (facts.prepared.refusal or facts.is_leaving)
    assert all(ordinals <= step.needed for step in deletions if isinstance(step, DeleteVolumes))
    stale = [step for step in deletions if isinstance(step, DeleteRecords)]
    if stale:
        assert facts.slurm.is_known
        assert not facts.unreadable_nodes
    for name in (name for step in stale for name in step.nodes):
        node = facts.slurm.nodes[name]
        assert "NOT_RESPONDING" in node.states
        assert not node.is_busy
        assert name not in facts.hosts
        assert name not in {pod.slurm_node for pod in facts.pods}


def what_slurm_may_not_have_is_neither_reserved_nor_moved_nor_reported(facts: NodeSetFacts) -> None:
    plan = planning.plan(facts)
    for step in plan.steps:
        match step:
            case KeepReservation(waiting=waiting):
                assert facts.slurm.is_known
                assert waiting <= facts.slurm.nodes.keys()
            case MoveWorkers(moves=moves):
                assert facts.slurm.is_known
                assert {move.slurm_node for move in moves} <= facts.slurm.nodes.keys()
            case _:
                assert facts.slurm.is_known or not isinstance(step, ReportStates)
    assert plan.follow.nodes == {pod.slurm_node for pod in facts.pods}
    if any(worker.facts.goes and worker.pod for worker in plan.workers):
        assert plan.follow.jobs


def a_worker_returns_only_to_a_node_that_exists(facts: NodeSetFacts) -> None:
    plan = planning.plan(facts)
    pins = plan.pins or {}
    bound = {pod.kube_node for pod in facts.pods}

    assert plan.pins is None or facts.node_set.spec.pin_to_node
    assert set(pins.values()) <= {*facts.kube_nodes, *facts.unreadable_nodes, *bound}
    for worker in new_workers(plan):
        assert worker.kube_node == pins.get(str(worker.key), "")


def a_look_after_one_at_rest_comes_to_what_any_look_does(facts: NodeSetFacts) -> None:
    """It comes at another time, or at other facts; which of these is up to the facts, as all of them would take long."""
    outcome = OUTCOMES[len(facts.pods) % len(OUTCOMES)]
    if facts.kube_nodes:  # its status was written before
        after = status.compute(facts, planning.plan(facts), outcome)
        node_set = msgspec.structs.replace(facts.node_set, status=after)
        facts = replace(facts, conf=replace(facts.conf, node_set=node_set))
    plan = planning.plan(facts)
    _, rest = status.report(facts, plan, outcome, None)
    nodes, own = facts.slurm.nodes, {pod.slurm_node for pod in facts.pods}
    busy = {name: replace(node, alloc_cpus=1) for name, node in nodes.items()}
    busy_others = {name: nodes[name] if name in own else node for name, node in busy.items()}
    states = frozenset({"DYNAMIC_NORM", "NOT_RESPONDING"})
    stale = SlurmNodeFacts(name=SlurmNode("gone"), states=states, features=("gpu",))
    looks = (
        *(replace(facts, now=facts.now + timedelta(seconds=n)) for n in (1, 31, 3600, -3600)),
        replace(facts, pods=facts.pods[1:]),
        replace(facts, slurm=replace(facts.slurm, observations={})),
        replace(facts, prepared=replace(facts.prepared, revision="newer")),
        replace(facts, slurm=replace(facts.slurm, nodes=busy)),
        replace(facts, slurm=replace(facts.slurm, nodes=busy_others)),
        replace(facts, slurm=replace(facts.slurm, nodes={**nodes, "gone": stale})),
    )
    later = looks[facts.now.second % len(looks)]
    plan = planning.plan(later)

    assert planning.plan(later, rest) == plan
    for result in (replace(outcome, delays=(timedelta(seconds=1),)), *OUTCOMES):
        after, _ = status.report(later, planning.plan(later, rest), result, rest)
        assert after == status.compute(later, plan, result)


PROPERTIES: Final = (
    a_node_set_is_admitted_or_refused_with_a_reason,
    there_is_one_plan_and_one_status_for_any_facts,
    a_worker_that_runs_is_deleted_or_released_only_on_proof,
    no_drain_of_somebody_else_is_lifted,
    workers_go_for_a_reason_that_the_facts_give,
    workers_are_created_only_where_one_is_surely_missing,
    no_volume_or_record_of_a_worker_goes_and_none_on_doubt,
    what_slurm_may_not_have_is_neither_reserved_nor_moved_nor_reported,
    a_worker_returns_only_to_a_node_that_exists,
    a_look_after_one_at_rest_comes_to_what_any_look_does,
)


def check(facts: NodeSetFacts) -> None:
    """Check all of them."""
    for holds in PROPERTIES:
        holds(facts)
