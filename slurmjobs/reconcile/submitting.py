"""Submit SlurmJobs' jobs, and keep track of this process's submits."""

import asyncio

import structlog

from bridge.domain.model.batch import BatchMark
from bridge.slurm.batch_jobs import calls
from slurmclient import errors
from slurmjobs.lifecycle.situation import SubmissionFailure
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.preparing import PreparationFailure, Preparer
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics.slurm_jobs import SlurmJobMetrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)


class BatchSubmitter:
    """Submits jobs. Refusals are kept until the next accepted submit; a new leader tries again."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        preparer: Preparer,
        batch_jobs: BatchJobs,
        concurrency: int,
        clock: Clock,
        metrics: SlurmJobMetrics,
    ) -> None:
        self._slurm = slurm
        self._preparer = preparer
        self._batch_jobs = batch_jobs
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._metrics = metrics
        self._untried: dict[WorkloadKey, int] = {}
        """Attempts that this process saw begin, and of which Slurm has replied to every submit so far."""
        self._begun: set[WorkloadKey] = set()
        """SlurmJobs of which this process began an attempt."""
        self._refusals: dict[WorkloadKey, SubmissionFailure] = {}

    def begin(self, key: WorkloadKey, *, attempt: int) -> None:
        """Record that our own write begins an attempt: it has not been submitted yet."""
        self._untried[key] = attempt
        self._begun.add(key)
        self._refusals.pop(key, None)

    def is_untried(self, key: WorkloadKey, attempt: int) -> bool:
        """Check whether no submit of this attempt can have been accepted."""
        return self._untried.get(key) == attempt

    def is_ours(self, key: WorkloadKey) -> bool:
        """Check whether only this process can have submitted for the SlurmJob."""
        return key in self._begun

    def refusal(self, key: WorkloadKey) -> SubmissionFailure | None:
        """Return why the last submits failed; None if they did not."""
        return self._refusals.get(key)

    def retry(self, key: WorkloadKey) -> None:
        """Drop the refusal, so that the next reconcile submits: its cause may be gone."""
        self._refusals.pop(key, None)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that has ended or is gone."""
        self._untried.pop(key, None)
        self._begun.discard(key)
        self._refusals.pop(key, None)

    async def submit(self, job: SlurmJobObject, mark: BatchMark) -> None:
        """Submit a job, or record why that failed.

        Raises:
            LostReply: it may have been accepted; the next readings show whether it was.
            KubeError, SlurmError: it was not submitted.
        """
        try:
            fields = await self._preparer.prepare(job)
        except PreparationFailure as failure:
            self._refuse(mark.key, failure)
            # Nothing was written, but so the next reading reconciles it again.
            self._batch_jobs.wrote(mark.key)
            return
        # Restored only if Slurm replies that nothing was accepted: until then there may be a job.
        untried = self._untried.pop(mark.key, None)
        may_still_happen = True
        try:
            async with self._slots:
                job_id = await calls.submit(self._slurm, fields, mark)
        except errors.LostReply:
            self._metrics.lost()
            raise
        except errors.SlurmError as error:
            may_still_happen = False
            if untried is not None:
                self._untried[mark.key] = untried
            if not isinstance(error, errors.Declined):
                raise
            self._refuse(mark.key, PreparationFailure("SubmitRefused", error.words))
        else:
            may_still_happen = False
            self._batch_jobs.submitted(job_id, mark)
            self._refusals.pop(mark.key, None)
            created_at = job.metadata.creation_timestamp or self._clock.now()
            self._metrics.accepted((self._clock.now() - created_at).total_seconds())
            _log.info("slurm_job.submitted", job_id=job_id, attempt=mark.attempt)
        finally:
            self._batch_jobs.wrote(mark.key, may_still_happen=may_still_happen)

    def _refuse(self, key: WorkloadKey, why: PreparationFailure) -> None:
        self._metrics.refused(why.reason)
        before = self._refusals.get(key)
        self._refusals[key] = SubmissionFailure(
            reason=why.reason,
            text=shortened(why.text),
            attempts=before.attempts + 1 if before else 1,
            at=self._clock.now(),
            is_final=why.is_final,
        )
        _log.warning("slurm_job.refused", reason=why.reason, text=shortened(why.text, 500))
