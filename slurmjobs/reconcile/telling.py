"""Send Events about a SlurmJob, a few in addition to its status."""

from collections import Counter
from typing import Final

from slurmjobs.lifecycle import status_events
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.process.events import EventRecorder, EventType
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import About

MOST: Final = 20
"""Events of one SlurmJob besides its end: a user may hold and release its job over and over."""


def about(job: SlurmJobObject) -> About:
    """Return the object that a SlurmJob's Events are about."""
    return About(
        api_version=job.resource.api_version,
        kind=job.resource.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
    )


class JobEvents:
    """Sends the Events of one term of leadership."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._sent: Counter[WorkloadKey] = Counter()

    async def report(self, job: SlurmJobObject, after: SlurmJobStatus) -> None:
        """Send the Event, if any, that a new status of a job is worth; a failure is only logged."""
        content = status_events.of(job.status, after)
        key = WorkloadKey(job.metadata.uid)
        if content is None or (self._sent[key] >= MOST and not content.is_last):
            return
        self._sent[key] += 1
        if content.is_last:
            self.forget(key)
        await self._events.record(
            about(job),
            EventType.WARNING if content.is_warning else EventType.NORMAL,
            action=content.action,
            reason=content.reason,
            note=content.note,
        )

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that is gone."""
        self._sent.pop(key, None)
