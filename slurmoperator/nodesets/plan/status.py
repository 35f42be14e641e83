"""Computes the status of a NodeSet: pure, and the same for the same facts, plan and outcome."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan import troubles, workers
from slurmoperator.nodesets.plan.look import NodeSetFacts, Objection, Outcome, PodFacts
from slurmoperator.nodesets.plan.planning import NodeSetPlan, Rest
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.parts import Truth, condition_of, with_time
from slurmoperator.workers.choosing import REPLACED
from slurmoperator.workers.situation import PodStage
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.model.nodes import SlurmNodeFacts

_MOST_NAMED: Final = 3
_LONGEST_MESSAGE: Final = 1024
_NOT_PRUNED: Final = "spec.pruneSlurmNodeRecords: has no effect without scalingMode: DaemonSet; delete records with scontrol delete nodename=NAME"
_FEWER: Final = "its slurmd registered fewer resources than configured"
_ENDING: Final = (PodStage.OVER, PodStage.TERMINATING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What a status is computed from, and what several conditions need of that."""

    facts: NodeSetFacts
    plan: NodeSetPlan
    outcome: Outcome
    refusal: Objection | None
    pods: tuple[PodFacts, ...]
    late: tuple[tuple[PodFacts, SlurmNodeFacts | None], ...]
    """Ready workers that Slurm should know by now, and their nodes, if its state is known."""

    @property
    def before(self) -> NodeSetStatus:
        """The status until now."""
        return self.facts.node_set.status

    @property
    def missing(self) -> list[str]:
        """Texts about workers that Slurm surely lacks."""
        return [
            f"{pod.slurm_node} is ready but not registered in Slurm"
            for pod, node in self.late
            if node is None
        ]


def report(
    facts: NodeSetFacts, plan: NodeSetPlan, outcome: Outcome, rest: Rest | None
) -> tuple[NodeSetStatus, Rest | None]:
    """Return the status, and this look if that is the previous status, and time alone changes neither it nor the plan.

    After such a look, which is `rest`, the same plan and outcome need no second status.
    """
    result = replace(outcome, delays=())
    if rest is not None and plan is rest.plan and result == rest.outcome:
        return facts.node_set.status, rest
    after = compute(facts, plan, outcome)
    is_lasting = not plan.delays and all(
        pod.ready_since is None or troubles.is_late(pod, facts.now) for pod in facts.pods
    )
    if not is_lasting or after != facts.node_set.status:
        return after, None
    return after, Rest(facts=facts, plan=plan, outcome=result)


def compute(facts: NodeSetFacts, plan: NodeSetPlan, outcome: Outcome) -> NodeSetStatus:
    """Return the status; equal to the previous one if nothing has changed."""
    case = _case(facts, plan, outcome)
    running = [pod for pod in case.pods if pod.worker.stage not in _ENDING]
    ready = [pod for pod in running if pod.worker.stage is PodStage.READY]
    available = [pod for pod in ready if workers.wait(pod, facts) <= timedelta(0)]
    before, counts, conf = case.before, _in_slurm(case), facts.conf
    return NodeSetStatus(
        conditions=(
            _accepted(case),
            _condition(case, "Configured", conf.truth, conf.reason, conf.text),
            _ready(case, len(running), len(ready)),
            _updated(case),
            _known(case),
            *_reserved(case),
        ),
        replicas=len(running),
        updated_replicas=sum(map(case.facts.is_current, running)),
        ready_replicas=len(ready),
        available_replicas=len(available),
        unavailable_replicas=max(plan.desired - len(available), 0),
        desired=plan.desired,
        slurm_idle=before.slurm_idle if counts is None else counts["idle"],
        slurm_allocated=before.slurm_allocated if counts is None else counts["allocated"],
        slurm_down=before.slurm_down if counts is None else counts["down"],
        slurm_drain=before.slurm_drain if counts is None else counts["drain"],
        observed_generation=facts.node_set.metadata.generation,
        node_set_hash=facts.prepared.revision,
        collision_count=facts.prepared.collisions,
        ordinal_to_node=plan.pins,
        selector=names.selector(facts.node_set.metadata.name),
        accepted_conf=conf.accepted,
    )


def with_refusal(
    before: NodeSetStatus, refusal: Objection, *, generation: int, now: datetime
) -> NodeSetStatus:
    """Return the status of a NodeSet that is left alone; its counts stay."""
    others = tuple(condition for condition in before.conditions if condition.type != "Accepted")
    accepted = with_time(
        before.conditions,
        ("Accepted", "False", refusal.reason, refusal.text),
        generation=generation,
        now=now,
        longest=_LONGEST_MESSAGE,
    )
    return msgspec.structs.replace(
        before, conditions=(accepted, *others), observed_generation=generation
    )


def _case(facts: NodeSetFacts, plan: NodeSetPlan, outcome: Outcome) -> _Case:
    refusal = plan.refusal
    if refusal is None and outcome.refused:
        refusal = Objection(reason="BadInput", text=outcome.refused)
    pods = tuple(worker.pod for worker in plan.workers if worker.pod is not None)
    late = (pod for pod in pods if troubles.is_late(pod, facts.now)) if facts.slurm.is_known else ()
    return _Case(
        facts=facts,
        plan=plan,
        outcome=outcome,
        refusal=refusal,
        pods=pods,
        late=tuple((pod, facts.slurm.listed(pod.slurm_node)) for pod in late),
    )


def _in_slurm(case: _Case) -> Counter[str] | None:
    if not case.facts.slurm.is_known:
        return None
    counts: Counter[str] = Counter()
    for pod in case.pods:
        node = case.facts.slurm.listed(pod.slurm_node)
        if node is None:
            continue
        counts["drain"] += "DRAIN" in node.states
        counts["down"] += "DOWN" in node.states
        if node.states & {"ALLOCATED", "MIXED"}:
            counts["allocated"] += 1
        elif "IDLE" in node.states:
            counts["idle"] += 1
    return counts


def _failures(case: _Case) -> Iterator[str]:
    """Yield failures that need a human. Transient ones are retried and logged."""
    failures = case.outcome.failures
    yield from dict.fromkeys(str(failure) for failure in failures if not failure.transient)
    for pod in case.facts.pods:
        if pod.key is None:
            yield f"pod {pod.name} belongs to this NodeSet but its name has no ordinal; delete it"
    yield from case.plan.placing_faults


def _accepted(case: _Case) -> ObjectCondition:
    if case.refusal:
        return _condition(case, "Accepted", "False", case.refusal.reason, case.refusal.text)
    notes = list(case.outcome.notes)
    if case.facts.node_set.spec.prune_slurm_node_records != "Never" and not case.facts.is_on_nodes:
        notes.insert(0, _NOT_PRUNED)
    if notes:
        return _about(case, "Accepted", "True", "PartlyServed", notes)
    return _condition(case, "Accepted", "True", "Accepted", "")


def _ready(case: _Case, running: int, ready: int) -> ObjectCondition:
    desired = case.plan.desired
    message = _count_text(desired, running, ready)
    if failures := tuple(_failures(case)):
        return _about(case, "Ready", "False", "Failing", (message, *failures))
    leaving = [
        worker.decision.reason
        for worker in case.plan.workers
        if worker.pod and worker.facts.goes not in ("", REPLACED)
    ]
    if leaving and running:
        return _about(case, "Ready", "False", "ScalingIn", (message, *leaving))
    missing, deleted_claims = case.missing, case.outcome.deleted_claims
    if ready == desired == running:
        if missing:
            return _about(case, "Ready", "False", "NotRegistered", (message, *missing))
        if without := _without_devices(case):
            hint = "slurmd finds devices through gres.conf or AutoDetect; its log lists them"
            return _about(case, "Ready", "False", "DevicesMissing", (message, *without, hint))
        if invalid := _invalid(case):
            return _about(case, "Ready", "False", "InvalidRegistration", (message, *invalid))
        if deleted_claims:
            lines = (message, *deleted_claims)
            return _about(case, "Ready", "False", "VolumeDeleted", lines)
        return _about(case, "Ready", "True", "AllReady", (message,))
    waits = (why for pod in case.pods if (why := troubles.not_ready(pod, case.facts.now)))
    return _about(case, "Ready", "False", "NotReady", (message, *waits, *missing, *deleted_claims))


def _count_text(desired: int, running: int, ready: int) -> str:
    if running <= desired:
        return f"{ready} of {desired} workers are ready"
    return f"{running} {'worker' if running == 1 else 'workers'} running, {desired} desired"


def _updated(case: _Case) -> ObjectCondition:
    pods, may_replace = case.pods, case.plan.may_replace
    old = [pod for pod in pods if not case.facts.is_current(pod)]
    if not old:
        return _about(case, "Updated", "True", "AllUpdated", ())
    message = f"{len(old)} of {len(pods)} workers have another template"
    if workers.strategy(case.facts.node_set) == "OnDelete":
        hint = "delete their pods to replace them; each waits for its jobs first"
        return _about(case, "Updated", "False", "OnDelete", (message, hint))
    if not case.facts.slurm.is_known or not may_replace:
        why = "SlurmKnown" if may_replace else "Accepted or Ready"
        return _about(
            case, "Updated", "False", "Waiting", (message, f"no worker is replaced; see {why}")
        )
    if stuck := list(_stuck(case)):
        hint = "correct the template, or change it back"
        return _about(case, "Updated", "False", "Stuck", (message, *stuck[:_MOST_NAMED], hint))
    replacing = [
        worker.decision.reason for worker in case.plan.workers if worker.facts.goes == REPLACED
    ]
    if workers.strategy(case.facts.node_set) == "ScheduledUpdate" and not replacing:
        hint = f"workers are replaced during their reservation; see {names.RESERVED}"
        return _about(case, "Updated", "False", "Scheduled", (message, hint))
    return _about(case, "Updated", "False", "Updating", (message, *replacing))


def _stuck(case: _Case) -> Iterable[str]:
    """Yield why new workers do not start to serve; the others wait for them."""
    now = case.facts.now
    for worker in case.plan.workers:
        pod = worker.pod
        if pod is None or not case.facts.is_current(pod) or worker.facts.cordoned:
            continue
        if why := troubles.not_ready(pod, now) or troubles.not_serving(pod, worker.facts.seen, now):
            yield why


def _known(case: _Case) -> ObjectCondition:
    trouble = case.facts.slurm.trouble
    if trouble is None:
        old = condition_of(case.before.conditions, "SlurmKnown")
        lines = ("Slurm has not been read yet",)
        return old or _about(case, "SlurmKnown", "Unknown", "NotRead", lines)
    if trouble:
        return _about(case, "SlurmKnown", "Unknown", "NotRead", (trouble,))
    if missing := case.missing:
        return _about(case, "SlurmKnown", "False", "NotRegistered", missing)
    return _about(case, "SlurmKnown", "True", "Read", ())


def _without_devices(case: _Case) -> list[str]:
    promised = troubles.promised_devices(case.facts.node_set.spec.extra_conf)
    if not promised:
        return []
    nodes = [node for pod, node in case.late if node and case.facts.is_current(pod)]
    # Most workers have the same devices: each list of them is read once.
    lacking = {
        gres: ", ".join(troubles.lacking_devices(promised, gres))
        for gres in {node.gres for node in nodes}
    }
    return [f"{node.name} registered {lacking[node.gres]}" for node in nodes if lacking[node.gres]]


def _invalid(case: _Case) -> list[str]:
    return [
        f"Slurm starts no jobs on {node.name}: {node.reason or _FEWER}"
        for pod, node in case.late
        if node is not None and "INVALID_REG" in node.states and case.facts.is_current(pod)
    ]


def _reserved(case: _Case) -> Iterable[ObjectCondition]:
    reservation = case.outcome.reservation
    if not case.outcome.is_reservation_known:
        if old := condition_of(case.before.conditions, names.RESERVED):
            yield old
    elif reservation is not None:
        yield _condition(case, *reservation)


def _about(
    case: _Case, kind: str, truth: Truth, reason: str, lines: Iterable[str]
) -> ObjectCondition:
    parts = list(lines)
    more = len(parts) - _MOST_NAMED - 1
    if more > 0:
        parts = [*parts[: _MOST_NAMED + 1], f"and {more} more"]
    return _condition(case, kind, truth, reason, "; ".join(parts))


def _condition(case: _Case, kind: str, truth: Truth, reason: str, message: str) -> ObjectCondition:
    return with_time(
        case.before.conditions,
        (kind, truth, reason, message),
        generation=case.facts.node_set.metadata.generation,
        now=case.facts.now,
        longest=_LONGEST_MESSAGE,
    )
