"""Decide which status changes are worth an Event: the few that people wait for or act on."""

from dataclasses import dataclass

from bridge.domain.lifecycle import waiting_reasons
from slurmjobs.objects.status import SlurmJobStatus

_ENDED = ("Succeeded", "Failed")
_ORDINARY = frozenset({"Dependency", "Suspended"})
"""Reasons for having no job that the SlurmJob's author intended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContent:
    """The content of one Event."""

    is_warning: bool
    action: str
    """What was done or seen, in CamelCase."""
    reason: str
    note: str
    is_last: bool = False
    """It reports the end: no other follows."""


def of(before: SlurmJobStatus, after: SlurmJobStatus) -> EventContent | None:
    """Return the Event that a status change is worth; None if the status itself is enough.

    A job that is submitted, runs and completes gets one Event: its end.
    """
    if before.phase in _ENDED:
        return None
    if after.phase in _ENDED:
        return EventContent(
            is_warning=after.phase == "Failed",
            action="End",
            reason=after.reason,
            note=after.message,
            is_last=True,
        )
    is_new = (after.reason, after.phase) != (before.reason, before.phase)
    if after.job_id == before.job_id and after.restarts > before.restarts:
        return _warning("Wait", "Requeued", after)
    if after.results is not None and after.results.message:
        previous = before.results.message if before.results else ""
        is_changed = after.results.message != previous
        return _warning("Collect", after.reason, after) if is_changed else None
    if after.job_id is None:
        return _without_job(before, after)
    if is_new and _needs_attention(after):
        return _warning("Wait", after.reason, after)
    return None


def _without_job(before: SlurmJobStatus, after: SlurmJobStatus) -> EventContent | None:
    if (after.reason, after.message) == (before.reason, before.message):
        return None
    if after.reason not in _ORDINARY:
        return _warning("Submit", after.reason, after)
    action = "Suspend" if after.reason == "Suspended" else "Submit"
    if after.reason == before.reason:
        return None
    return EventContent(is_warning=False, action=action, reason=after.reason, note=after.message)


def _needs_attention(status: SlurmJobStatus) -> bool:
    if status.phase == "Running":
        return status.reason == "SuspendedInSlurm"
    explanation = waiting_reasons.explain(status.reason)
    return explanation is not None and bool(explanation.next_step)


def _warning(action: str, reason: str, after: SlurmJobStatus) -> EventContent:
    return EventContent(is_warning=True, action=action, reason=reason, note=after.message)
