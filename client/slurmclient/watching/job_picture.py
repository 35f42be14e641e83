"""Pictures: what Slurm has of one kind, kept up to date look by look.

Slurm has no watch. A look asks what has changed and tells it as events, in order, each object's own old and new version in
them. What comes and goes between two looks is not seen.

Jobs are looked at cheaply: the states of all (38 bytes a job), then those jobs whose state has changed, one by one. A change
that does not show in the state, as a new time limit, is seen with the next change of state, with the next full look (every
`resync_s`), or at once if this client made it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Raw, Struct

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import NotFound
from slurmclient.wire import reading as wire
from slurmclient.wire.reading import Model, Time

V = TypeVar("V", bound=Struct)


class Added(Struct, Generic[V], frozen=True):
    """An object is there that was not."""

    new: V


class Modified(Struct, Generic[V], frozen=True):
    """An object is another than it was."""

    old: V
    new: V


class Deleted(Struct, Generic[V], frozen=True):
    """An object is not there any more; of a job: Slurm has forgotten it."""

    old: V


class Restarted(Struct, frozen=True):
    """What was known is not true any more: Slurm lost its state, or gave a job's id to another. A new picture follows."""


Event: TypeAlias = Added[V] | Modified[V] | Deleted[V] | Restarted

Clock: TypeAlias = Callable[[], float]
"""Monotonic seconds."""

_AT_A_TIME: Final = 4
"""Jobs looked at; the client's other connections stay free."""
_MANY: Final = 50
"""So many changed jobs, or a twentieth of all if that is more, are cheaper to list whole than to look at one by one."""
_SHARE: Final = 20


class Picture(Generic[V]):
    """Objects by their key, and how to look again."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock) -> None:
        self._speaker = speaker
        self._kind = kind
        self._clock = clock
        self.objects: dict[str, V] = {}
        self._noted: dict[str, float] = {}
        """Objects looked at alone, and when: a look that began earlier says nothing of them."""

    async def look(self) -> list[Event[V]]:
        """Look at everything once; return what has changed.

        Raises:
            SlurmError: the look failed; the picture is as it was, or has changed in a part that was told.
        """
        raise NotImplementedError

    async def look_at(self, name: str) -> list[Event[V]]:
        """Look at one object: this client has just changed it."""
        raise NotImplementedError

    def _put(self, key: str, new: V | None) -> Iterable[Event[V]]:
        """Take in what an object is now; None: it is gone."""
        old = self.objects.get(key)
        if new is None:
            if old is not None:
                del self.objects[key]
                yield Deleted(old)
        elif old is None:
            self.objects[key] = new
            yield Added(new)
        elif old != new:
            self.objects[key] = new
            yield Modified(old, new)

    def _is_noted_since(self, key: str, began: float) -> bool:
        return self._noted.get(key, began - 1) >= began

    def _forget_notes(self, began: float) -> None:
        self._noted = {key: at for key, at in self._noted.items() if at >= began}


class _Named(Struct, frozen=True):
    name: str


class NamedPicture(Picture[V]):
    """Nodes, partitions, reservations: listed whole, unless Slurm says that nothing has changed."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[V],
        clock: Clock,
        *,
        lists: str,
        gets: str,
        key: str,
        parameter: str,
    ) -> None:
        super().__init__(speaker, kind, clock)
        self._lists = lists
        self._gets = gets
        self._key = key
        self._parameter = parameter
        self._since: Time = None

    async def look(self) -> list[Event[V]]:
        """List them, if one has changed."""
        began = self._clock()
        query = {"update_time": self._since}
        listed = await self._speaker.read(self._lists, self._key, Raw, query=query)  # type: ignore[type-var]  # Raw is no struct
        if listed is None:
            return []
        found = dict(_named(listed, self._kind))
        self._since = listed.updated_at
        keys = [*found, *(key for key in self.objects if key not in found)]
        events = [
            event
            for key in keys
            if not self._is_noted_since(key, began)
            for event in self._put(key, found.get(key))
        ]
        self._forget_notes(began)
        return events

    async def look_at(self, name: str) -> list[Event[V]]:
        """Read one."""
        try:
            found: V | None = await self._speaker.read_one(
                self._gets, self._key, self._kind, {self._parameter: name}
            )
        except NotFound:
            found = None
        self._noted[name] = self._clock()
        return list(self._put(name, found))


class _State(Struct, frozen=True, gc=False):
    job_id: str
    state: tuple[str, ...] = ()


class _StepId(Struct, frozen=True):
    sluid: str = ""


class _Identity(Model, frozen=True):
    """What tells a job from another one that has its id after slurmctld lost its state."""

    job_id: int
    array_job_id: wire.Number = None
    het_job_id: wire.Number = None
    step_id: _StepId = _StepId()
    submit_time: Time = None

    @property
    def base(self) -> str:
        """The id of its array, or of its heterogeneous job, or its own."""
        return str(int(self.array_job_id or self.het_job_id or self.job_id))

    @property
    def name(self) -> object:
        """Unique for ever; before v0.0.44 there is only the time of its submission."""
        return self.step_id.sluid or self.submit_time


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
        listed = await self._speaker.read("slurm_get_jobs_state", "jobs", _State)
        states = _by_base(listed or ())
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
        return wire.decode(body, _Diagnosis).statistics.req_time_start

    async def _list_all(self, began: float, *, may_be_others: bool) -> list[Event[V]]:
        listed = await self._speaker.read("slurm_get_jobs", "jobs", Raw)  # type: ignore[type-var]  # Raw is no struct
        found: dict[str, list[tuple[_Identity, V]]] = {}
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

        async def read(base: str) -> list[tuple[_Identity, V]]:
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

    async def _read(self, base: str) -> list[tuple[_Identity, V]]:
        try:
            listed = await self._speaker.read("slurm_get_job", "jobs", Raw, {"job_id": base})  # type: ignore[type-var]  # Raw is no struct
        except NotFound:
            return []
        return list(_identified(listed or (), self._kind))

    def _take(self, base: str, jobs: list[tuple[_Identity, V]]) -> list[Event[V]]:
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

    def _is_another(self, base: str, jobs: list[tuple[_Identity, V]]) -> bool:
        known = self._members.get(base, {})
        return any(
            known.get(str(identity.job_id), identity.name) != identity.name for identity, _ in jobs
        )

    def _is_alive(self, base: str) -> bool:
        """Check whether a job had not ended when it was last seen: Slurm does not forget such a job."""
        return not _ALIVE.isdisjoint(_words(self._states.get(base)))


_ALIVE: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED"})


def _words(states: object) -> Iterator[str]:
    match states:
        case str():
            yield states
        case tuple():
            for one in states:
                yield from _words(one)
        case _:
            pass


def _by_base(listed: Iterable[_State]) -> Mapping[str, object]:
    """Put the states of an array's tasks, and of a heterogeneous job's components, together; a job of its own has its states."""
    found: dict[str, object] = {one.job_id: one.state for one in listed}
    several: dict[str, list[tuple[str, object]]] = {}
    for job_id in [one for one in found if not one.isdecimal()]:
        leader, plus, offset = job_id.partition("+")
        if plus and offset.isdecimal() and leader.isdecimal():
            leader = str(int(leader) - int(offset))  # 6+1 is the component of 5, whose id is 6
        several.setdefault(leader.partition("_")[0], []).append((job_id, found.pop(job_id)))
    for base, states in several.items():
        found[base] = ((base, found.get(base)), *states)
    return found


def _identified(listed: Iterable[Raw], kind: type[V]) -> Iterable[tuple[_Identity, V]]:
    for index, raw in enumerate(listed):
        identity, _ = wire.one(bytes(raw), _Identity, index)
        job, _ = wire.one(bytes(raw), kind, index)
        if identity is not None and job is not None:
            yield identity, job


def _named(listed: Iterable[Raw], kind: type[V]) -> Iterable[tuple[str, V]]:
    for index, raw in enumerate(listed):
        named, _ = wire.one(bytes(raw), _Named, index)
        found, _ = wire.one(bytes(raw), kind, index)
        if named is not None and found is not None:
            yield named.name, found


AnyPicture: TypeAlias = Picture[Any]
