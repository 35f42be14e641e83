"""A leader's view of SlurmJobs' jobs, from the readings of Slurm that it makes for placeholders."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.domain.model.jobs import JobPhase
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.turns import ReasonRoundRobin
from bridge.domain.observation.view import Expectations, JobsView, Past
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.reading.audience import Wants
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.process.clock import Clock
from slurmruntime.values.ids import JobId, WorkloadKey


@dataclass(frozen=True, slots=True)
class _BatchReading:
    began_monotonic: float
    by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]]
    is_whole: bool
    unsure: frozenset[WorkloadKey]


class BatchJobs:
    """The view during one term of leadership; an `Audience` of `Placeholders`."""

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
        """wake: gets the key of each SlurmJob whose jobs have changed.

        remind: gets the key of each other SlurmJob that waited for a reading.
        """
        self._discovery = discovery
        self._placeholders = placeholders
        self._clock = clock
        self._wake = wake
        self._remind = remind
        self._expectations: Expectations[BatchJob] = Expectations(quiet_s=pace.quiet_s)
        self._reasons = ReasonRoundRobin(
            first_per_s=pace.first_reasons_per_s, after_s=pace.reasons_after_s
        )
        self._by_key: Mapping[WorkloadKey, tuple[BatchJob, ...]] = {}
        self._unsure: frozenset[WorkloadKey] = frozenset()
        self._waiting_for_reading: set[WorkloadKey] = set()
        self._read_for: set[WorkloadKey] = set()
        """SlurmJobs that wait for the reading under way."""
        self._seeks_absence = False
        self._was_needed = False

    # -- for the loop -----------------------------------------------------------------------------

    def meet(self, key: WorkloadKey, past: Past) -> None:
        """Start tracking a SlurmJob; only the first call counts."""
        self._expectations.meet(key, past, at=self._clock.monotonic())

    def seen(self, job: SlurmJobObject) -> JobsView[BatchJob]:
        """Return what is certain about a SlurmJob's jobs, and request a reading for what is not."""
        key, meta = WorkloadKey(job.metadata.uid), job.metadata
        seen = self._expectations.seen(key, pod=meta.uid, version=meta.resource_version)
        if key in self._unsure:
            return seen  # the next change of that job wakes it
        if not seen.fresh:
            self._waiting_for_reading.add(key)
            if not self._expectations.lags(meta.uid, meta.resource_version):
                self._placeholders.ask()
        elif not seen.surely_none and all(batch_job.is_over for batch_job in seen.jobs):
            self._waiting_for_reading.add(key)
            self._seeks_absence = True
        return seen

    def is_awaited(self, key: WorkloadKey) -> bool:
        """Check whether the SlurmJob waits for a reading."""
        return key in self._waiting_for_reading

    def of(self, key: WorkloadKey) -> tuple[BatchJob, ...]:
        """Return a SlurmJob's jobs as last read; later writes may be missing."""
        return self._by_key.get(key, ())

    def now(self) -> datetime:
        """Return the time for decisions: Slurm's, if this machine's clock differs."""
        return self._placeholders.now()

    def submitted(self, job_id: JobId, mark: BatchMark) -> None:
        """Note a job that Slurm has just accepted."""
        self._discovery.note_batch(job_id, mark)

    def wrote(self, key: WorkloadKey, *, may_still_happen: bool = False) -> None:
        """Record that a write to Slurm for this SlurmJob is over; call it in a `finally`."""
        at = self._clock.monotonic()
        self._expectations.wrote(key, at=at, may_still_happen=may_still_happen)
        self._waiting_for_reading.add(key)
        self._placeholders.ask()

    def patched(self, job: SlurmJobObject) -> None:
        """Record that a write to the object, based on this version of it, is over; call it in a `finally`."""
        version = job.metadata.resource_version
        self._expectations.patched(job.metadata.uid, version=version, at=self._clock.monotonic())

    def forget(self, key: WorkloadKey) -> None:
        """Stop tracking a SlurmJob."""
        self._expectations.forget(key)
        self._expectations.forget_pod(key)
        self._waiting_for_reading.discard(key)

    # -- as an audience ---------------------------------------------------------------------------

    def wants(self) -> Wants:
        """Return what the reading that begins now must include."""
        self._read_for, self._waiting_for_reading = self._waiting_for_reading, set()
        needs_all, self._seeks_absence = self._seeks_absence, False
        is_needed = bool(self._read_for) or self._was_needed
        self._was_needed = bool(self._read_for)
        waiting = (
            job for jobs in self._by_key.values() for job in jobs if job.phase is JobPhase.WAITING
        )
        due = self._reasons.due(waiting, self._clock.monotonic())
        return Wants(due=due, surely=is_needed, complete=needs_all)

    def read(self, snapshot: Snapshot) -> None:
        """Process a successful reading, and wake the SlurmJobs that it concerns."""
        self._expectations.read(
            _BatchReading(
                snapshot.began_monotonic,
                snapshot.batch_by_key,
                snapshot.is_whole_of_batch,
                snapshot.unsure,
            )
        )
        changed = set(_changed_keys(self._by_key, snapshot.batch_by_key))
        changed |= snapshot.unsure ^ self._unsure
        self._by_key, self._unsure = snapshot.batch_by_key, snapshot.unsure
        awaited, self._read_for = self._read_for, set()
        for key in changed - self._waiting_for_reading:
            self._wake(key)
        for key in awaited - changed - self._waiting_for_reading:
            self._remind(key)

    def failed(self) -> None:
        """Process a failed reading: the next one must include what this one should have."""
        self._expectations.failed()
        self._waiting_for_reading |= self._read_for
        self._seeks_absence = True


def _changed_keys(
    before: Mapping[WorkloadKey, tuple[BatchJob, ...]],
    after: Mapping[WorkloadKey, tuple[BatchJob, ...]],
) -> Iterator[WorkloadKey]:
    if before is after:
        return
    for key, jobs in after.items():
        if before.get(key) != jobs:
            yield key
    yield from before.keys() - after.keys()
