"""The picture of jobs: the states of all, and then only those jobs whose state has changed.

A job's state takes 38 bytes, the job 5 kB. A change that the state does not show, such as a new time
limit, is seen at the job's next change of state, at the next full listing (every `resync_s`), or at
once if this client made it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple

from msgspec import Raw

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import NotFound
from slurmclient.watching import states
from slurmclient.watching.events import Event, Restarted, V
from slurmclient.watching.identity import Identity, is_alive
from slurmclient.watching.in_turn import in_turn
from slurmclient.watching.picture import Clock, Picture
from slurmclient.watching.states import State, States
from slurmclient.wire import reading
from slurmclient.wire.reading import Answer, DecodeResult, Model, Unreadable
from slurmclient.wire.values import Time

_AT_A_TIME: Final = 4
"""Jobs to read concurrently; the client's other connections stay free."""
_MANY: Final = 50
_SHARE: Final = 20
"""More changed jobs than `_MANY` and a `_SHARE`th of all are cheaper to list than to read singly."""


class _Statistics(Model, frozen=True):
    req_time_start: Time = None


class _Diagnosis(Answer, frozen=True):
    statistics: _Statistics = _Statistics()


class _Job(NamedTuple, Generic[V]):
    identity: Identity
    read: DecodeResult[V] | Unreadable


class _Jobs(NamedTuple, Generic[V]):
    jobs: list[_Job[V]]
    is_partial: bool
    """Whether there were others, whose ids could not be decoded."""


class JobPicture(Picture[V]):
    """Jobs by id; each task of an array and component of a heterogeneous job has its own."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock, *, resync_s: float) -> None:
        """Start empty; list all jobs at least every `resync_s`."""
        super().__init__(speaker, kind, clock)
        self._resync_s = resync_s
        self._resync_at = 0.0
        self._states: Mapping[str, Sequence[State]] = {}
        """By base: the states at the last poll that read the jobs."""
        self._listed: States | None = None
        """The list that these states come from; None if some of them are missing."""
        self._members: dict[str, dict[str, object]] = {}
        """By base: the ids of its jobs, with `Identity.name` of each."""
        self._has_polled = False
        self._started: Time = None
        """The start of slurmctld's statistics, which changes at its restart and at midnight.

        None if it is unknown, as in the first seconds of a slurmctld.
        """

    async def poll(self) -> list[Event[V]]:
        """Read all states, and the jobs whose state has changed."""
        began = self._clock()
        listed = await states.read(self._speaker, self._listed)
        is_repeated = listed is self._listed
        now = self._states if is_repeated else states.by_base(listed.listed)
        # Read this after the states: if slurmctld has not restarted by now, the states are its own.
        started = await self._read_start()
        is_same = started is not None and started == self._started
        if not is_same or began >= self._resync_at:
            may_be_others = not is_same and self._has_polled
            events = await self._list_all(began, may_be_others=may_be_others)
            self._has_polled = True
            self._started = started
            self._resync_at = began + self._resync_s
        else:
            events = [] if is_repeated else await self._poll_changed(now, began)
        # A job that was read singly in the meantime may be older than its state here: read it again next time.
        self._forget_notes(began)
        self._states, self._listed = now, listed
        if self._noted:
            self._states = {base: entry for base, entry in now.items() if base not in self._noted}
            self._listed = None
        return events

    async def poll_one(self, name: str) -> list[Event[V]]:
        """Read one job, with all that belongs to the same array or heterogeneous job."""
        base = name.partition("_")[0].partition("+")[0]
        read = await self._read(base)
        for job in read.jobs:  # the name may be a sluid, or the id of a component
            base = job.identity.base
        self._noted[base] = self._clock()
        return self._take(base, read.jobs, is_partial=read.is_partial)

    async def _read_start(self) -> Time:
        diagnosis = await self._speaker.read_answer("slurm_get_diag", _Diagnosis)
        return diagnosis.statistics.req_time_start

    async def _list_all(self, began: float, *, may_be_others: bool) -> list[Event[V]]:
        """List all jobs; if they may be others with the same ids, check for a restart."""
        listed = await self._speaker.read_all("slurm_get_jobs", "jobs", Raw)  # type: ignore[type-var]  # Raw is no struct
        read = self._identified(listed)
        jobs_by_base: dict[str, list[_Job[V]]] = {}
        for job in read.jobs:
            jobs_by_base.setdefault(job.identity.base, []).append(job)
        events: list[Event[V]] = []
        if may_be_others and self._has_lost_state(jobs_by_base):
            events.append(Restarted())
        for base in [*jobs_by_base, *(base for base in self._members if base not in jobs_by_base)]:
            if not self._is_noted_since(base, began):
                events += self._take(base, jobs_by_base.get(base, []), is_partial=read.is_partial)
        if not read.is_partial:
            self.odd.pop("", None)
        return events

    async def _poll_changed(
        self, now: Mapping[str, Sequence[State]], began: float
    ) -> list[Event[V]]:
        changed = [base for base, state in now.items() if self._states.get(base) != state]
        if len(changed) > max(_MANY, len(now) // _SHARE):
            return await self._list_all(began, may_be_others=False)
        events = await self._read_singly(changed, began)
        for base in sorted(self._members.keys() - now.keys()):
            if not self._is_noted_since(base, began):
                events += self._take(base, [])
        return events

    async def _read_singly(self, bases: Sequence[str], began: float) -> list[Event[V]]:
        """Read jobs, a few concurrently; return the events in the order of the bases."""
        read_jobs = await in_turn(bases, self._read, at_a_time=_AT_A_TIME)
        return [
            event
            for base in bases
            if not self._is_noted_since(base, began)
            for event in self._take(
                base, read_jobs[base].jobs, is_partial=read_jobs[base].is_partial
            )
        ]

    async def _read(self, base: str) -> "_Jobs[V]":
        try:
            listed = await self._speaker.read_all("slurm_get_job", "jobs", Raw, {"job_id": base})  # type: ignore[type-var]  # Raw is no struct
        except NotFound:
            return _Jobs([], is_partial=False)
        return self._identified(listed)

    def _identified(self, listed: Iterable[Raw]) -> "_Jobs[V]":
        jobs: list[_Job[V]] = []
        is_partial = False
        for index, raw in enumerate(listed):
            body = bytes(raw)
            identity = reading.lenient(body, Identity, index)
            if isinstance(identity, Unreadable):
                is_partial = True
                self._set_aside("", identity.why)
            else:
                read = reading.lenient(body, self._kind, index)
                jobs.append(_Job(identity.value, read))
        return _Jobs(jobs, is_partial=is_partial)

    def _take(
        self, base: str, jobs: "Iterable[_Job[V]]", *, is_partial: bool = False
    ) -> list[Event[V]]:
        """Store all jobs of a base; one that is another job now is deleted and added.

        Args:
            base: The base.
            jobs: Its jobs.
            is_partial: Whether the ids of some jobs could not be decoded; they may be the missing ones.
        """
        before = self._members.pop(base, {})
        now = {str(job.identity.job_id): job.identity.name for job in jobs}
        events: list[Event[V]] = []
        for key, name in before.items():
            if is_partial and key not in now:
                now[key] = name
            elif now.get(key) != name:
                events += self._put(key, None)
        for job in jobs:
            events += self._store(str(job.identity.job_id), job.read)
        if now:
            self._members[base] = now
        return events

    def _has_lost_state(self, jobs_by_base: "Mapping[str, list[_Job[V]]]") -> bool:
        """Check whether slurmctld reused an id, or lacks a job that had not ended."""
        return any(self._is_another(base, jobs) for base, jobs in jobs_by_base.items()) or any(
            base not in jobs_by_base and is_alive(self._states.get(base, ()))
            for base in self._members
        )

    def _is_another(self, base: str, jobs: "list[_Job[V]]") -> bool:
        known = self._members.get(base, {})
        return any(
            known.get(str(job.identity.job_id), job.identity.name) != job.identity.name
            for job in jobs
        )
