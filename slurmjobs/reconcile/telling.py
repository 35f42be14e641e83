"""Tell people what happened to a SlurmJob: Events, few of each, besides its status."""

import structlog

from slurmjobs.lifecycle import news
from slurmjobs.lifecycle.news import NewsDesk
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.kube import errors, events
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.events import Event, EventType, Reporter
from slurmruntime.process.clock import Clock
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import About

_log = structlog.get_logger(__name__)


def about(job: SlurmJobObject) -> About:
    """Return whom Events of a SlurmJob are about."""
    return About(
        api_version=job.resource.api_version,
        kind=job.resource.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
    )


class JobEvents:
    """Sends the Events of one term of leadership."""

    def __init__(self, kube: KubeClient, *, by: Reporter, clock: Clock) -> None:
        self._kube = kube
        self._by = by
        self._clock = clock
        self._desk = NewsDesk()

    async def tell(self, job: SlurmJobObject, after: SlurmJobStatus) -> None:
        """Send the Event, if any, that a new status is worth; a lost one blocks nothing.

        Args:
            job: with the status before.
            after: what was written.
        """
        found = news.of(job.status, after)
        key = WorkloadKey(job.metadata.uid)
        if found is None or not self._desk.admits(key, found):
            return
        if found.is_last:
            self._desk.forget(key)
        event = Event(
            type=EventType.WARNING if found.is_warning else EventType.NORMAL,
            action=found.action,
            reason=found.reason,
            note=found.note,
            at=self._clock.now(),
        )
        try:
            await events.create_event(self._kube, about(job), event, by=self._by)
        except errors.KubeError as error:
            _log.warning("event.lost", error=str(error))

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that is gone."""
        self._desk.forget(key)
