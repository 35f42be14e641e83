"""Discover which of our jobs exist in Slurm and their state, by cheap readings.

There are two kinds, distinguished by their marks: placeholders of pods, and the batch jobs of SlurmJobs. One
reading serves both, and code for one kind never gets jobs of the other. A job is classified by its
`admin_comment`, which is set on submission and which only root and SlurmUser can write. What a reading
lists and fetches, and when ids count as new, is slurm-client's: `slurmclient.watching.follower`.
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
from bridge.slurm.snapshot import Snapshot
from slurmclient.errors import Malformed, TargetNotFound
from slurmclient.watching import unread
from slurmclient.watching.follower import JobFollower, JobReading
from slurmclient.watching.in_turn import in_turn
from slurmclient.watching.unread import USUAL_PACE, Pace, UnreadJob
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, JobId, WorkloadKey

_PENDING = frozenset({"PENDING"})


def _ignore(*_: object) -> None:
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
        pace: Pace = USUAL_PACE,
        batch: bool = False,
        named: Callable[[], Iterable[JobId]] = tuple,
        on_unreadable: Callable[[JobId, str], None] = _ignore,
        on_settled: Callable[[JobId], None] = _ignore,
    ) -> None:
        """Start with nothing known; the first reading fetches every job once.

        Args:
            client: Shared with submitters.
            cluster: Placeholders of other clusters are foreign jobs.
            clock: Returns monotonic seconds.
            pace: How quickly jobs are fetched.
            batch: Read batch jobs of SlurmJobs, too; else they are foreign jobs.
            named: Returns the ids that our pods name; if there are many unknown jobs, these are fetched first.
            on_unreadable: Called each time a fetched job cannot be decoded, with the reason.
            on_settled: Called when such a job has become readable or is gone.
        """
        self._client = client
        self._cluster = cluster
        self._batch = batch
        self._concurrency, self._reading = pace.concurrency, asyncio.Lock()
        self._follower = JobFollower[SlurmJob | BatchJob](
            client, self, clock=clock, pace=pace, arrays=batch, named=named
        )
        self._last: Snapshot | None = None
        self._last_changes = 0
        """The follower's changes that the last snapshot has."""
        self._sequence = 0
        self._last_ended: EndedJob | None = None
        self._reported: set[JobId] = set()
        self._on_unreadable, self._on_settled = on_unreadable, on_settled
        self._in_detail: set[JobId] = set()
        """Jobs of ours whose devices are fetched with them."""
        self._arrays = ArrayMemory()

    @property
    def listed_s(self) -> float:
        """How long Slurm took for the last list; 0 if none was needed."""
        return self._follower.listed_s

    @property
    def listed_jobs(self) -> int:
        """How many jobs of the last list have been classified, others' included."""
        follower = self._follower
        return len(follower.jobs) + len(follower.foreign) + len(follower.unreadable)

    @property
    def slurms_time(self) -> ClockReading | None:
        """The clock of slurmctld as last read; None before the first time."""
        if (time := self._follower.time) is None:
            return None
        reported_s, asked_s, answered_s = time
        if (at := decode.unix_moment(reported_s)) is None:
            return None
        return ClockReading(reported=at, asked_s=asked_s, answered_s=answered_s)

    @property
    def cycle_s(self) -> float:
        """How long the last run of Slurm's scheduler took."""
        return self._follower.cycle_s

    @property
    def last_ended(self) -> EndedJob | None:
        """The last job of ours seen to end, if slurmctld still remembers it."""
        ended = self._last_ended
        return ended if ended and ended.id in self._follower.jobs else None

    def note_submitted(self, job_id: JobId, identity: Identity, *, in_detail: bool = False) -> None:
        """Record a job we have just submitted: it is fetched when it starts; in_detail: with its devices."""
        if in_detail:
            self._in_detail.add(job_id)
        known = self._follower.jobs.get(job_id)
        if isinstance(known, SlurmJob) and known.identity.key == identity.key:
            return
        job = SlurmJob(
            id=job_id, sluid=None, phase=JobPhase.WAITING, states=_PENDING, identity=identity
        )
        self._follower.note(job_id, job, _PENDING)

    def note_batch(self, job_id: JobId, mark: BatchMark) -> None:
        """Record a batch job we have just submitted; it need not be fetched before it starts."""
        known = self._follower.jobs.get(job_id)
        if isinstance(known, BatchJob) and known.mark == mark:
            return
        job = BatchJob(id=job_id, sluid=None, phase=JobPhase.WAITING, mark=mark, states=_PENDING)
        self._follower.note(job_id, job, _PENDING)

    def note_changed(self, job_id: JobId) -> None:
        """Record a change of ours that a job's state does not show; the next reading fetches it."""
        self._follower.want(job_id)

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
            reading = await self._follower.read(
                wanted=reasons_for, surely=surely, complete=complete
            )
            return self._snapshot(reading)

    def update(self, job: SlurmJob | BatchJob, states: frozenset[str]) -> SlurmJob | None:
        """Return a placeholder that has just completed, which needs no fetch."""
        if not (isinstance(job, SlurmJob) and decode.has_just_completed(job, states)):
            return None
        over = replace(job, phase=JobPhase.ENDED, states=states, end=JobEnd.COMPLETED)
        self._last_ended = ended_job(job, over) or self._last_ended
        return over

    def forget(self, _: int, job: SlurmJob | BatchJob) -> bool:
        """Note that Slurm has forgotten a job; return False if it was alive, for a last fetch."""
        if job.phase is not JobPhase.ENDED:
            return False
        if isinstance(job, BatchJob):
            self._arrays.forgotten(job)
        return True

    def restart(self) -> None:
        """Forget what was concluded from the ids of another slurmctld."""
        self._arrays = ArrayMemory()
        self._last_ended = None

    async def fetch(self, ids: Sequence[int], states: Mapping[int, frozenset[str]]) -> bool:
        """Fetch jobs concurrently; return False if one was gone or has to be fetched again."""
        for id_ in self._reported - states.keys():
            self._settle(id_)
        ours = self._follower.jobs
        self._in_detail &= ours.keys()
        self._arrays.keep_only(job.array_id for job in ours.values() if isinstance(job, BatchJob))
        results = await in_turn(
            ids,
            lambda id_: self._fetch_one(JobId(id_), states.get(id_)),
            at_a_time=self._concurrency,
        )
        return all(results.values())

    async def _fetch_one(self, id_: JobId, states: frozenset[str] | None) -> bool:
        if id_ in self._follower.foreign:
            return True  # the array of a task that has just turned out to be foreign
        try:
            job = await self._get(id_)
        except TargetNotFound:
            job = None
        except Malformed as error:
            # It is fetched again with each reading. Until it is readable, nothing is concluded about its workload or,
            # if that is unknown, about any.
            known, odd = self._follower.jobs.get(id_), self._follower.unreadable.get(id_)
            owner = odd.owner if odd else snapshot.key_of(known) if known else None
            is_of_array = states is not None and unread.is_of_array(states)
            self._follower.set_aside(id_, UnreadJob(str(error), owner, None, is_of_array))
            self._report(id_, str(error))
            return False
        was = self._follower.jobs.get(id_)
        if isinstance(job, SlurmJob) and job.identity.cluster == self._cluster:
            known = was if isinstance(was, SlurmJob) else None
            self._last_ended = ended_job(known, job) or self._last_ended
        why = self._classify(id_, job, states)
        if why:
            self._report(id_, why)
        else:
            self._settle(id_)
        return job is not None

    async def _get(self, id_: JobId) -> SlurmJob | BatchJob | ForeignJob:
        in_detail = id_ in self._in_detail
        if not self._batch:
            return await jobs.job(self._client, id_, in_detail=in_detail)
        known = self._follower.jobs.get(id_)
        alone = known.sluid if isinstance(known, BatchJob) and known.array_id is not None else None
        return await jobs.marked_job(self._client, id_, in_detail=in_detail, alone=alone)

    def _classify(
        self,
        id_: JobId,
        job: SlurmJob | BatchJob | ForeignJob | None,
        states: frozenset[str] | None,
    ) -> str:
        """Remember whether a job is ours; return what is odd about it, "" if nothing is."""
        follower = self._follower
        match job:
            case SlurmJob() if job.identity.cluster == self._cluster:
                follower.keep(id_, job, job.states)
            case BatchJob() if job.mark.cluster == self._cluster:
                # A list's states of an array's tasks are never cut off.
                part = job if states is None else replace(job, states=states)
                follower.keep(id_, part, part.states)
                self._arrays.see(part)
            case ForeignJob() if job.unreadable and job.cluster in (None, self._cluster):
                follower.set_aside(id_, UnreadJob(job.unreadable, job.workload, states))
                return job.unreadable
            case ForeignJob():
                follower.pass_over(id_)
                if job.array_id is not None and job.array_id not in follower.jobs:
                    follower.foreign.add(job.array_id)
                return job.odd
            case SlurmJob() | BatchJob():
                follower.pass_over(id_)
            case None:
                follower.drop(id_)
        return ""

    def _report(self, id_: JobId, why: str) -> None:
        self._reported.add(id_)
        self._on_unreadable(id_, why)

    def _settle(self, id_: JobId) -> None:
        if id_ in self._reported:
            self._reported.discard(id_)
            self._on_settled(id_)

    def _snapshot(self, reading: JobReading) -> Snapshot:
        self._sequence += 1
        follower, portion = self._follower, reading.portion
        odd = follower.unreadable.values()
        last = self._last
        if last is None or self._last_changes != follower.changes:
            last = snapshot.taken(
                follower.jobs.values(),
                unreadable={JobId(id_): job.why for id_, job in follower.unreadable.items()},
                unsure=(WorkloadKey(job.owner) for job in odd if job.owner is not None),
                arrays=self._arrays,
                has_all_tasks=not (portion.is_behind_on_arrays or unread.may_hide_a_task(odd)),
            )
        is_whole = not (reading.has_waiting or portion.is_behind)
        self._last_changes = follower.changes
        self._last = replace(
            last,
            sequence=self._sequence,
            began_monotonic=reading.began,
            is_repeated=reading.is_repeated,
            is_whole=is_whole and not unread.may_hide_a_job(odd, arrays=False),
            is_whole_of_batch=is_whole
            and not portion.is_behind_on_arrays
            and not unread.may_hide_a_job(odd, arrays=True),
            is_behind=portion.is_behind_on_arrays,
        )
        return self._last
