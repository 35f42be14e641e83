"""Discover which of our placeholders exist in Slurm and their state, by cheap readings.

Slurm cannot list "the jobs with this mark", and a full list of 10 000 jobs is 48 MB. A reading
therefore lists the ids and states of all jobs (/jobs/state/, 38 bytes each) and fetches only the
jobs it has not classified yet and those of ours whose state has changed. A job is classified by its
`admin_comment`, which is set on submission and which only root and SlurmUser can write.

An id means the same job as before only until slurmctld restarts: after a crash it may assign the
ids of the last seconds to other jobs. A reading that brings changes, or that conclusions are drawn
from, therefore also checks when slurmctld started; if that has changed, all ids count as new.
(slurmctld also appears to start at midnight UTC, when it resets its counters; so every job is
fetched again once a day.) A reading that only repeats the last one, and from which nobody draws
conclusions, makes that check only from time to time.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bridge.domain.ids import ClusterId, JobId, WorkloadKey
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.observation.clocks import ClockReading
from bridge.slurm import decode, jobs, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.decode import Stranger
from bridge.slurm.errors import Malformed, NotFound, SlurmError
from bridge.slurm.jobs import JobListing
from bridge.slurm.kick import EndedJob, ended_job
from slurmclient.watching.in_turn import in_turn

_TRUSTED_S = 10.0
"""How long ids are trusted without that check, while every reading repeats the one before."""

BURST = 500
"""Unknown jobs fetched per reading; about a second's work. Someone may submit thousands at once, and
news of our own jobs must not wait for them."""

_COMPLETED = frozenset({"COMPLETED"})
_PENDING = frozenset({"PENDING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The result of one successful reading."""

    sequence: int
    """Number of the reading; consecutive readings have consecutive numbers."""
    began_monotonic: float
    """When its first request was sent, by the clock given to `Discovery`; later writes may be
    missing."""
    jobs: Mapping[JobId, SlurmJob]
    """This cluster's placeholders, including ended ones until Slurm purges them (MinJobAge)."""
    by_key: Mapping[WorkloadKey, tuple[SlurmJob, ...]]
    """The same jobs by the key of their workload, lowest id first."""
    is_repeated: bool
    """Slurm listed exactly the jobs and states of the reading before, strangers included."""
    is_whole: bool
    """Every listed job has been classified; only then does absence mean anything."""
    unreadable: Mapping[JobId, str]
    """Jobs that are or may be ours but cannot be decoded, and why; they must be left alone."""
    unsure: frozenset[WorkloadKey] = frozenset()
    """The workloads of unreadable jobs, if that much can be decoded."""
    is_behind: bool = False
    """There were more unknown jobs than one reading fetches: read again soon."""


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A job that is set aside."""

    why: str
    workload: WorkloadKey | None
    states: frozenset[str] | None
    """The states it was fetched with; it is fetched again when they change. None: with the next
    reading."""


OnUnreadable = Callable[[JobId, str], None]
"""Called each time a fetched job cannot be decoded, with the reason."""

OnSettled = Callable[[JobId], None]
"""Called when such a job has become readable or is gone."""


def _ignore_unreadable(_id: JobId, _why: str) -> None:
    pass


def _ignore_settled(_id: JobId) -> None:
    pass


class Discovery:
    """Classifies jobs and remembers the result.

    There is one reading at a time. A failed reading raises and leaves the last snapshot valid.
    """

    def __init__(
        self,
        client: SlurmClient,
        cluster: ClusterId,
        *,
        clock: Callable[[], float],
        concurrency: int = 4,
        patience_s: float = 0.0,
        burst: int = BURST,
        on_unreadable: OnUnreadable = _ignore_unreadable,
        on_settled: OnSettled = _ignore_settled,
    ) -> None:
        """Start with nothing known; the first reading fetches every job once.

        Args:
            client: Shared with submitters; keep `concurrency` below its connections.
            cluster: Placeholders of other clusters are strangers.
            clock: Returns monotonic seconds.
            concurrency: Maximum number of jobs fetched concurrently.
            patience_s: How long a new job may be pending before it is fetched. Most run by then and
                are fetched once instead of twice.
            burst: Maximum number of unknown jobs fetched in one reading.
            on_unreadable: Called each time a fetched job cannot be decoded.
            on_settled: Called when such a job has become readable or is gone.
        """
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._concurrency = concurrency
        self._reading = asyncio.Lock()
        self._last: Snapshot | None = None
        """The last snapshot; None once any of it has changed."""
        self._sequence = 0
        self._listing: JobListing | None = None
        """The listing of the last whole reading."""
        self.slurms_time: ClockReading | None = None
        """What slurmctld's clock said when it was last asked; None if it never did."""
        self.cycle_s = 0.0
        """How long Slurm's scheduler last ran."""
        self._last_ended: EndedJob | None = None
        self._controller_start = 0
        self._trusted_until = 0.0
        self._ours: dict[JobId, SlurmJob] = {}
        self._strangers: set[JobId] = set()
        self._unreadable: dict[JobId, _Unreadable] = {}
        self._reported: set[JobId] = set()
        self._on_unreadable = on_unreadable
        self._on_settled = on_settled
        self._noted: dict[JobId, float] = {}
        self._changed: set[JobId] = set()
        self._patience_s = patience_s
        self._burst = burst
        self._is_behind = False
        self._left: dict[JobId, float] = {}
        """New jobs that are still pending and not fetched yet → since when."""

    @property
    def last_ended(self) -> EndedJob | None:
        """The last job of ours seen to end, if slurmctld still remembers it."""
        return self._last_ended if self._last_ended and self._last_ended.id in self._ours else None

    def note_submitted(self, job_id: JobId, identity: Identity) -> None:
        """Record a job we have just submitted; it need not be fetched before it starts."""
        known = self._ours.get(job_id)
        if known is not None and known.identity.key == identity.key:
            return
        self._strangers.discard(job_id)
        self._unreadable.pop(job_id, None)
        self._noted[job_id] = self._clock()
        self._last = None
        self._ours[job_id] = SlurmJob(
            id=job_id,
            sluid=None,
            phase=JobPhase.WAITING,
            states=frozenset({"PENDING"}),
            identity=identity,
        )

    def note_changed(self, job_id: JobId) -> None:
        """Record a change of ours that a job's state does not show; the next reading fetches it."""
        self._changed.add(job_id)

    async def refresh(
        self, *, reasons_for: Collection[JobId] = (), surely: bool = True, whole: bool = False
    ) -> Snapshot:
        """Read Slurm once.

        Args:
            reasons_for: Jobs to fetch even if their state is unchanged, for their pending reason
                and end time.
            surely: Conclusions will be drawn from this reading even if it repeats the last one.
            whole: Conclusions will be drawn from what is absent.

        Raises:
            SlurmError: the reading is incomplete; what has been classified so far is kept.
        """
        async with self._reading:
            began = self._clock()
            listed = await jobs.listing(self._client, before=self._listing)
            is_repeated = listed is self._listing and not self._noted
            patience_s = 0.0 if whole else self._patience_s
            if surely or not is_repeated or began >= self._trusted_until:
                if await self._forgot_what_may_be_others(listed.states):
                    is_repeated, patience_s = False, 0.0
                self._trusted_until = began + _TRUSTED_S
            nothing_new = is_repeated and not self._left
            ours, unknown = (
                ((), ()) if nothing_new else self._news(listed.states, began, patience_s=patience_s)
            )
            changed, self._changed = self._changed, set()
            asked = (*reasons_for, *changed)
            wanted = (id_ for id_ in asked if id_ in listed.states and id_ in self._ours)
            new = sum(id_ not in self._unreadable for id_ in unknown)
            self._is_behind = new > self._burst
            looks = dict.fromkeys([*ours, *wanted, *unknown[: self._burst]])
            self._listing = None
            try:
                if await self._look_at(looks, listed.states) and not self._is_behind:
                    self._listing = listed
            except SlurmError:
                self._changed |= changed
                raise
            return self._snapshot(began, is_repeated=is_repeated)

    async def _forgot_what_may_be_others(self, seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Forget all ids if slurmctld has restarted; return whether it has.

        This check comes after the states are read: if the start time is unchanged, the states come
        from the slurmctld we know. In its first second slurmctld says 0, which may be another's.
        """
        asked_s = self._clock()
        answer = await self._client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
        if (told := decode.moment(answer.statistics.req_time)) is not None:
            self.slurms_time = ClockReading(told=told, asked_s=asked_s, answered_s=self._clock())
        self.cycle_s = answer.statistics.schedule_cycle_last / 1_000_000
        start = answer.statistics.req_time_start.positive or 0
        if start and start == self._controller_start:
            return False
        for id_ in self._ours.keys() - (self._noted.keys() - seen.keys()):
            del self._ours[id_]
        self._strangers.clear()
        self._unreadable.clear()
        self._controller_start = start
        self._last = None
        self._last_ended = None
        return True

    def _news(
        self, seen: Mapping[JobId, frozenset[str]], began: float, *, patience_s: float
    ) -> tuple[Sequence[JobId], Sequence[JobId]]:
        """Return the jobs to fetch: ours, and those not classified yet.

        A state that is sufficient by itself is applied without a fetch, and new pending jobs may
        wait.
        """
        vanished = self._vanished(seen, began)
        for id_, states in seen.items():
            known = self._ours.get(id_)
            if known is not None and known.states != states and _has_just_completed(known, states):
                self._ours[id_] = replace(
                    known, phase=JobPhase.ENDED, states=states, end=JobEnd.COMPLETED
                )
                self._last_ended = ended_job(known, self._ours[id_]) or self._last_ended
        self._last = None
        changed = [id_ for id_, states in seen.items() if self._needs_look(id_, states)]
        new = (id_ for id_ in changed if seen[id_] == _PENDING and id_ not in self._ours)
        since = {id_: self._left.get(id_, began) for id_ in new}
        self._left = {id_: at for id_, at in since.items() if began - at < patience_s}
        ours = [id_ for id_ in changed if id_ in self._ours]
        others = (id_ for id_ in changed if id_ not in self._ours and id_ not in self._left)
        # Those that could not be decoded last time come last, or they would crowd out the rest.
        return [*ours, *vanished], sorted(others, key=self._unreadable.__contains__)

    def _vanished(self, seen: Mapping[JobId, frozenset[str]], began: float) -> list[JobId]:
        """Drop jobs Slurm no longer lists; return ours that were alive, for a last fetch."""
        self._strangers &= seen.keys()
        for id_ in self._unreadable.keys() - seen.keys():
            del self._unreadable[id_]
        for id_ in self._reported - seen.keys():
            self._settle(id_)
        for id_ in [id_ for id_, at in self._noted.items() if id_ in seen or at < began]:
            del self._noted[id_]
        missing = [id_ for id_ in self._ours if id_ not in seen and id_ not in self._noted]
        for id_ in missing:
            if self._ours[id_].phase is JobPhase.ENDED:
                del self._ours[id_]
        return [id_ for id_ in missing if id_ in self._ours]

    def _needs_look(self, id_: JobId, states: frozenset[str]) -> bool:
        if id_ in self._strangers:
            return False
        if (unreadable := self._unreadable.get(id_)) is not None:
            return unreadable.states != states
        known = self._ours.get(id_)
        return known is None or known.states != states

    async def _look_at(self, ids: Iterable[JobId], seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Fetch jobs concurrently; return False if one was gone or has to be fetched again."""
        found = await in_turn(
            ids, lambda id_: self._look(id_, seen.get(id_)), at_a_time=self._concurrency
        )
        return all(found.values())

    async def _look(self, id_: JobId, states: frozenset[str] | None) -> bool:
        try:
            found = await jobs.job(self._client, id_)
        except NotFound:
            found = None
        except Malformed as error:
            self._set_aside_undecoded(id_, str(error))
            return False
        before = self._ours.pop(id_, None), self._unreadable.pop(id_, None)
        why = ""
        match found:
            case SlurmJob() if found.identity.cluster == self._cluster:
                self._ours[id_] = found
                self._last_ended = ended_job(before[0], found) or self._last_ended
            case Stranger() if found.unreadable and found.cluster in (None, self._cluster):
                why = found.unreadable
                self._unreadable[id_] = _Unreadable(why, found.workload, states)
            case Stranger():
                why = found.odd
                self._strangers.add(id_)
            case SlurmJob():
                self._strangers.add(id_)
            case None:
                pass
        if why:
            self._report(id_, why)
        else:
            self._settle(id_)
        if before != (self._ours.get(id_), self._unreadable.get(id_)):
            self._last = None
        return found is not None

    def _set_aside_undecoded(self, id_: JobId, why: str) -> None:
        """Set aside a job that cannot be decoded at all, and fetch it again with each reading.

        Until it can be decoded, nothing is concluded about its workload or, if that is unknown,
        about any.
        """
        known, unreadable = self._ours.pop(id_, None), self._unreadable.get(id_)
        workload = unreadable.workload if unreadable else known.identity.key if known else None
        self._unreadable[id_] = _Unreadable(why, workload, None)
        self._last = None
        self._report(id_, why)

    def _report(self, id_: JobId, why: str) -> None:
        self._reported.add(id_)
        self._on_unreadable(id_, why)

    def _settle(self, id_: JobId) -> None:
        if id_ in self._reported:
            self._reported.discard(id_)
            self._on_settled(id_)

    def _snapshot(self, began: float, *, is_repeated: bool) -> Snapshot:
        self._sequence += 1
        last = self._last or self._picture()
        self._last = replace(
            last,
            sequence=self._sequence,
            began_monotonic=began,
            is_repeated=is_repeated,
            is_whole=not (self._left or self._is_behind or self._may_hide_one_of_ours()),
            is_behind=self._is_behind,
        )
        return self._last

    def _may_hide_one_of_ours(self) -> bool:
        """Check whether there is a job of which nothing at all could be decoded."""
        return any(
            each.states is None and each.workload is None for each in self._unreadable.values()
        )

    def _picture(self) -> Snapshot:
        by_key: dict[WorkloadKey, tuple[SlurmJob, ...]] = {}
        for id_ in sorted(self._ours):
            job = self._ours[id_]
            by_key[job.identity.key] = (*by_key.get(job.identity.key, ()), job)
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=0,
            is_repeated=False,
            is_whole=True,
            jobs=MappingProxyType(dict(self._ours)),
            by_key=MappingProxyType(by_key),
            unreadable=MappingProxyType({id_: each.why for id_, each in self._unreadable.items()}),
            unsure=frozenset(
                each.workload for each in self._unreadable.values() if each.workload is not None
            ),
        )


def _has_just_completed(known: SlurmJob, states: frozenset[str]) -> bool:
    """Check whether a running job is now COMPLETED and nothing else.

    Then its exit code is 0, and there is no cause of ours, which only a cancel records.
    """
    return known.phase is JobPhase.RUNNING and known.sluid is not None and states == _COMPLETED
