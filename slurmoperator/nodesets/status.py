"""What a NodeSet is told in its status: pure, and the same for the same facts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from slurmoperator.nodesets import names, troubles
from slurmoperator.nodesets.owned.tried import ConfInForce
from slurmoperator.nodesets.planning import PlannedWorker, is_current
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.choosing import REPLACED
from slurmoperator.workers.situation import PodStage
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

Truth = Literal["True", "False", "Unknown"]

_MOST_NAMED: Final = 3
"""So many workers are named in a message."""
_LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a NodeSet gets no workers."""

    reason: str
    """CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldReservation:
    """What is to be said of the reservation in which workers are replaced."""

    is_there: bool
    reason: str
    """CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """Everything that a status depends on."""

    before: NodeSetStatus
    generation: int
    desired: int
    workers: Sequence[tuple[PlannedWorker, WorkerDecision]]
    states: Callable[[str], frozenset[str] | None]
    """A node's states in Slurm; None if it has no such node."""
    promised: dict[str, int] = field(default_factory=dict)
    """How many devices of each kind a worker is to have."""
    registered: Callable[[str], str] = lambda _: ""
    """The devices that a node has in Slurm."""
    invalid: Callable[[str], str] = lambda _: ""
    """Why Slurm gives a node no jobs that has registered with less than its worker says of it."""
    trouble: str | None
    """Why Slurm is not known; "" if it is, None if nobody has tried yet: then the old word holds."""
    refusal: Refusal | None
    failures: tuple[str, ...]
    """What could not be done just now."""
    digest: str
    """The hash of its template."""
    pins: dict[str, str] | None = None
    """To which Kubernetes node each worker returns."""
    deleted_claims: tuple[str, ...] = ()
    """Which claims of workers are being deleted, in words."""
    unserved: tuple[str, ...] = ()
    """Fields that are accepted and not acted on."""
    reservation: ToldReservation | None = None
    """None if there is none, and none is to be."""
    is_reservation_known: bool = True
    """Otherwise the old word holds."""
    strategy: str
    may_replace: bool
    """See `NodeSetSituation`."""
    collisions: int = 0
    conf: ConfInForce | None = None
    """What workers are to register; None if that is not looked at."""
    selector: str
    min_ready: timedelta
    now: datetime


def told(facts: StatusFacts) -> NodeSetStatus:
    """Return the status; equal to the one before if nothing has changed."""
    pods = [each.pod for each, _ in facts.workers if each.pod is not None]
    there = [pod for pod in pods if pod.facts.stage not in (PodStage.OVER, PodStage.TERMINATING)]
    ready = [pod for pod in there if pod.facts.stage is PodStage.READY]
    available = [pod for pod in ready if _wait(pod, facts) <= timedelta(0)]
    before, now = facts.before, facts.now.replace(microsecond=0)
    counts = _in_slurm(facts)
    return NodeSetStatus(
        conditions=tuple(
            _kept_time(before.conditions, each, now)
            for each in (
                _accepted(facts),
                *_configured(facts),
                _ready(facts, len(there), len(ready)),
                _updated(facts),
                _known(facts),
                *_reserved(facts),
            )
        ),
        replicas=len(there),
        updated_replicas=sum(is_current(pod, facts.digest) for pod in there),
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


def refused(
    before: NodeSetStatus, refusal: Refusal, *, generation: int, now: datetime
) -> NodeSetStatus:
    """Return the status of a NodeSet that is left alone; its numbers stay."""
    accepted = _condition("Accepted", "False", refusal.reason, refusal.text, generation)
    kept = tuple(condition for condition in before.conditions if condition.type != "Accepted")
    told_now = _kept_time(before.conditions, accepted, now.replace(microsecond=0))
    return msgspec.structs.replace(
        before, conditions=(told_now, *kept), observed_generation=generation
    )


def due(facts: StatusFacts) -> timedelta | None:
    """Return when the status changes although nothing happens: a worker becomes available then."""
    pods = [each.pod for each, _ in facts.workers if each.pod is not None]
    waits = [_wait(pod, facts) for pod in pods if pod.facts.stage is PodStage.READY]
    waits += [due for pod in pods if (due := troubles.due(pod, facts.now)) is not None]
    return min((wait for wait in waits if wait > timedelta(0)), default=None)


def _wait(pod: WorkerPodObject, facts: StatusFacts) -> timedelta:
    since = pod.ready_since
    return timedelta(0) if since is None else since + facts.min_ready - facts.now


def _in_slurm(facts: StatusFacts) -> Counter[str] | None:
    if facts.trouble != "":
        return None
    counts: Counter[str] = Counter()
    for each, _ in facts.workers:
        states = facts.states(each.node)
        if states is None or each.pod is None:
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


def _ready(facts: StatusFacts, there: int, ready: int) -> ObjectCondition:
    message = _counted(facts.desired, there, ready)
    if facts.failures:
        return _about(facts, "Ready", "False", "Failing", (message, *facts.failures))
    going = [d for each, d in facts.workers if each.pod and each.facts.goes not in ("", REPLACED)]
    if going and there:
        return _about(facts, "Ready", "False", "ScalingIn", (message, *(d.reason for d in going)))
    missing = _missing(facts)
    if ready == facts.desired == there:
        if missing:
            return _about(facts, "Ready", "False", "NotRegistered", (message, *missing))
        if without := _without_devices(facts):
            hint = "slurmd finds devices by gres.conf or AutoDetect: its log says what it found"
            return _about(facts, "Ready", "False", "DevicesMissing", (message, *without, hint))
        if invalid := _invalid(facts):
            return _about(facts, "Ready", "False", "InvalidRegistration", (message, *invalid))
        if facts.deleted_claims:
            said = (message, *facts.deleted_claims)
            return _about(facts, "Ready", "False", "VolumeDeleted", said)
        return _about(facts, "Ready", "True", "AllReady", (message,))
    pods = [each.pod for each, _ in facts.workers if each.pod is not None]
    waits = (why for pod in pods if (why := troubles.not_ready(pod, facts.now)))
    return _about(
        facts, "Ready", "False", "NotReady", (message, *waits, *missing, *facts.deleted_claims)
    )


def _counted(wanted: int, there: int, ready: int) -> str:
    """Say how many of the wanted workers are ready; while there are more than that, how many there are."""
    if there <= wanted:
        return f"{ready} of {wanted} workers are ready"
    are_there = "1 worker is there" if there == 1 else f"{there} workers are there"
    are_wanted = {0: "none is wanted", 1: "1 is wanted"}.get(wanted, f"{wanted} are wanted")
    return f"{are_there}, {are_wanted}"


def _updated(facts: StatusFacts) -> ObjectCondition:
    pods = [each.pod for each, _ in facts.workers if each.pod is not None]
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
            facts, "Updated", "False", "Waiting", (message, f"none is replaced; see {why}")
        )
    if stuck := list(_stuck(facts)):
        hint = "correct the template, or change it back"
        return _about(facts, "Updated", "False", "Stuck", (message, *stuck[:_MOST_NAMED], hint))
    going = [d.reason for each, d in facts.workers if each.facts.goes == REPLACED]
    if facts.strategy == "ScheduledUpdate" and not going:
        hint = f"each is replaced while it is in its reservation; see {names.RESERVED}"
        return _about(facts, "Updated", "False", "Scheduled", (message, hint))
    return _about(facts, "Updated", "False", "Updating", (message, *going))


def _stuck(facts: StatusFacts) -> Iterable[str]:
    """Yield which new workers do not begin to serve, for which the others wait, and why."""
    for each, _ in facts.workers:
        pod = each.pod
        if pod is None or not is_current(pod, facts.digest) or each.facts.cordoned:
            continue
        if why := troubles.not_ready(pod, facts.now) or troubles.not_serving(
            pod, each.facts.seen, facts.now
        ):
            yield why


def _known(facts: StatusFacts) -> ObjectCondition:
    if facts.trouble is None:
        old = next(
            (condition for condition in facts.before.conditions if condition.type == "SlurmKnown"),
            None,
        )
        said = ("Slurm has not been read yet",)
        return old or _about(facts, "SlurmKnown", "Unknown", "NotRead", said)
    if facts.trouble:
        return _about(facts, "SlurmKnown", "Unknown", "NotRead", (facts.trouble,))
    if missing := _missing(facts):
        return _about(facts, "SlurmKnown", "False", "NotRegistered", missing)
    return _about(facts, "SlurmKnown", "True", "Read", ())


def _late(facts: StatusFacts) -> Iterator[tuple[str, WorkerPodObject]]:
    """Yield the ready workers that Slurm should know by now, with their nodes; none while it cannot be asked."""
    if facts.trouble != "":
        return
    for each, _ in facts.workers:
        if each.pod is not None and troubles.is_late(each.pod, facts.now):
            yield each.node, each.pod


def _missing(facts: StatusFacts) -> list[str]:
    """Return which ready workers Slurm surely does not have."""
    return [
        f"{node} is ready, and Slurm does not have it"
        for node, _ in _late(facts)
        if facts.states(node) is None
    ]


def _without_devices(facts: StatusFacts) -> list[str]:
    """Return which ready workers have fewer devices in Slurm than their NodeSet promises."""
    return [
        f"{node} has registered {', '.join(few)}"
        for node, pod in _late(facts)
        if facts.promised
        and is_current(pod, facts.digest)
        and facts.states(node) is not None
        and (few := list(troubles.lacking_devices(facts.promised, facts.registered(node))))
    ]


def _invalid(facts: StatusFacts) -> list[str]:
    """Return which ready workers have registered with less than they say of themselves."""
    return [
        f"Slurm gives {node} no jobs: {why}"
        for node, pod in _late(facts)
        if is_current(pod, facts.digest) and (why := facts.invalid(node))
    ]


def _reserved(facts: StatusFacts) -> tuple[ObjectCondition, ...]:
    if not facts.is_reservation_known:
        return tuple(
            condition for condition in facts.before.conditions if condition.type == names.RESERVED
        )
    told = facts.reservation
    if told is None:
        return ()
    truth: Truth = "True" if told.is_there else "False"
    return (_condition(names.RESERVED, truth, told.reason, told.text, facts.generation),)


def _about(
    facts: StatusFacts, kind: str, truth: Truth, reason: str, said: Iterable[str]
) -> ObjectCondition:
    lines = list(said)
    more = len(lines) - _MOST_NAMED - 1
    if more > 0:
        lines = [*lines[: _MOST_NAMED + 1], f"and {more} more"]
    return _condition(kind, truth, reason, "; ".join(lines), facts.generation)


def _condition(
    kind: str, truth: Truth, reason: str, message: str, generation: int
) -> ObjectCondition:
    return ObjectCondition(
        type=kind,
        status=truth,
        reason=reason,
        message=faults.shortened(message, _LONGEST_MESSAGE),
        observed_generation=generation,
        last_transition_time=datetime.min,  # noqa: DTZ901  # replaced in `_kept_time`
    )


def _kept_time(
    before: Sequence[ObjectCondition], after: ObjectCondition, now: datetime
) -> ObjectCondition:
    """Return the condition with the time since which it has held."""
    old = next((each for each in before if each.type == after.type), None)
    since = old.last_transition_time if old and old.status == after.status else now
    return ObjectCondition(
        type=after.type,
        status=after.status,
        reason=after.reason,
        message=after.message,
        observed_generation=after.observed_generation,
        last_transition_time=since,
    )
