"""Write the status of an object, and an Event for each of its conditions that has another reason since."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from slurmoperator.recent import RecentResults
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.kube.apply.custom import CustomKind, CustomObject
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Process
from slurmruntime.process.events import EventRecorder, EventType
from slurmruntime.values.oddities import About

SPACING: Final = timedelta(minutes=10)
"""Between two Events about the same reason of the same condition, which may come and go."""


class StatusReports:
    """Reports to objects, during one term of leadership."""

    def __init__(self, kube: KubeClient, process: Process) -> None:
        self._kube = kube
        self._events = EventRecorder(kube=kube, reporter=process.reporter, clock=process.clock)
        self._sent = RecentResults[None, bool](process.clock.monotonic)
        """Whether there was just an Event, by the object's uid, condition and reason."""

    async def write(
        self,
        kind: CustomKind[Any, Any],
        cache: Cache[CustomObject[Any, Any]],
        watched: CustomObject[Any, Any],
        after: Any,
    ) -> None:
        """Write a status unless the object has it already, and Events; a failure of those is only logged.

        Raises:
            Conflict: the object has changed.
            NotFound: it is gone.
        """
        await kind.write_status(self._kube, cache, watched, after)
        meta = watched.metadata
        about = About(
            api_version=kind.api_version,
            kind=kind.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )
        for condition in changed(watched.status.conditions, after.conditions):
            topic = f"{meta.uid} {condition.type} {condition.reason}"
            if self._sent.of(topic, None):
                continue
            self._sent.put(topic, None, result=True, lasts=SPACING)
            await self._send(about, condition)

    async def _send(self, about: About, condition: ObjectCondition) -> None:
        is_true = condition.status == "True"
        await self._events.record(
            about,
            EventType.NORMAL if is_true else EventType.WARNING,
            action=condition.type,
            reason=condition.reason,
            note=condition.message or f"{condition.type} is {condition.status}",
        )


def changed(
    before: Iterable[ObjectCondition], after: Iterable[ObjectCondition]
) -> Iterator[ObjectCondition]:
    """Yield the conditions that have another reason than before; one that is new and true is no news."""
    reasons = {condition.type: condition.reason for condition in before}
    for condition in after:
        is_news = condition.type in reasons or condition.status != "True"
        if is_news and condition.reason != reasons.get(condition.type):
            yield condition
