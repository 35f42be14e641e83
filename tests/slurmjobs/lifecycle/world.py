"""A SlurmJob, its jobs in Slurm, and a leader that may die or lose a reply at every write: in memory, in its own time."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

import msgspec

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.batch import BatchJob
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.domain.observation.view import Expectations, Past
from slurmjobs.companions import collecting
from slurmjobs.lifecycle import actions, table
from slurmjobs.lifecycle.situation import Archive, ArchiveFinding, Collection, CopyState, JobFacts
from slurmjobs.objects.results import JobResult, ResultTarget
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import JobOutput
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, Sluid, WorkloadKey
from tests.slurmjobs.lifecycle.situations import NOW, POLICY, UID, batch_job, mark, slurm_job

QUIET_S = 10.0
OUTPUT = JobOutput(claim_name="scratch", cluster_path="/scratch")
RESULTS = (JobResult(source="a", to=ResultTarget(claim_name="kept")),)
LIVE = (JobPhase.WAITING, JobPhase.RUNNING)
ENDS = (JobEnd.COMPLETED, JobEnd.FAILED, JobEnd.CANCELLED)


class Died(Exception):
    """The leader is no more."""


@dataclass(frozen=True, slots=True)
class Reading:
    began_monotonic: float
    by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]]
    is_whole: bool = True
    unsure: frozenset[WorkloadKey] = frozenset()


@dataclass(slots=True)
class Leader:
    """What one process remembers; the same as `slurmjobs.reconcile` does, without its waiting."""

    book: Expectations[BatchJob] = field(default_factory=lambda: Expectations(quiet_s=QUIET_S))
    met: Past | None = None
    is_taken_on: bool = False
    begun: int | None = None
    archive: Archive | None = None
    cached: SlurmJobObject | None = None


class World:
    """One history."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.clock_s = 1000.0
        results = RESULTS if rng.random() < 0.4 else ()
        self.job: SlurmJobObject | None = slurm_job(
            is_ours=False, suspend=rng.random() < 0.2, output=OUTPUT, results=results
        )
        self.slurm: dict[JobId, BatchJob] = {}
        self.accounts: dict[JobId, BatchJob] = {}
        self.ends: dict[str, BatchJob] = {}
        """How each run ended."""
        self.late: list[tuple[float, int]] = []
        """Submits that Slurm is still to accept: by when, and of which attempt."""
        self.accepted: Counter[int] = Counter()
        self.ids = itertools.count(7)
        self.versions = itertools.count(2)
        self.leader = Leader(cached=self.job)
        self.cancelled: set[JobId] = set()
        """Jobs that the leader cancelled."""
        self.copied: dict[str, CopyState] = {}
        """What became of the results of each run."""
        self.ended = ""
        self.history: list[str] = []

    # -- what happens -----------------------------------------------------------------------------

    def step(self) -> None:
        """Something happens."""
        steps: tuple[Callable[[], None], ...] = (
            self.look,
            self.look,
            self.read,
            self.read,
            self.hear,
            self.hear,
            self.progress,
            self.progress,
            self.purge,
            self.copy,
            self.requeue,
            self.suspend,
            self.delete,
            self.fail_to_read,
            self.die,
            self.wait_long,
        )
        weights = (8, 8, 6, 6, 6, 6, 3, 3, 2, 2, 1, 1, 0.5, 1, 1, 1)
        (chosen,) = self.rng.choices(steps, weights)
        self.history.append(chosen.__name__)
        self.clock_s += self.rng.random()
        self.arrive()
        chosen()
        self.check()

    def arrive(self) -> None:
        """Slurm accepts what was late."""
        for at, attempt in [each for each in self.late if each[0] <= self.clock_s]:
            self.late.remove((at, attempt))
            self.accept(attempt)

    def accept(self, attempt: int) -> JobId:
        id_ = JobId(next(self.ids))
        self.accepted[attempt] += 1
        self.slurm[id_] = batch_job(id=id_, sluid=Sluid(f"s{id_}"), mark=mark(attempt))
        return id_

    def progress(self) -> None:
        """A job starts, ends or is requeued."""
        live = [job for job in self.slurm.values() if job.phase in LIVE]
        if not live:
            return
        job = self.rng.choice(live)
        if job.phase is JobPhase.WAITING and self.rng.random() < 0.7:
            self.slurm[job.id] = replace(job, phase=JobPhase.RUNNING, started_at=NOW)
        elif job.phase is JobPhase.RUNNING and self.rng.random() < 0.2:
            self.slurm[job.id] = replace(job, phase=JobPhase.WAITING, restarts=job.restarts + 1)
        else:
            self.end(job, self.rng.choice(ENDS))

    def end(self, job: BatchJob, how: JobEnd) -> None:
        over = replace(job, phase=JobPhase.ENDED, end=how, ended_at=NOW)
        self.slurm[job.id] = self.accounts[job.id] = over
        self.ends[f"{over.id}-{over.restarts}"] = over

    def purge(self) -> None:
        """Slurm forgets what has ended."""
        for id_ in [id_ for id_, job in self.slurm.items() if job.phase is JobPhase.ENDED]:
            del self.slurm[id_]

    def copy(self) -> None:
        """The pods that copy results come to an end."""
        if self.job is not None and collecting.is_due(self.job):
            ends = (CopyState.DONE, CopyState.DONE, CopyState.GIVEN_UP)
            self.copied.setdefault(self.run(self.job), self.rng.choice(ends))

    @staticmethod
    def run(job: SlurmJobObject) -> str:
        return f"{job.status.job_id}-{job.status.restarts}"

    def requeue(self) -> None:
        """An administrator requeues a job that has ended, while its results are copied."""
        if self.job is not None and collecting.is_due(self.job):
            job = self.slurm.get(JobId(self.job.status.job_id or 0))
            if job is not None and job.phase is JobPhase.ENDED:
                self.slurm[job.id] = replace(
                    job, phase=JobPhase.WAITING, end=None, ended_at=None, restarts=job.restarts + 1
                )

    def suspend(self) -> None:
        if self.job is not None:
            spec = msgspec.structs.replace(self.job.spec, suspend=not self.job.spec.suspend)
            self.store(msgspec.structs.replace(self.job, spec=spec))

    def delete(self) -> None:
        if self.job is not None:
            meta = msgspec.structs.replace(self.job.metadata, deletion_timestamp=NOW)
            self.store(msgspec.structs.replace(self.job, metadata=meta))

    def wait_long(self) -> None:
        self.clock_s += QUIET_S

    # -- the leader -------------------------------------------------------------------------------

    def die(self) -> None:
        self.leader = Leader(cached=self.job)

    def hear(self) -> None:
        """The watch catches up."""
        self.leader.cached = self.job

    def fail_to_read(self) -> None:
        self.leader.book.failed()

    def read(self) -> None:
        jobs = tuple(sorted(self.slurm.values(), key=lambda job: job.id))
        self.leader.book.read(Reading(self.clock_s, {UID: jobs} if jobs else {}))
        self.clock_s += 0.01

    def look(self) -> None:
        """Gather, decide, act; writes may go wrong."""
        try:
            self.decide()
        except Died:
            self.die()

    def decide(self) -> None:
        leader, job = self.leader, self.leader.cached
        if job is None:
            return
        self.meet(job)
        meta = job.metadata
        seen = leader.book.seen(UID, pod=meta.uid, version=meta.resource_version)
        facts = JobFacts(job=job, seen=seen, now=NOW, since=NOW - timedelta(hours=1))
        facts = replace(facts, is_untried=leader.begun == table.attempt_of(facts))
        if table.needs_archive(facts):
            leader.archive = leader.archive or self.ask(job, table.attempt_of(facts))
            facts = replace(facts, archive=leader.archive)
        else:
            leader.archive = None
        state = self.copied.get(collecting.run_of(job), CopyState.NOT_YET)
        facts = replace(facts, collection=Collection(state=state))
        for action in table.decide(facts, POLICY).actions:
            self.act(job, action)

    def meet(self, job: SlurmJobObject) -> None:
        leader = self.leader
        is_taken_on = names.SLURM_JOB_FINALIZER in (job.metadata.finalizers or ())
        past = Past.NOTHING
        if is_taken_on and leader.met not in (None, Past.NOTHING):
            return
        if is_taken_on and not leader.is_taken_on:
            past = Past.IN_FLIGHT if job.status.job_id is None else Past.HANDED_OVER
            leader.book.forget(UID)
        leader.met = past
        leader.book.meet(UID, past, at=self.clock_s)

    def ask(self, job: SlurmJobObject, attempt: int) -> Archive:
        ended = [
            one
            for one in self.accounts.values()
            if one.mark.attempt == attempt and job.status.job_id in (None, one.id)
        ]
        if ended:
            return Archive(finding=ArchiveFinding.ENDED, job=ended[0])
        return Archive(finding=ArchiveFinding.NOTHING)

    def act(self, job: SlurmJobObject, action: actions.JobAction) -> None:
        match action:
            case actions.AddFinalizer():
                meta = msgspec.structs.replace(
                    job.metadata, finalizers=(names.SLURM_JOB_FINALIZER,)
                )
                self.write(job, msgspec.structs.replace(job, metadata=meta))
                self.leader.is_taken_on, self.leader.begun = True, 1
            case actions.Report(status=status):
                self.write(job, msgspec.structs.replace(job, status=status))
                if status.attempt > max(job.status.attempt, 1):
                    self.leader.begun, self.leader.is_taken_on = status.attempt, True
            case actions.RemoveFinalizer():
                meta = msgspec.structs.replace(job.metadata, finalizers=())
                self.write(job, msgspec.structs.replace(job, metadata=meta))
            case actions.SubmitBatch(attempt=attempt):
                self.submit(attempt)
            case actions.CancelBatch(job_id=id_):
                self.cancel(id_)
            case Wait():
                pass
            case _:
                raise AssertionError(action)

    def submit(self, attempt: int) -> None:
        assert not self.ended, "it has ended, and nothing is submitted any more"
        leader, begun = self.leader, self.leader.begun
        leader.begun = None
        fate = self.rng.choices(("done", "lost", "late", "refused", "dies"), (8, 2, 2, 1, 1))[0]
        self.history.append(f"submit {attempt} {fate}")
        may_still_happen = fate in ("lost", "late", "dies")
        if fate == "late":
            self.late.append((self.clock_s + self.rng.random() * (QUIET_S - 1), attempt))
        elif fate == "refused":
            leader.begun = begun
        else:
            self.accept(attempt)
        leader.book.wrote(UID, at=self.clock_s, may_still_happen=may_still_happen)
        if fate == "dies":
            raise Died

    def cancel(self, id_: JobId) -> None:
        found = self.slurm.get(id_)
        if found is not None and found.phase in LIVE and self.rng.random() < 0.8:
            self.end(found, JobEnd.CANCELLED)
            self.cancelled.add(id_)
        self.leader.book.wrote(UID, at=self.clock_s)

    def write(self, job: SlurmJobObject, new: SlurmJobObject) -> None:
        """Write the object, guarded by the version that was decided on."""
        fate = self.rng.choices(("done", "lost", "failed", "dies"), (8, 1, 1, 1))[0]
        meta = job.metadata
        is_current = (
            self.job is not None and self.job.metadata.resource_version == meta.resource_version
        )
        self.leader.book.patched(meta.uid, version=meta.resource_version, at=self.clock_s)
        if is_current and fate != "failed":
            self.store(new)
        if fate == "dies":
            raise Died
        if not is_current or fate != "done":
            raise Lost
        self.leader.cached = self.job

    def store(self, new: SlurmJobObject) -> None:
        meta = msgspec.structs.replace(
            new.metadata, resource_version=str(next(self.versions)), generation=1
        )
        stored = msgspec.structs.replace(new, metadata=meta)
        is_gone = meta.deletion_timestamp is not None and not meta.finalizers
        self.job = None if is_gone else stored

    # -- what must hold ---------------------------------------------------------------------------

    def check(self) -> None:
        """Check what must hold at any time."""
        twice = [attempt for attempt, count in self.accepted.items() if count > 1]
        assert not twice, f"attempt {twice[0]} has two jobs"
        if self.job is None:
            assert not self.live(), "it is gone, and its job lives on"
            return
        phase = self.job.status.phase
        if self.ended:
            assert phase == self.ended, f"{self.ended} became {phase}"
        elif phase in ("Succeeded", "Failed"):
            self.ended = phase
            assert self.job.status.reason != "JobLost", "it was given up although its end is known"
            run = self.run(self.job)
            told = self.ends[run]
            assert told.id not in self.cancelled, "our own cancel was told as its end"
            is_copied = True
            if self.job.spec.results and told.started_at is not None:
                is_copied = self.copied.get(run) is CopyState.DONE
            assert (phase == "Succeeded") == (told.end is JobEnd.COMPLETED and is_copied)

    def live(self) -> list[BatchJob]:
        return [job for job in self.slurm.values() if job.phase in LIVE]

    def is_wanted(self, job: BatchJob) -> bool:
        """Check whether the job may run to its end; others the leader has to cancel."""
        owner = self.job
        return (
            owner is not None
            and owner.metadata.deletion_timestamp is None
            and not owner.spec.suspend
            and job.mark.attempt == max(owner.status.attempt, 1)
        )

    def settle(self) -> None:
        """Left alone, everything comes to an end."""
        for number in range(200):
            self.clock_s += 2
            self.arrive()
            self.copy()
            self.hear()
            self.read()
            with contextlib.suppress(Lost):
                self.look()
            if number % 3 == 0:
                for job in filter(self.is_wanted, self.live()):
                    self.end(job, JobEnd.COMPLETED)
            self.check()
        assert not self.live(), "a job lives on"
        if self.job is not None:
            is_done = self.job.status.phase in ("Succeeded", "Failed")
            assert is_done or self.job.spec.suspend, f"stuck: {self.job.status}"
            assert self.job.metadata.deletion_timestamp is None, "its deletion never ends"


class Lost(Exception):
    """The reply to a write of the object never came, or the write was refused."""


def play(seed: int, *, steps: int = 60) -> None:
    """Play one history, and let it settle.

    Raises:
        AssertionError: something does not hold that must, with the history.
    """
    world = World(Random(seed))  # noqa: S311  # it plays
    try:
        for _ in range(steps):
            try:
                world.step()
            except Lost:
                world.check()
        world.settle()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}: {' '.join(world.history)}") from error
