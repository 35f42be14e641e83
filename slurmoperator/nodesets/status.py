"""Computes the status of a NodeSet: pure, and the same for the same facts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from slurmoperator.nodesets import names, troubles
from slurmoperator.nodesets.owned.conf_trials import ConfInForce
from slurmoperator.nodesets.planning import Worker, is_current
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.choosing import REPLACED
from slurmoperator.workers.situation import PodStage
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

Truth = Literal["True", "False", "Unknown"]

_MOST_NAMED: Final = 3
"""The most workers named in one message."""
_LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a NodeSet gets no workers."""

    reason: str
    """CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationStatus:
    """Content of the condition about the reservation in which workers are replaced."""

    is_reserved: bool
    reason: str
    """CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """Everything that a status depends on."""

    before: NodeSetStatus
    generation: int
    desired: int
    workers: Sequence[tuple[Worker, WorkerDecision]]
    states: Callable[[str], frozenset[str] | None]
    """A node's states in Slurm; None if Slurm has no such node."""
    promised: dict[str, int] = field(default_factory=dict)
    """How many devices of each kind a worker should have."""
    registered: Callable[[str], str] = lambda _: ""
    """A node's devices in Slurm."""
    invalid: Callable[[str], str] = lambda _: ""
    """Why Slurm starts no jobs on a node that registered too few resources; "" otherwise."""
    trouble: str | None
    """Why the state of Slurm is unknown; "" if it is known.

    None before the first try: the last condition stays.
    """
    refusal: Refusal | None
    failures: tuple[str, ...]
    """What has just failed."""
    digest: str
    """The hash of its template."""
    pins: dict[str, str] | None = None
    """The Kubernetes node that each worker returns to."""
    deleted_claims: tuple[str, ...] = ()
    """Texts about workers' PVCs that are being deleted."""
    unserved: tuple[str, ...] = ()
    """Texts about fields that are accepted but have no effect."""
    reservation: ReservationStatus | None = None
    """None if there is no reservation and none is needed."""
    is_reservation_known: bool = True
    """If not, the last condition stays."""
    strategy: str
    may_replace: bool
    """See `NodeSetSituation`."""
    collisions: int = 0
    conf: ConfInForce | None = None
    """The `extraConf` that workers get; None if that is not checked."""
    selector: str
    min_ready: timedelta
    now: datetime


def compute(facts: StatusFacts) -> NodeSetStatus:
    """Return the status; equal to the previous one if nothing has changed."""
    pods = _pods(facts)
    running = [pod for pod in pods if pod.facts.stage not in (PodStage.OVER, PodStage.TERMINATING)]
    ready = [pod for pod in running if pod.facts.stage is PodStage.READY]
    available = [pod for pod in ready if _wait(pod, facts) <= timedelta(0)]
    before, now = facts.before, facts.now.replace(microsecond=0)
    counts = _in_slurm(facts)
    return NodeSetStatus(
        conditions=tuple(
            _keep_time(before.conditions, condition, now)
            for condition in (
                _accepted(facts),
                *_configured(facts),
                _ready(facts, len(running), len(ready)),
                _updated(facts),
                _known(facts),
                *_reserved(facts),
            )
        ),
        replicas=len(running),
        updated_replicas=sum(is_current(pod, facts.digest) for pod in running),
        ready_replicas=len(ready),
        available_replicas=len(available),
        unavailable_replicas=max(facts.desired - len(available), 0),
        desired=facts.desired,
        slurm_idle=before.slurm_idle if counts is None else counts["idle"],
        slurm_allocated=before.slurm_allocated if counts is None else counts["allocated"],
        slurm_down=before.slurm_down if counts is None else counts["down"],
        slurm_drain=before.slurm_drain if counts is None else counts["drain"],
        observed_generation=facts.generation,
        node_set_hash=facts.digest,
        collision_count=facts.collisions,
        ordinal_to_node=facts.pins,
        selector=facts.selector,
        accepted_conf=facts.conf.accepted if facts.conf else before.accepted_conf,
    )


def with_refusal(
    before: NodeSetStatus, refusal: Refusal, *, generation: int, now: datetime
) -> NodeSetStatus:
    """Return the status of a NodeSet that is left alone; its counts stay."""
    accepted = _condition("Accepted", "False", refusal.reason, refusal.text, generation)
    others = tuple(condition for condition in before.conditions if condition.type != "Accepted")
    accepted = _keep_time(before.conditions, accepted, now.replace(microsecond=0))
    return msgspec.structs.replace(
        before, conditions=(accepted, *others), observed_generation=generation
    )


def due(facts: StatusFacts) -> timedelta | None:
    """Return when the status changes without an event, as a worker becomes available then."""
    pods = _pods(facts)
    waits = [_wait(pod, facts) for pod in pods if pod.facts.stage is PodStage.READY]
    waits += [due for pod in pods if (due := troubles.due(pod, facts.now)) is not None]
    return min((wait for wait in waits if wait > timedelta(0)), default=None)


def _pods(facts: StatusFacts) -> list[WorkerPodObject]:
    return [worker.pod for worker, _ in facts.workers if worker.pod is not None]


def _wait(pod: WorkerPodObject, facts: StatusFacts) -> timedelta:
    since = pod.ready_since
    return timedelta(0) if since is None else since + facts.min_ready - facts.now


def _in_slurm(facts: StatusFacts) -> Counter[str] | None:
    if facts.trouble != "":
        return None
    counts: Counter[str] = Counter()
    for worker, _ in facts.workers:
        states = facts.states(worker.node)
        if states is None or worker.pod is None:
            continue
        counts["drain"] += "DRAIN" in states
        counts["down"] += "DOWN" in states
        if states & {"ALLOCATED", "MIXED"}:
            counts["allocated"] += 1
        elif "IDLE" in states:
            counts["idle"] += 1
    return counts


def _accepted(facts: StatusFacts) -> ObjectCondition:
    if facts.refusal:
        return _condition(
            "Accepted", "False", facts.refusal.reason, facts.refusal.text, facts.generation
        )
    if facts.unserved:
        return _about(facts, "Accepted", "True", "PartlyServed", facts.unserved)
    return _condition("Accepted", "True", "Accepted", "", facts.generation)


def _configured(facts: StatusFacts) -> Iterable[ObjectCondition]:
    if (conf := facts.conf) is not None:
        yield _condition("Configured", conf.truth, conf.reason, conf.text, facts.generation)


def _ready(facts: StatusFacts, running: int, ready: int) -> ObjectCondition:
    message = _count_text(facts.desired, running, ready)
    if facts.failures:
        return _about(facts, "Ready", "False", "Failing", (message, *facts.failures))
    leaving = [
        decision.reason
        for worker, decision in facts.workers
        if worker.pod and worker.facts.goes not in ("", REPLACED)
    ]
    if leaving and running:
        return _about(facts, "Ready", "False", "ScalingIn", (message, *leaving))
    missing = _missing(facts)
    if ready == facts.desired == running:
        if missing:
            return _about(facts, "Ready", "False", "NotRegistered", (message, *missing))
        if without := _without_devices(facts):
            hint = "slurmd finds devices through gres.conf or AutoDetect; its log lists them"
            return _about(facts, "Ready", "False", "DevicesMissing", (message, *without, hint))
        if invalid := _invalid(facts):
            return _about(facts, "Ready", "False", "InvalidRegistration", (message, *invalid))
        if facts.deleted_claims:
            lines = (message, *facts.deleted_claims)
            return _about(facts, "Ready", "False", "VolumeDeleted", lines)
        return _about(facts, "Ready", "True", "AllReady", (message,))
    waits = (why for pod in _pods(facts) if (why := troubles.not_ready(pod, facts.now)))
    return _about(
        facts, "Ready", "False", "NotReady", (message, *waits, *missing, *facts.deleted_claims)
    )


def _count_text(desired: int, running: int, ready: int) -> str:
    """Return how many desired workers are ready or, if there are too many, how many there are."""
    if running <= desired:
        return f"{ready} of {desired} workers are ready"
    return f"{running} {'worker' if running == 1 else 'workers'} running, {desired} desired"


def _updated(facts: StatusFacts) -> ObjectCondition:
    pods = _pods(facts)
    old = [pod for pod in pods if not is_current(pod, facts.digest)]
    if not old:
        return _about(facts, "Updated", "True", "AllUpdated", ())
    message = f"{len(old)} of {len(pods)} workers have another template"
    if facts.strategy == "OnDelete":
        hint = "delete their pods to replace them; each waits for its jobs first"
        return _about(facts, "Updated", "False", "OnDelete", (message, hint))
    if facts.trouble != "" or not facts.may_replace:
        why = "SlurmKnown" if facts.may_replace else "Accepted or Ready"
        return _about(
            facts, "Updated", "False", "Waiting", (message, f"no worker is replaced; see {why}")
        )
    if stuck := list(_stuck(facts)):
        hint = "correct the template, or change it back"
        return _about(facts, "Updated", "False", "Stuck", (message, *stuck[:_MOST_NAMED], hint))
    replacing = [
        decision.reason for worker, decision in facts.workers if worker.facts.goes == REPLACED
    ]
    if facts.strategy == "ScheduledUpdate" and not replacing:
        hint = f"workers are replaced during their reservation; see {names.RESERVED}"
        return _about(facts, "Updated", "False", "Scheduled", (message, hint))
    return _about(facts, "Updated", "False", "Updating", (message, *replacing))


def _stuck(facts: StatusFacts) -> Iterable[str]:
    """Yield why new workers do not start to serve; the others wait for them."""
    for worker, _ in facts.workers:
        pod = worker.pod
        if pod is None or not is_current(pod, facts.digest) or worker.facts.cordoned:
            continue
        if why := troubles.not_ready(pod, facts.now) or troubles.not_serving(
            pod, worker.facts.seen, facts.now
        ):
            yield why


def _known(facts: StatusFacts) -> ObjectCondition:
    if facts.trouble is None:
        old = next(
            (condition for condition in facts.before.conditions if condition.type == "SlurmKnown"),
            None,
        )
        lines = ("Slurm has not been read yet",)
        return old or _about(facts, "SlurmKnown", "Unknown", "NotRead", lines)
    if facts.trouble:
        return _about(facts, "SlurmKnown", "Unknown", "NotRead", (facts.trouble,))
    if missing := _missing(facts):
        return _about(facts, "SlurmKnown", "False", "NotRegistered", missing)
    return _about(facts, "SlurmKnown", "True", "Read", ())


def _late(facts: StatusFacts) -> Iterator[tuple[str, WorkerPodObject]]:
    """Yield node and pod of ready workers that Slurm should know by now, if its state is known."""
    if facts.trouble != "":
        return
    for worker, _ in facts.workers:
        if worker.pod is not None and troubles.is_late(worker.pod, facts.now):
            yield worker.node, worker.pod


def _missing(facts: StatusFacts) -> list[str]:
    """Return texts about ready workers that Slurm certainly does not have."""
    return [
        f"{node} is ready but not registered in Slurm"
        for node, _ in _late(facts)
        if facts.states(node) is None
    ]


def _without_devices(facts: StatusFacts) -> list[str]:
    """Return texts about ready workers with fewer devices in Slurm than their NodeSet promises."""
    return [
        f"{node} registered {', '.join(few)}"
        for node, pod in _late(facts)
        if facts.promised
        and is_current(pod, facts.digest)
        and facts.states(node) is not None
        and (few := list(troubles.lacking_devices(facts.promised, facts.registered(node))))
    ]


def _invalid(facts: StatusFacts) -> list[str]:
    """Return texts about ready workers that registered fewer resources than configured."""
    return [
        f"Slurm starts no jobs on {node}: {why}"
        for node, pod in _late(facts)
        if is_current(pod, facts.digest) and (why := facts.invalid(node))
    ]


def _reserved(facts: StatusFacts) -> tuple[ObjectCondition, ...]:
    if not facts.is_reservation_known:
        return tuple(
            condition for condition in facts.before.conditions if condition.type == names.RESERVED
        )
    reservation = facts.reservation
    if reservation is None:
        return ()
    truth: Truth = "True" if reservation.is_reserved else "False"
    reason, text = reservation.reason, reservation.text
    return (_condition(names.RESERVED, truth, reason, text, facts.generation),)


def _about(
    facts: StatusFacts, kind: str, truth: Truth, reason: str, lines: Iterable[str]
) -> ObjectCondition:
    parts = list(lines)
    more = len(parts) - _MOST_NAMED - 1
    if more > 0:
        parts = [*parts[: _MOST_NAMED + 1], f"and {more} more"]
    return _condition(kind, truth, reason, "; ".join(parts), facts.generation)


def _condition(
    kind: str, truth: Truth, reason: str, message: str, generation: int
) -> ObjectCondition:
    return ObjectCondition(
        type=kind,
        status=truth,
        reason=reason,
        message=faults.shortened(message, _LONGEST_MESSAGE),
        observed_generation=generation,
        last_transition_time=datetime.min,  # noqa: DTZ901  # replaced in `_keep_time`
    )


def _keep_time(
    before: Sequence[ObjectCondition], after: ObjectCondition, now: datetime
) -> ObjectCondition:
    """Return the condition with the time since which it has held."""
    old = next((condition for condition in before if condition.type == after.type), None)
    since = old.last_transition_time if old and old.status == after.status else now
    return ObjectCondition(
        type=after.type,
        status=after.status,
        reason=after.reason,
        message=after.message,
        observed_generation=after.observed_generation,
        last_transition_time=since,
    )
