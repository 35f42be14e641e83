"""Which changes of a status are worth an Event: few, and those that people wait for or act on."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from bridge.domain.lifecycle import waiting_reasons
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.values.ids import WorkloadKey

MOST: Final = 20
"""Events of one SlurmJob besides its end: somebody may hold and release its job for ever."""

_ENDED = ("Succeeded", "Failed")
_ORDINARY = frozenset({"Dependency", "Suspended"})
"""Reasons for having no job that are as the SlurmJob's author wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNews:
    """The content of one Event."""

    is_warning: bool
    action: str
    """What was done or seen, in CamelCase."""
    reason: str
    note: str
    is_last: bool = False
    """It is about the end: nothing follows."""


class NewsDesk:
    """Counts what has been told of each SlurmJob, and bounds it."""

    def __init__(self) -> None:
        self._told: Counter[WorkloadKey] = Counter()

    def admits(self, key: WorkloadKey, news: JobNews) -> bool:
        """Check whether one more may be told, and count it; an end always may."""
        if self._told[key] >= MOST and not news.is_last:
            return False
        self._told[key] += 1
        return True

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that has ended or is gone."""
        self._told.pop(key, None)


def of(before: SlurmJobStatus, after: SlurmJobStatus) -> JobNews | None:
    """Return what is new to those who know `before`; None for what only the status shows.

    A job that is submitted, runs and completes makes one Event: its end.
    """
    if before.phase in _ENDED:
        return None
    if after.phase in _ENDED:
        return JobNews(
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
        was = before.results.message if before.results else ""
        is_other = after.results.message != was
        return _warning("Collect", after.reason, after) if is_other else None
    if after.job_id is None:
        return _without_job(before, after)
    if is_new and _needs_somebody(after):
        return _warning("Wait", after.reason, after)
    return None


def _without_job(before: SlurmJobStatus, after: SlurmJobStatus) -> JobNews | None:
    if (after.reason, after.message) == (before.reason, before.message):
        return None
    if after.reason not in _ORDINARY:
        return _warning("Submit", after.reason, after)
    action = "Suspend" if after.reason == "Suspended" else "Submit"
    if after.reason == before.reason:
        return None
    return JobNews(is_warning=False, action=action, reason=after.reason, note=after.message)


def _needs_somebody(status: SlurmJobStatus) -> bool:
    if status.phase == "Running":
        return status.reason == "SuspendedInSlurm"
    found = waiting_reasons.explain(status.reason)
    return found is not None and bool(found.next_step)


def _warning(action: str, reason: str, after: SlurmJobStatus) -> JobNews:
    return JobNews(is_warning=True, action=action, reason=reason, note=after.message)
