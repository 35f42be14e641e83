"""Discover which of our jobs exist in Slurm and their state, by cheap readings.

There are two kinds, distinguished by their marks: placeholders of pods, and the batch jobs of SlurmJobs. One
reading serves both, and code for one kind never gets jobs of the other.

Slurm cannot list "the jobs with this mark", and a full list of 10 000 jobs is 48 MB. A reading
therefore lists ids and states (`bridge.slurm.listed.listing`) and fetches only the jobs it has not
classified yet and those of ours whose state has changed. A job is classified by its `admin_comment`,
which is set on submission and which only root and SlurmUser can write.

An id means the same job as before only until slurmctld restarts: after a crash it may assign the
ids of the last seconds to other jobs. A reading that brings changes, or that decisions are based on,
therefore also checks whether it is still the same slurmctld; if not, all ids count as new.
(Before Slurm 26.05, and with a backup, every job is fetched again once a day: `incarnation`.)
A reading that repeats the last one, and that no decision is based on, checks it now and then.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.observation.clocks import ClockReading
from bridge.slurm import decode, jobs, snapshot
from bridge.slurm.batch_jobs.arrays import ArrayMemory
from bridge.slurm.decode import ForeignJob
from bridge.slurm.kick import EndedJob, ended_job
from bridge.slurm.listed import unread
from bridge.slurm.listed.incarnation import Incarnation
from bridge.slurm.listed.listing import JobListing, Lists
from bridge.slurm.listed.unread import (
    USUAL_PACE,
    LikelyOurs,
    OnSettled,
    OnUnreadable,
    Pace,
    Portion,
    UnreadJob,
)
from bridge.slurm.snapshot import Snapshot
from slurmclient.errors import Malformed, SlurmError, TargetNotFound
from slurmclient.watching.in_turn import in_turn
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, JobId

_TRUSTED_S = 10.0
"""How long ids are trusted without that check, while every reading repeats the last one."""

_PENDING = frozenset({"PENDING"})


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
        pace: Pace = USUAL_PACE,
        batch: bool = False,
        named: Callable[[], Iterable[JobId]] = unread.nothing_named,
        on_unreadable: OnUnreadable = unread.ignore_unreadable,
        on_settled: OnSettled = unread.ignore_settled,
    ) -> None:
        """Start with nothing known; the first reading fetches every job once.

        Args:
            client: Shared with submitters.
            cluster: Placeholders of other clusters are foreign jobs.
            clock: Returns monotonic seconds.
            pace: How quickly jobs are fetched.
            batch: Read batch jobs of SlurmJobs, too; else they are foreign jobs.
            named: Returns the ids that our pods name; if there are many unknown jobs, these are fetched first.
            on_unreadable: Called each time a fetched job cannot be decoded.
            on_settled: Called when such a job has become readable or is gone.
        """
        self._client = client
        self._cluster = cluster
        self._batch = batch
        self._clock = clock
        self._pace, self._reading = pace, asyncio.Lock()
        self._last: Snapshot | None = None
        """The last snapshot; None once any part of it has changed."""
        self._sequence = 0
        self._lists = Lists(client, clock=clock, arrays=batch, named=named)
        self._listing: JobListing | None = None
        """The listing of the last complete reading."""
        self.slurms_time: ClockReading | None = None
        """slurmctld's clock as last read; None before the first time."""
        self.cycle_s = 0.0
        """How long the last run of Slurm's scheduler took."""
        self._last_ended: EndedJob | None = None
        self._incarnation, self._trusted_until = Incarnation(), 0.0
        self._ours: dict[JobId, SlurmJob | BatchJob] = {}
        self._foreign: set[JobId] = set()
        self._unreadable: dict[JobId, UnreadJob] = {}
        self._reported: set[JobId] = set()
        self._on_unreadable, self._on_settled = on_unreadable, on_settled
        self._noted: dict[JobId, float] = {}
        self._likely_ours = LikelyOurs(named)
        self._changed: set[JobId] = set()
        self._in_detail: set[JobId] = set()
        """Jobs of ours whose devices are fetched with them."""
        self._portion = Portion()
        """The unknown jobs that the last reading fetched."""
        self._arrays = ArrayMemory()
        self._left: dict[JobId, float] = {}
        """New jobs that are still pending and not fetched yet → since when."""

    @property
    def listed_s(self) -> float:
        """How long Slurm took for the last list; 0 if none was needed."""
        return self._lists.took_s

    @property
    def last_ended(self) -> EndedJob | None:
        """The last job of ours seen to end, if slurmctld still remembers it."""
        return self._last_ended if self._last_ended and self._last_ended.id in self._ours else None

    def note_submitted(self, job_id: JobId, identity: Identity, *, in_detail: bool = False) -> None:
        """Record a job we have just submitted: it is fetched when it starts; in_detail: with its devices."""
        if in_detail:
            self._in_detail.add(job_id)
        known = self._ours.get(job_id)
        if isinstance(known, SlurmJob) and known.identity.key == identity.key:
            return
        self._note(
            SlurmJob(
                id=job_id, sluid=None, phase=JobPhase.WAITING, states=_PENDING, identity=identity
            )
        )

    def note_batch(self, job_id: JobId, mark: BatchMark) -> None:
        """Record a batch job we have just submitted; it need not be fetched before it starts."""
        known = self._ours.get(job_id)
        if isinstance(known, BatchJob) and known.mark == mark:
            return
        self._note(
            BatchJob(id=job_id, sluid=None, phase=JobPhase.WAITING, mark=mark, states=_PENDING)
        )

    def _note(self, job: SlurmJob | BatchJob) -> None:
        self._foreign.discard(job.id)
        self._unreadable.pop(job.id, None)
        self._noted[job.id] = self._clock()
        self._last = None
        self._ours[job.id] = job

    def note_changed(self, job_id: JobId) -> None:
        """Record a change of ours that a job's state does not show; the next reading fetches it."""
        self._changed.add(job_id)

    async def refresh(
        self, *, reasons_for: Collection[JobId] = (), surely: bool = True, complete: bool = False
    ) -> Snapshot:
        """Read Slurm once.

        Args:
            reasons_for: Jobs to fetch even if their state is unchanged, for their pending reason
                and end time.
            surely: Decisions will be based on this reading even if it repeats the last one.
            complete: Decisions will be based on what is absent.

        Raises:
            SlurmError: the reading is incomplete; what has been classified so far is kept.
        """
        async with self._reading:
            is_exact = surely or complete or bool(self._left)
            listed = await self._lists.read(settled=self._foreign, surely=is_exact)
            began = self._lists.began
            is_repeated = listed is self._listing and not self._noted
            patience_s = 0.0 if complete else self._pace.patience_s
            if surely or not is_repeated or began >= self._trusted_until:
                if await self._forgot_after_restart(listed.states):
                    is_repeated, patience_s = False, 0.0
                    listed = await self._lists.read_of_another(listed)
                self._trusted_until = began + _TRUSTED_S
            nothing_new = is_repeated and not self._left
            ours, unknown = (
                ((), ()) if nothing_new else self._news(listed.states, began, patience_s=patience_s)
            )
            changed, self._changed = self._changed, set()
            wanted = {*reasons_for, *changed} & self._ours.keys() & listed.states.keys()
            self._portion = unread.portion(
                unknown,
                listed.states,
                most=self._pace.burst,
                known_to_be_odd=self._unreadable,
                likely_ours=self._likely_ours.among(unknown),
            )
            to_fetch = dict.fromkeys([*ours, *wanted, *self._portion.ids])
            self._listing = None
            try:
                is_read = await self._fetch_all(to_fetch, listed.states)
                if is_read and not self._portion.is_behind_on_arrays:
                    self._listing = listed
            except SlurmError:
                self._changed |= changed
                raise
            return self._snapshot(began, is_repeated=is_repeated)

    async def _forgot_after_restart(self, seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Forget all ids if slurmctld has restarted since these states were read; return whether it has."""
        asked_s = self._clock()
        answer = await self._client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
        now, answered_s = decode.moment(answer.statistics.req_time), self._clock()
        if now is not None:
            self.slurms_time = ClockReading(reported=now, asked_s=asked_s, answered_s=answered_s)
        self.cycle_s = answer.statistics.schedule_cycle_last / 1_000_000
        counts_since = answer.statistics.req_time_start.positive or 0
        if not await self._incarnation.may_be_another(self._client, counts_since):
            return False
        forgotten = self._ours.keys() - (self._noted.keys() - seen.keys())
        self._likely_ours.remember(forgotten)
        for id_ in forgotten:
            del self._ours[id_]
        self._foreign.clear()
        self._unreadable.clear()
        self._arrays = ArrayMemory()
        self._last = None
        self._last_ended = None
        return True

    def _news(
        self, seen: Mapping[JobId, frozenset[str]], began: float, *, patience_s: float
    ) -> tuple[Sequence[JobId], Sequence[JobId]]:
        """Return the jobs to fetch: ours, and those not classified yet.

        A state that says everything is applied without a fetch, and new pending jobs may wait.
        """
        vanished = self._vanished(seen, began)
        for id_, states in seen.items():
            known = self._ours.get(id_)
            if isinstance(known, SlurmJob) and decode.has_just_completed(known, states):
                over = replace(known, phase=JobPhase.ENDED, states=states, end=JobEnd.COMPLETED)
                self._ours[id_] = over
                self._last_ended = ended_job(known, over) or self._last_ended
        self._last = None
        changed = [id_ for id_, states in seen.items() if self._must_fetch(id_, states)]
        new = (id_ for id_ in changed if seen[id_] == _PENDING and id_ not in self._ours)
        since = {id_: self._left.get(id_, began) for id_ in new}
        self._left = {id_: at for id_, at in since.items() if began - at < patience_s}
        ours = [id_ for id_ in changed if id_ in self._ours]
        others = (id_ for id_ in changed if id_ not in self._ours and id_ not in self._left)
        # Jobs that could not be decoded last time come last, or they would crowd out the rest.
        return [*ours, *vanished], sorted(others, key=self._unreadable.__contains__)

    def _vanished(self, seen: Mapping[JobId, frozenset[str]], began: float) -> list[JobId]:
        """Drop jobs Slurm no longer lists; return ours that were alive, for a last fetch."""
        self._foreign &= seen.keys()
        for id_ in self._unreadable.keys() - seen.keys():
            del self._unreadable[id_]
        for id_ in self._reported - seen.keys():
            self._settle(id_)
        for id_ in [id_ for id_, at in self._noted.items() if id_ in seen or at < began]:
            del self._noted[id_]
        self._in_detail &= self._ours.keys()
        missing = [id_ for id_ in self._ours if id_ not in seen and id_ not in self._noted]
        for id_ in missing:
            if (ended := self._ours[id_]).phase is JobPhase.ENDED:
                del self._ours[id_]
                if isinstance(ended, BatchJob):
                    self._arrays.forgotten(ended)
        self._arrays.keep_only(
            job.array_id for job in self._ours.values() if isinstance(job, BatchJob)
        )
        return [id_ for id_ in missing if id_ in self._ours]

    def _must_fetch(self, id_: JobId, states: frozenset[str]) -> bool:
        if id_ in self._foreign:
            return False
        if (unreadable := self._unreadable.get(id_)) is not None:
            return unreadable.states != states
        known = self._ours.get(id_)
        return known is None or known.states != states

    async def _fetch_all(self, ids: Iterable[JobId], seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Fetch jobs concurrently; return False if one was gone or has to be fetched again."""
        results = await in_turn(
            ids, lambda id_: self._fetch_one(id_, seen.get(id_)), at_a_time=self._pace.concurrency
        )
        return all(results.values())

    async def _fetch_one(self, id_: JobId, states: frozenset[str] | None) -> bool:
        if id_ in self._foreign:
            return True  # the array of a task that has just turned out to be foreign
        try:
            job = await self._get(id_)
        except TargetNotFound:
            job = None
        except Malformed as error:
            is_of_array = states is not None and unread.is_of_array(states)
            self._set_aside_undecoded(id_, str(error), is_of_array=is_of_array)
            return False
        before = self._ours.pop(id_, None), self._unreadable.pop(id_, None)
        was = before[0]
        if isinstance(job, SlurmJob) and job.identity.cluster == self._cluster:
            known = was if isinstance(was, SlurmJob) else None
            self._last_ended = ended_job(known, job) or self._last_ended
        why = self._classify(id_, job, states)
        if why:
            self._report(id_, why)
        else:
            self._settle(id_)
        if before != (self._ours.get(id_), self._unreadable.get(id_)):
            self._last = None
        return job is not None

    async def _get(self, id_: JobId) -> SlurmJob | BatchJob | ForeignJob:
        in_detail = id_ in self._in_detail
        if not self._batch:
            return await jobs.job(self._client, id_, in_detail=in_detail)
        known = self._ours.get(id_)
        alone = known.sluid if isinstance(known, BatchJob) and known.array_id is not None else None
        return await jobs.marked_job(self._client, id_, in_detail=in_detail, alone=alone)

    def _classify(
        self,
        id_: JobId,
        job: SlurmJob | BatchJob | ForeignJob | None,
        states: frozenset[str] | None,
    ) -> str:
        """Remember whether a job is ours; return what is odd about it, "" if nothing is."""
        match job:
            case SlurmJob() if job.identity.cluster == self._cluster:
                self._ours[id_] = job
            case BatchJob() if job.mark.cluster == self._cluster:
                # A list's states of an array's tasks are never cut off.
                part = job if states is None else replace(job, states=states)
                self._ours[id_] = part
                self._arrays.see(part)
            case ForeignJob() if job.unreadable and job.cluster in (None, self._cluster):
                self._unreadable[id_] = UnreadJob(job.unreadable, job.workload, states)
                return job.unreadable
            case ForeignJob():
                self._foreign.add(id_)
                if job.array_id is not None and job.array_id not in self._ours:
                    self._foreign.add(job.array_id)
                return job.odd
            case SlurmJob() | BatchJob():
                self._foreign.add(id_)
            case None:
                pass
        return ""

    def _set_aside_undecoded(self, id_: JobId, why: str, *, is_of_array: bool) -> None:
        """Set aside a job that cannot be decoded at all, and fetch it again with each reading.

        Until it is readable, nothing is concluded about its workload or, if that is unknown, about any.
        """
        known, unreadable = self._ours.pop(id_, None), self._unreadable.get(id_)
        workload = unreadable.workload if unreadable else snapshot.key_of(known) if known else None
        self._unreadable[id_] = UnreadJob(why, workload, None, is_of_array)
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
        last = self._last or snapshot.taken(
            self._ours.values(),
            unreadable={id_: unread_job.why for id_, unread_job in self._unreadable.items()},
            unsure=(unread_job.workload for unread_job in self._unreadable.values()),
            arrays=self._arrays,
            has_all_tasks=not (
                self._portion.is_behind_on_arrays
                or unread.may_hide_a_task(self._unreadable.values())
            ),
        )
        is_whole = not (self._left or self._portion.is_behind)
        odd = self._unreadable.values()
        self._last = replace(
            last,
            sequence=self._sequence,
            began_monotonic=began,
            is_repeated=is_repeated,
            is_whole=is_whole and not unread.may_hide_one_of_ours(odd, arrays=False),
            is_whole_of_batch=is_whole
            and not self._portion.is_behind_on_arrays
            and not unread.may_hide_one_of_ours(odd, arrays=True),
            is_behind=self._portion.is_behind_on_arrays,
        )
        return self._last
