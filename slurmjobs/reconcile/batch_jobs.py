"""A leader's view of SlurmJobs' jobs, from the readings that it makes for placeholders."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.domain.model.jobs import JobPhase
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.turns import Turns
from bridge.domain.observation.view import Expectations, Past, SeenJobs
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.reading.audience import Wants
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.process.clock import Clock
from slurmruntime.values.ids import JobId, WorkloadKey


@dataclass(frozen=True, slots=True)
class _BatchReading:
    """A reading, as far as batch jobs are concerned."""

    began_monotonic: float
    by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]]
    is_whole: bool
    unsure: frozenset[WorkloadKey]


class BatchJobs:
    """The view of one term of leadership; an `Audience` of `Placeholders`."""

    def __init__(
        self,
        discovery: Discovery,
        placeholders: Placeholders,
        *,
        pace: Pace,
        clock: Clock,
        wake: Callable[[WorkloadKey], None],
        remind: Callable[[WorkloadKey], None],
    ) -> None:
        """wake: called with the key of each SlurmJob whose jobs have news.

        remind: called with the key of each other that waited for a reading.
        """
        self._discovery = discovery
        self._placeholders = placeholders
        self._clock = clock
        self._wake = wake
        self._remind = remind
        self._book: Expectations[BatchJob] = Expectations(quiet_s=pace.quiet_s)
        self._reasons = Turns(first_per_s=pace.first_reasons_per_s, after_s=pace.reasons_after_s)
        self._by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]] = {}
        self._unsure: frozenset[WorkloadKey] = frozenset()
        self._waiting_for_news: set[WorkloadKey] = set()
        self._read_for: set[WorkloadKey] = set()
        """Those that wait for the reading that is under way."""
        self._seeks_absence = False
        self._is_questioned = False

    # -- what the loop asks and says --------------------------------------------------------------

    def meet(self, key: WorkloadKey, past: Past) -> None:
        """Start tracking a SlurmJob; only the first call counts."""
        self._book.meet(key, past, at=self._clock.monotonic())

    def seen(self, job: SlurmJobObject) -> SeenJobs[BatchJob]:
        """Return what is known for certain of a SlurmJob's jobs, and request what is not."""
        key, meta = WorkloadKey(job.metadata.uid), job.metadata
        seen = self._book.seen(key, pod=meta.uid, version=meta.resource_version)
        if key in self._unsure:
            return seen  # the next change of that job wakes it
        if not seen.fresh:
            self._waiting_for_news.add(key)
            if not self._book.lags(meta.uid, meta.resource_version):
                self._placeholders.ask()
        elif not seen.surely_none and all(each.is_over for each in seen.jobs):
            self._waiting_for_news.add(key)
            self._seeks_absence = True
        return seen

    def is_awaited(self, key: WorkloadKey) -> bool:
        """Check whether the SlurmJob waits for a reading."""
        return key in self._waiting_for_news

    def of(self, key: WorkloadKey) -> tuple[BatchJob, ...]:
        """Return a SlurmJob's jobs as last read; later writes may be missing."""
        return self._by_key.get(key, ())

    def now(self) -> datetime:
        """Return the time to decide by: Slurm's, if this machine's clock differs from it."""
        return self._placeholders.now()

    def submitted(self, job_id: JobId, mark: BatchMark) -> None:
        """Note a job that Slurm has just accepted."""
        self._discovery.note_batch(job_id, mark)

    def wrote(self, key: WorkloadKey, *, may_still_happen: bool = False) -> None:
        """Record that a write to Slurm for this SlurmJob is over; call it in a `finally`."""
        at = self._clock.monotonic()
        self._book.wrote(key, at=at, may_still_happen=may_still_happen)
        self._waiting_for_news.add(key)
        self._placeholders.ask()

    def patched(self, job: SlurmJobObject) -> None:
        """Record a write to the object that was decided on this version of it; likewise."""
        version = job.metadata.resource_version
        self._book.patched(job.metadata.uid, version=version, at=self._clock.monotonic())

    def forget(self, key: WorkloadKey) -> None:
        """Stop tracking a SlurmJob."""
        self._book.forget(key)
        self._book.forget_pod(key)
        self._waiting_for_news.discard(key)

    # -- as an audience ---------------------------------------------------------------------------

    def wants(self) -> Wants:
        """Return what the reading that begins now is wanted for."""
        self._read_for, self._waiting_for_news = self._waiting_for_news, set()
        whole, self._seeks_absence = self._seeks_absence, False
        surely = bool(self._read_for) or self._is_questioned
        self._is_questioned = bool(self._read_for)
        waiting = (
            job for jobs in self._by_key.values() for job in jobs if job.phase is JobPhase.WAITING
        )
        due = self._reasons.due(waiting, self._clock.monotonic())
        return Wants(due=due, surely=surely, whole=whole)

    def read(self, snapshot: Snapshot) -> None:
        """Take in a successful reading, and wake those whom it concerns."""
        self._book.read(
            _BatchReading(
                snapshot.began_monotonic,
                snapshot.batch_by_key,
                snapshot.is_whole_of_batch,
                snapshot.unsure,
            )
        )
        changed = set(_changed(self._by_key, snapshot.batch_by_key))
        changed |= snapshot.unsure ^ self._unsure
        self._by_key, self._unsure = snapshot.batch_by_key, snapshot.unsure
        awaited, self._read_for = self._read_for, set()
        for key in changed - self._waiting_for_news:
            self._wake(key)
        for key in awaited - changed - self._waiting_for_news:
            self._remind(key)

    def failed(self) -> None:
        """Take in a failed reading: what it was wanted for, the next one is."""
        self._book.failed()
        self._waiting_for_news |= self._read_for
        self._seeks_absence = True


def _changed(
    before: Mapping[WorkloadKey, tuple[BatchJob, ...]],
    after: Mapping[WorkloadKey, tuple[BatchJob, ...]],
) -> Iterator[WorkloadKey]:
    if before is after:
        return
    for key, jobs in after.items():
        if before.get(key) != jobs:
            yield key
    yield from before.keys() - after.keys()
