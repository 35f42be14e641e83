"""Computes the status of a NodeSet: pure, and the same for the same facts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from slurmoperator.nodesets import names, planning, troubles
from slurmoperator.nodesets.owned.conf_trials import ConfInForce
from slurmoperator.nodesets.planning import NodeSetSituation, Worker
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject, NodeSetStatus
from slurmoperator.objects.parts import Truth, with_time
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.choosing import REPLACED
from slurmoperator.workers.situation import PodStage
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.model.nodes import SlurmNodeFacts

_MOST_NAMED: Final = 3
"""How many workers a message names at most."""
_LONGEST_MESSAGE: Final = 1024
_FEWER: Final = "its slurmd registered fewer resources than configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a NodeSet gets no workers."""

    reason: str
    """The reason of the condition, in CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationStatus:
    """Content of the condition about the reservation in which workers are replaced."""

    is_reserved: bool
    reason: str
    """The reason of the condition, in CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """Everything that a status depends on."""

    before: NodeSetStatus
    situation: NodeSetSituation
    workers: Sequence[tuple[Worker, WorkerDecision]]
    listed: Callable[[str], SlurmNodeFacts | None]
    """A node as in the last reading; None if Slurm has no such node, or its state is unknown."""
    trouble: str | None
    """Why the state of Slurm is unknown; "" if it is known.

    None before the first try: the last condition stays.
    """
    refusal: Refusal | None
    failures: tuple[str, ...]
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
    collisions: int = 0
    conf: ConfInForce | None = None
    """The `extraConf` that workers get; None if that is not checked."""

    @property
    def node_set(self) -> NodeSetObject:
        """The NodeSet that it is the status of."""
        return self.situation.node_set

    def is_current(self, pod: WorkerPodObject) -> bool:
        """Check whether a pod was made from the template in force."""
        return planning.is_current(pod, self.situation.revision)


def compute(facts: StatusFacts) -> NodeSetStatus:
    """Return the status; equal to the previous one if nothing has changed."""
    pods = _pods(facts)
    running = [pod for pod in pods if pod.facts.stage not in (PodStage.OVER, PodStage.TERMINATING)]
    ready = [pod for pod in running if pod.facts.stage is PodStage.READY]
    available = [pod for pod in ready if _wait(pod, facts) <= timedelta(0)]
    before, counts = facts.before, _in_slurm(facts)
    return NodeSetStatus(
        conditions=(
            _accepted(facts),
            *_configured(facts),
            _ready(facts, len(running), len(ready)),
            _updated(facts),
            _known(facts),
            *_reserved(facts),
        ),
        replicas=len(running),
        updated_replicas=sum(facts.is_current(pod) for pod in running),
        ready_replicas=len(ready),
        available_replicas=len(available),
        unavailable_replicas=max(facts.situation.desired - len(available), 0),
        desired=facts.situation.desired,
        slurm_idle=before.slurm_idle if counts is None else counts["idle"],
        slurm_allocated=before.slurm_allocated if counts is None else counts["allocated"],
        slurm_down=before.slurm_down if counts is None else counts["down"],
        slurm_drain=before.slurm_drain if counts is None else counts["drain"],
        observed_generation=facts.node_set.metadata.generation,
        node_set_hash=facts.situation.revision,
        collision_count=facts.collisions,
        ordinal_to_node=facts.pins,
        selector=names.selector(facts.node_set.metadata.name),
        accepted_conf=facts.conf.accepted if facts.conf else before.accepted_conf,
    )


def with_refusal(
    before: NodeSetStatus, refusal: Refusal, *, generation: int, now: datetime
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


def due(facts: StatusFacts) -> timedelta | None:
    """Return when the status changes without an event, as a worker becomes available then."""
    pods = _pods(facts)
    waits = [_wait(pod, facts) for pod in pods if pod.facts.stage is PodStage.READY]
    waits += [due for pod in pods if (due := troubles.due(pod, facts.situation.now)) is not None]
    return min((wait for wait in waits if wait > timedelta(0)), default=None)


def _pods(facts: StatusFacts) -> list[WorkerPodObject]:
    return [worker.pod for worker, _ in facts.workers if worker.pod is not None]


def _wait(pod: WorkerPodObject, facts: StatusFacts) -> timedelta:
    since = pod.ready_since
    min_ready = timedelta(seconds=facts.node_set.spec.min_ready_seconds)
    return timedelta(0) if since is None else since + min_ready - facts.situation.now


def _in_slurm(facts: StatusFacts) -> Counter[str] | None:
    if facts.trouble != "":
        return None
    counts: Counter[str] = Counter()
    for worker, _ in facts.workers:
        node = facts.listed(worker.node)
        if node is None or worker.pod is None:
            continue
        counts["drain"] += "DRAIN" in node.states
        counts["down"] += "DOWN" in node.states
        if node.states & {"ALLOCATED", "MIXED"}:
            counts["allocated"] += 1
        elif "IDLE" in node.states:
            counts["idle"] += 1
    return counts


def _accepted(facts: StatusFacts) -> ObjectCondition:
    if facts.refusal:
        return _condition(facts, "Accepted", "False", facts.refusal.reason, facts.refusal.text)
    if facts.unserved:
        return _about(facts, "Accepted", "True", "PartlyServed", facts.unserved)
    return _condition(facts, "Accepted", "True", "Accepted", "")


def _configured(facts: StatusFacts) -> Iterable[ObjectCondition]:
    if (conf := facts.conf) is not None:
        yield _condition(facts, "Configured", conf.truth, conf.reason, conf.text)


def _ready(facts: StatusFacts, running: int, ready: int) -> ObjectCondition:
    message = _count_text(facts.situation.desired, running, ready)
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
    if ready == facts.situation.desired == running:
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
    waits = (why for pod in _pods(facts) if (why := troubles.not_ready(pod, facts.situation.now)))
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
    old = [pod for pod in pods if not facts.is_current(pod)]
    if not old:
        return _about(facts, "Updated", "True", "AllUpdated", ())
    message = f"{len(old)} of {len(pods)} workers have another template"
    if planning.strategy(facts.node_set) == "OnDelete":
        hint = "delete their pods to replace them; each waits for its jobs first"
        return _about(facts, "Updated", "False", "OnDelete", (message, hint))
    if facts.trouble != "" or not facts.situation.may_replace:
        why = "SlurmKnown" if facts.situation.may_replace else "Accepted or Ready"
        return _about(
            facts, "Updated", "False", "Waiting", (message, f"no worker is replaced; see {why}")
        )
    if stuck := list(_stuck(facts)):
        hint = "correct the template, or change it back"
        return _about(facts, "Updated", "False", "Stuck", (message, *stuck[:_MOST_NAMED], hint))
    replacing = [
        decision.reason for worker, decision in facts.workers if worker.facts.goes == REPLACED
    ]
    if planning.strategy(facts.node_set) == "ScheduledUpdate" and not replacing:
        hint = f"workers are replaced during their reservation; see {names.RESERVED}"
        return _about(facts, "Updated", "False", "Scheduled", (message, hint))
    return _about(facts, "Updated", "False", "Updating", (message, *replacing))


def _stuck(facts: StatusFacts) -> Iterable[str]:
    """Yield why new workers do not start to serve; the others wait for them."""
    for worker, _ in facts.workers:
        pod = worker.pod
        if pod is None or not facts.is_current(pod) or worker.facts.cordoned:
            continue
        if why := troubles.not_ready(pod, facts.situation.now) or troubles.not_serving(
            pod, worker.facts.seen, facts.situation.now
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
        if worker.pod is not None and troubles.is_late(worker.pod, facts.situation.now):
            yield worker.node, worker.pod


def _missing(facts: StatusFacts) -> list[str]:
    return [
        f"{node} is ready but not registered in Slurm"
        for node, _ in _late(facts)
        if facts.listed(node) is None
    ]


def _without_devices(facts: StatusFacts) -> list[str]:
    promised = troubles.promised_devices(facts.node_set.spec.extra_conf)
    return [
        f"{name} registered {', '.join(few)}"
        for name, pod in _late(facts)
        if promised
        and facts.is_current(pod)
        and (node := facts.listed(name)) is not None
        and (few := list(troubles.lacking_devices(promised, node.gres)))
    ]


def _invalid(facts: StatusFacts) -> list[str]:
    return [
        f"Slurm starts no jobs on {name}: {node.reason or _FEWER}"
        for name, pod in _late(facts)
        if facts.is_current(pod)
        and (node := facts.listed(name)) is not None
        and "INVALID_REG" in node.states
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
    return (_condition(facts, names.RESERVED, truth, reservation.reason, reservation.text),)


def _about(
    facts: StatusFacts, kind: str, truth: Truth, reason: str, lines: Iterable[str]
) -> ObjectCondition:
    parts = list(lines)
    more = len(parts) - _MOST_NAMED - 1
    if more > 0:
        parts = [*parts[: _MOST_NAMED + 1], f"and {more} more"]
    return _condition(facts, kind, truth, reason, "; ".join(parts))


def _condition(
    facts: StatusFacts, kind: str, truth: Truth, reason: str, message: str
) -> ObjectCondition:
    return with_time(
        facts.before.conditions,
        (kind, truth, reason, message),
        generation=facts.node_set.metadata.generation,
        now=facts.situation.now,
        longest=_LONGEST_MESSAGE,
    )
