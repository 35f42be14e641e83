"""Explain a pod's state to people: combine what both systems report about it into one answer.

The services decide by `lifecycle`; this only reports. It may know less than they do (for a user
without access to Slurm), and then reports what the pod itself carries.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from bridge.domain.diagnosis import namespaces
from bridge.domain.diagnosis.queue import QueuedJob, ahead_of
from bridge.domain.lifecycle import outcome, reasons, waiting_reasons
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Row
from bridge.domain.lifecycle.waiting_reasons import Explanation
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from slurmruntime.values import names

_SHOWN_AHEAD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The facts that were gathered."""

    pod: Pod
    now: datetime
    namespace_is_selected: bool
    """The pod's namespace has the label by which Slurm places its pods."""
    namespace_is_excluded: bool = False
    """That label has no effect there."""
    release: str = names.RELEASE_NAMESPACE
    """slurm-bridge's own namespace."""
    queue: Sequence[QueuedJob] | None = None
    """All of Slurm's jobs; None if Slurm was not asked."""
    scheduler_name: str = names.SCHEDULER_NAME
    claims: Mapping[str, ResourceClaim | None] = field(default_factory=dict)
    """Those of the pod's resource claims that were looked up, by name; None if there is none."""


class Stage(enum.StrEnum):
    """Where a pod is, for scripts."""

    NOT_OURS = "not ours"
    WAITS = "waits"
    STARTS = "starts"
    RUNS = "runs"
    ENDS = "ends"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One pod's state in words."""

    stage: Stage
    state: str
    """Continues a sentence that starts with the pod's name: `waits in Slurm`."""
    why: str = ""
    next_step: str = ""
    """What can be done about it; "" if there is nothing to do."""
    details: tuple[tuple[str, str], ...] = ()
    """What else is known, as name and text."""


def answer(situation: Situation) -> Diagnosis:
    """Explain what the pod waits for, or how it ended."""
    pod, job = situation.pod, _job(situation)
    if not pod.is_ours(situation.scheduler_name):
        return _not_ours(situation)
    kube_node = pod.kube_node or pod.assigned_node
    node = [("node", kube_node)] if kube_node else []
    details = (*_slurm(situation, job), ("phase", pod.phase.value), *node, *_claims(situation))
    return replace(_diagnose(situation, job), details=details)


def _diagnose(situation: Situation, job: QueuedJob | None) -> Diagnosis:
    pod = situation.pod
    match lifecycle.row_of(pod):
        case Row.GATED:
            return _gated(situation, job)
        case Row.UNPLACED:
            why = "its gate was removed by hand before Slurm gave it a node"
            return Diagnosis(Stage.WAITS, "cannot be placed", why, "create the pod again")
        case Row.PLACED:
            return _placed(pod)
        case Row.BOUND:
            return _bound(pod, job)
        case Row.GATED_DELETING | Row.STOPPING | Row.DELETED:
            why = "it was deleted" if pod.is_deleting else "it has ended"
            return Diagnosis(Stage.ENDS, "ends", why)
        case Row.TERMINAL:
            return _ended(pod)
        case unreachable:
            assert_never(unreachable)


def _job(situation: Situation) -> QueuedJob | None:
    """Return the pod's placeholder: a live one before ended ones, the newest among them."""
    uid = situation.pod.uid
    mine = [
        job
        for job in situation.queue or ()
        if job.identity is not None and uid in job.identity.pods
    ]
    return max(mine, key=lambda job: (job.phase is not JobPhase.ENDED, job.id), default=None)


def _not_ours(situation: Situation) -> Diagnosis:
    namespace = situation.pod.namespace
    if situation.namespace_is_excluded:
        why = namespaces.no_effect(namespace, release=situation.release)
        step = "create it in another namespace if Slurm should place it"
    elif situation.namespace_is_selected:
        why = "it is older than its namespace's label, or of a kind that bypasses Slurm (DaemonSet)"
        step = "create it again if Slurm should place it"
    else:
        why = f"namespace {namespace} is not handed to Slurm"
        step = (
            f"kubectl label namespace {namespace} {names.ENABLED_LABEL}=true, then create it again"
        )
    details = (("scheduler", situation.pod.scheduler_name),)
    return Diagnosis(Stage.NOT_OURS, "is not Slurm's to place", why, step, details)


def _gated(situation: Situation, job: QueuedJob | None) -> Diagnosis:
    pod = situation.pod
    condition = pod.condition(names.ALLOCATED_CONDITION)
    if job is not None and job.phase is JobPhase.WAITING:
        reason = reason_of(job)
        return Diagnosis(Stage.WAITS, "waits in Slurm", reason.words, reason.next_step)
    if pod.has_foreign_gate:
        others = ", ".join(gate for gate in pod.gates if gate != names.GATE)
        why = f"it has scheduling gates that are not ours: {others}"
        return Diagnosis(Stage.WAITS, "waits for others", why, "their owners must remove them")
    if condition is not None:
        return Diagnosis(Stage.WAITS, "waits", f"{condition.message} ({condition.reason})")
    why, step = "Slurm has no placeholder for it yet", "if this lasts: kubectl slurm doctor"
    return Diagnosis(Stage.WAITS, "waits to be submitted", why, step)


def reason_of(job: QueuedJob) -> Explanation:
    """Explain why a waiting job waits, in Slurm's own words too."""
    reason = reasons.condition_reason(job.reason)
    explanation = waiting_reasons.explain(reason) or Explanation(reason)
    name = f" ({job.reason})" if job.reason else ""
    words = f"{explanation.words}{name}{reasons.says(job.reason_text)}"
    return Explanation(words, explanation.next_step)


def _placed(pod: Pod) -> Diagnosis:
    scheduled = pod.condition("PodScheduled")
    message = scheduled.message if scheduled is not None else ""
    why = message or f"{pod.bound_by} has not bound it to {pod.assigned_node} yet"
    step = "it is returned to Slurm at the bind deadline" if message else ""
    return Diagnosis(Stage.STARTS, "is being bound", why, step)


def _bound(pod: Pod, job: QueuedJob | None) -> Diagnosis:
    if not pod.has_started:
        troubles = "; ".join(pod.troubles)
        why = troubles or f"the kubelet of {pod.kube_node} has not started it yet"
        step = f"kubectl -n {pod.namespace} describe pod {pod.name}" if troubles else ""
        return Diagnosis(Stage.STARTS, "starts", why, step)
    condition = pod.condition(names.ALLOCATED_CONDITION)
    if job is not None and job.phase is JobPhase.ENDED:
        why = f"Slurm job {job.id} is {job.state}"
        return Diagnosis(Stage.ENDS, "is about to be evicted", why)
    if condition is not None and condition.status == "False":
        return Diagnosis(Stage.RUNS, "runs", f"{condition.message} ({condition.reason})")
    return Diagnosis(Stage.RUNS, "runs")


def _ended(pod: Pod) -> Diagnosis:
    condition = pod.condition(names.DISRUPTION_TARGET)
    how = outcome.in_words(outcome.of(pod))
    if condition is not None:
        why = f"{condition.message} ({condition.reason})"
    else:
        why = f"{pod.reason}: {how}" if pod.reason else how
    return Diagnosis(Stage.ENDED, "has ended", why)


def _slurm(situation: Situation, job: QueuedJob | None) -> Sequence[tuple[str, str]]:
    if situation.queue is None:
        known = situation.pod.job_id
        return (("Slurm job", f"{known} (Slurm was not asked)"),) if known else ()
    if job is None:
        return (("Slurm job", "none"),)
    return of_job(job, situation.queue, situation.now)


def of_job(job: QueuedJob, queue: Sequence[QueuedJob], now: datetime) -> Sequence[tuple[str, str]]:
    """Return what Slurm reports about a job, as name and text.

    queue: all of Slurm's jobs.
    """
    rows = [
        ("Slurm job", f"{job.id} {job.state}"),
        ("asks for", job.tres),
        ("as", _fields(user=job.user, account=job.account, partition=job.partition, qos=job.qos)),
    ]
    if job.phase is JobPhase.WAITING:
        ahead = ahead_of(job, queue)
        first = ", ".join(f"{other.id} of {other.user}" for other in ahead[:_SHOWN_AHEAD])
        more = ", …" if len(ahead) > _SHOWN_AHEAD else ""
        rows.append(("priority", str(job.priority)))
        rows.append(("ahead of it", f"{len(ahead)} ({first}{more})" if ahead else "no job"))
        if job.started_at is not None and job.started_at > now:
            rows.append(("expected start", f"{job.started_at:%Y-%m-%d %H:%M} UTC"))
    elif job.ends_at is not None and job.phase is not JobPhase.ENDED:
        rows.append(("ends by", f"{job.ends_at:%Y-%m-%d %H:%M} UTC"))
    return [(name, text) for name, text in rows if text]


def _claims(situation: Situation) -> Iterator[tuple[str, str]]:
    for resource_claim in situation.pod.resource_claims:
        if not resource_claim.claim:
            text = f"not made from template {resource_claim.template} yet"
        elif resource_claim.claim not in situation.claims:
            text = f"claim {resource_claim.claim}, which could not be read"
        else:
            text = f"claim {resource_claim.claim}{_devices_text(situation.claims[resource_claim.claim])}"
        yield f"claim {resource_claim.entry}", text


def _devices_text(claim: ResourceClaim | None) -> str:
    if claim is None:
        return ", which does not exist"
    if not claim.devices:
        return ", without devices: it gets those that Slurm gives the pod's job"
    devices = ", ".join(device.device for device in claim.devices)
    drivers = ", ".join(sorted({device.driver for device in claim.devices}))
    return f": {devices} of {drivers}" + (f" on {claim.node}" if claim.node else "")


def _fields(**named: str) -> str:
    return ", ".join(f"{name} {text}" for name, text in named.items() if text)
