"""The picture of jobs: the states of all, and then only those jobs whose state has changed.

A job's state takes 38 bytes, the job 5 kB. A change that the state does not show, such as a new time
limit, is seen at the job's next change of state, at the next full listing (every `resync_s`), or at
once if this client made it.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple

from msgspec import Raw

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import NotFound
from slurmclient.watching.events import Event, Restarted, V
from slurmclient.watching.follower import JobFollower
from slurmclient.watching.identity import Identity, is_alive
from slurmclient.watching.in_turn import in_turn
from slurmclient.watching.picture import Clock, Picture
from slurmclient.watching.unread import Pace
from slurmclient.wire import reading
from slurmclient.wire.reading import DecodeResult, Unreadable

_AT_A_TIME: Final = 4
"""Jobs to read concurrently; the client's other connections stay free."""
_MANY: Final = 50
_SHARE: Final = 20
"""More changed jobs than `_MANY` and a `_SHARE`th of all are cheaper to list than to read singly."""


class _Job(NamedTuple, Generic[V]):
    identity: Identity
    read: DecodeResult[V] | Unreadable


class _Jobs(NamedTuple, Generic[V]):
    by_record: dict[int, list[_Job[V]]]
    is_partial: bool
    """Whether there were others, whose ids could not be decoded."""


class _Record(NamedTuple):
    names: Mapping[str, object]
    """The ids of its jobs, with `Identity.name` of each: several of a heterogeneous job."""
    states: frozenset[str] | None
    """As listed before they were read; None if they may have changed since."""


class JobPicture(Picture[V]):
    """Jobs by id; each task of an array and component of a heterogeneous job has its own."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock, *, resync_s: float) -> None:
        """Start empty; list all jobs at least every `resync_s`."""
        super().__init__(speaker, kind, clock)
        self._follower = JobFollower[_Record](
            speaker, self, clock=clock, pace=Pace(burst=sys.maxsize), arrays=True
        )
        self._resync_s = resync_s
        self._resync_at = 0.0
        self._began = 0.0
        self._records: dict[int, _Record] = {}
        """All jobs, those of an earlier slurmctld included until they are listed again."""
        self._may_be_others = False
        """Whether jobs may be others with the same ids."""
        self._events: list[Event[V]] = []

    async def poll(self) -> list[Event[V]]:
        """Read all states, and the jobs whose state has changed."""
        began = self._began = self._clock()
        wanted = self._records.keys() if self._lists_all else ()
        await self._follower.read(wanted=wanted, complete=True)
        self._forget_notes(began)
        return self._new_events()

    async def poll_one(self, name: str) -> list[Event[V]]:
        """Read one job, with all that belongs to the same array or heterogeneous job."""
        read = await self._read(name)
        base = name.partition("_")[0].partition("+")[0]
        for id_ in read.by_record or ([int(base)] if base.isdecimal() else []):  # or a sluid
            known = self._records.get(id_)
            self._noted[str(id_)] = self._clock()
            self._take(id_, read, known.states if known else None)
            self._follower.note(id_, self._records[id_], self._records[id_].states)
        return self._new_events()

    @property
    def _lists_all(self) -> bool:
        return self._may_be_others or self._began >= self._resync_at

    def _new_events(self) -> list[Event[V]]:
        events, self._events = self._events, []
        return events

    def update(self, _job: _Record, _states: frozenset[str]) -> None:
        """Have every job fetched whose state has changed."""

    def forget(self, id_: int, _: _Record) -> bool:
        """Delete the jobs of a record that Slurm no longer lists."""
        for key in self._records.pop(id_).names:
            self._events += self._put(key, None)
        return True

    def restart(self) -> None:
        """List all jobs, as they may be others."""
        self._may_be_others = True

    async def fetch(self, ids: Sequence[int], states: Mapping[int, frozenset[str]]) -> bool:
        """Read jobs, a few concurrently, or list all if that is cheaper or due."""
        if self._lists_all or len(ids) > max(_MANY, len(states) // _SHARE):
            listed = await self._speaker.read_all("slurm_get_jobs", "jobs", Raw)  # type: ignore[type-var]  # Raw is no struct
            read = self._identified(listed)
            if self._may_be_others and self._has_lost_state(read.by_record):
                self._events.append(Restarted())
            taken = [
                self._take_listed(id_, read, states)
                for id_ in dict.fromkeys([*read.by_record, *self._records, *states])
            ]
            if not read.is_partial:
                self.odd.pop("", None)
            self._may_be_others, self._resync_at = False, self._began + self._resync_s
        else:
            answers = await in_turn(ids, lambda id_: self._read(str(id_)), at_a_time=_AT_A_TIME)
            taken = [self._take_listed(id_, answers[id_], states) for id_ in ids]
        return all(taken)

    async def _read(self, job_id: str) -> "_Jobs[V]":
        try:
            listed = await self._speaker.read_all("slurm_get_job", "jobs", Raw, {"job_id": job_id})  # type: ignore[type-var]  # Raw is no struct
        except NotFound:
            return _Jobs({}, is_partial=False)
        return self._identified(listed)

    def _identified(self, listed: Iterable[Raw]) -> "_Jobs[V]":
        by_record: dict[int, list[_Job[V]]] = {}
        is_partial = False
        for index, raw in enumerate(listed):
            body = bytes(raw)
            identity = reading.lenient(body, Identity, index)
            if isinstance(identity, Unreadable):
                is_partial = True
                self._set_aside("", identity.why)
            else:
                job = _Job(identity.value, reading.lenient(body, self._kind, index))
                by_record.setdefault(job.identity.record, []).append(job)
        return _Jobs(by_record, is_partial)

    def _take_listed(
        self, id_: int, read: "_Jobs[V]", states: Mapping[int, frozenset[str]]
    ) -> bool:
        """Store the jobs of a record; return False if it has to be read again.

        A job that was read singly in the meantime may be newer than this answer, or older than the list.
        """
        if self._is_noted_since(str(id_), self._began):
            self._records[id_] = self._records[id_]._replace(states=None)
        else:
            self._take(id_, read, states.get(id_))
        record = self._records[id_]
        if not record.names and id_ not in states:
            del self._records[id_]
            self._follower.drop(id_)
        else:
            self._follower.keep(id_, record, record.states)
        return record.states is not None

    def _take(self, id_: int, read: "_Jobs[V]", states: frozenset[str] | None) -> None:
        """Store the jobs of a record; one that is another job now is deleted and added."""
        before = self._records.get(id_, _Record({}, None)).names
        jobs = read.by_record.get(id_, [])
        now = {str(job.identity.job_id): job.identity.name for job in jobs}
        for key, name in before.items():
            if read.is_partial and key not in now:  # its id may be one that could not be decoded
                now[key] = name
            elif now.get(key) != name:
                self._events += self._put(key, None)
        for job in jobs:
            self._events += self._store(str(job.identity.job_id), job.read)
        self._records[id_] = _Record(now, states)

    def _has_lost_state(self, by_record: "Mapping[int, list[_Job[V]]]") -> bool:
        """Check whether slurmctld reused an id, or lacks a job that had not ended."""
        return any(
            is_alive(record.states or ())
            if id_ not in by_record
            else any(
                record.names.get(str(job.identity.job_id), job.identity.name) != job.identity.name
                for job in by_record[id_]
            )
            for id_, record in self._records.items()
        )
