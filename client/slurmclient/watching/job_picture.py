"""Pictures: what Slurm has of one kind, kept up to date look by look.

Slurm has no watch. A look asks what has changed and tells it as events, in order, each object's own old and new version in
them. What comes and goes between two looks is not seen.

Jobs are looked at cheaply: the states of all (38 bytes a job), then those jobs whose state has changed, one by one. A change
that does not show in the state, as a new time limit, is seen with the next change of state, with the next full look (every
`resync_s`), or at once if this client made it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Raw

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import NotFound
from slurmclient.watching.events import Event, Restarted, V
from slurmclient.watching.identity import ALIVE, Identity, State, by_base, words
from slurmclient.watching.picture import Clock, Picture
from slurmclient.wire import reading
from slurmclient.wire.reading import Model
from slurmclient.wire.values import Time

_AT_A_TIME: Final = 4
"""Jobs looked at; the client's other connections stay free."""


_MANY: Final = 50
"""So many changed jobs, or a twentieth of all if that is more, are cheaper to list whole than to look at one by one."""


_SHARE: Final = 20


class _Statistics(Model, frozen=True):
    req_time_start: Time = None


class _Diagnosis(Model, frozen=True):
    statistics: _Statistics = _Statistics()


class JobPicture(Picture[V]):
    """Jobs by their ids; the tasks of an array and the components of a heterogeneous job each have their own."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock, *, resync_s: float) -> None:
        super().__init__(speaker, kind, clock)
        self._resync_s = resync_s
        self._resync_at = 0.0
        self._states: Mapping[str, object] = {}
        """By base: the states of what belongs to it, as they were when it was looked at."""
        self._members: dict[str, dict[str, object]] = {}
        """By base: the ids of its jobs, and who they are."""
        self._started: Time = None
        """When slurmctld began to count; a restart, and midnight, begin anew."""

    async def look(self) -> list[Event[V]]:
        """Read all states, and look at what has changed."""
        began = self._clock()
        listed = await self._speaker.read("slurm_get_jobs_state", "jobs", State)
        states = by_base(listed or ())
        # Asked after the states: if slurmctld is the one we know, they are of the one we know.
        started = await self._asked_start()
        is_new = started != self._started
        if is_new or began >= self._resync_at:
            events = await self._list_all(began, may_be_others=is_new and self._started is not None)
            self._started = started
            self._resync_at = began + self._resync_s
            self._states = states
            return events
        changed = [base for base, state in states.items() if self._states.get(base) != state]
        gone = self._members.keys() - states.keys()
        if len(changed) > max(_MANY, len(states) // _SHARE):
            events = await self._list_all(began, may_be_others=False)
        else:
            events = await self._look_at_each(changed, began)
            for base in sorted(gone):
                if not self._is_noted_since(base, began):
                    events += self._take(base, [])
        self._states = states
        self._forget_notes(began)
        return events

    async def look_at(self, name: str) -> list[Event[V]]:
        """Read one job, or all that belong to it."""
        base = name.partition("_")[0].partition("+")[0]
        found = await self._read(base)
        if found:  # asked for by its sluid, or as a component
            base = found[0][0].base
        self._noted[base] = self._clock()
        return self._take(base, found)

    async def _asked_start(self) -> Time:
        body = await self._speaker.caller.call("slurm_get_diag", user=self._speaker.user)
        return reading.decode(body, _Diagnosis).statistics.req_time_start

    async def _list_all(self, began: float, *, may_be_others: bool) -> list[Event[V]]:
        listed = await self._speaker.read("slurm_get_jobs", "jobs", Raw)  # type: ignore[type-var]  # Raw is no struct
        found: dict[str, list[tuple[Identity, V]]] = {}
        for identity, job in _identified(listed or (), self._kind):
            found.setdefault(identity.base, []).append((identity, job))
        lost = may_be_others and any(self._is_another(base, jobs) for base, jobs in found.items())
        if may_be_others and not lost:
            lost = any(base not in found and self._is_alive(base) for base in self._members)
        events: list[Event[V]] = [Restarted()] if lost else []
        for base in [*found, *(base for base in self._members if base not in found)]:
            if not self._is_noted_since(base, began):
                events += self._take(base, found.get(base, []))
        self._forget_notes(began)
        return events

    async def _look_at_each(self, bases: Iterable[str], began: float) -> list[Event[V]]:
        """Read some jobs at a time; the events come in the order of the list."""
        slots = asyncio.Semaphore(_AT_A_TIME)

        async def read(base: str) -> list[tuple[Identity, V]]:
            async with slots:
                return await self._read(base)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {base: group.create_task(read(base)) for base in bases}
        except ExceptionGroup as failures:  # the first says it all: they speak of the same server
            raise failures.exceptions[0] from None
        return [
            event
            for base, task in tasks.items()
            if not self._is_noted_since(base, began)
            for event in self._take(base, task.result())
        ]

    async def _read(self, base: str) -> list[tuple[Identity, V]]:
        try:
            listed = await self._speaker.read("slurm_get_job", "jobs", Raw, {"job_id": base})  # type: ignore[type-var]  # Raw is no struct
        except NotFound:
            return []
        return list(_identified(listed or (), self._kind))

    def _take(self, base: str, jobs: list[tuple[Identity, V]]) -> list[Event[V]]:
        """Take in all that belongs to a base; a job that is another one now was deleted and added."""
        before = self._members.pop(base, {})
        now = {str(identity.job_id): identity.name for identity, _ in jobs}
        events: list[Event[V]] = []
        for key, name in before.items():
            if now.get(key) != name:
                events += self._put(key, None)
        for identity, job in jobs:
            events += self._put(str(identity.job_id), job)
        if now:
            self._members[base] = now
        return events

    def _is_another(self, base: str, jobs: list[tuple[Identity, V]]) -> bool:
        known = self._members.get(base, {})
        return any(
            known.get(str(identity.job_id), identity.name) != identity.name for identity, _ in jobs
        )

    def _is_alive(self, base: str) -> bool:
        """Check whether a job had not ended when it was last seen: Slurm does not forget such a job."""
        return not ALIVE.isdisjoint(words(self._states.get(base)))


def _identified(listed: Iterable[Raw], kind: type[V]) -> Iterable[tuple[Identity, V]]:
    for index, raw in enumerate(listed):
        identity, _ = reading.one(bytes(raw), Identity, index)
        job, _ = reading.one(bytes(raw), kind, index)
        if identity is not None and job is not None:
            yield identity, job


AnyPicture: TypeAlias = Picture[Any]
