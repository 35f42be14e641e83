"""Carry out the decisions about SlurmJobs. Every action is idempotent and may be interrupted anywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

import structlog

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.slurm.batch_jobs import calls
from slurmjobs.lifecycle.actions import (
    AddFinalizer,
    CancelBatch,
    Expire,
    JobAction,
    JobDecision,
    RemoveFinalizer,
    Report,
    SubmitBatch,
)
from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmjobs.reconcile import resource
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.submitting import BatchSubmitter
from slurmjobs.reconcile.telling import JobEvents
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.metrics.slurm_jobs import SlurmJobMetrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, WorkloadKey

_log = structlog.get_logger(__name__)


class JobActuator:
    """Carries out the decisions of one leader."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        cluster: ClusterId,
        objects: JobCaches,
        batch_jobs: BatchJobs,
        submitter: BatchSubmitter,
        events: JobEvents,
        metrics: SlurmJobMetrics,
    ) -> None:
        self._kube = kube
        self._slurm = slurm
        self._cluster = cluster
        self._objects = objects
        self._batch_jobs = batch_jobs
        self._submitter = submitter
        self._events = events
        self._metrics = metrics

    async def carry_out(self, job: SlurmJobObject, decision: JobDecision) -> None:
        """Carry out the actions in order, stopping at the first that fails.

        Raises:
            KubeError, SlurmError: an action failed; decide again later.
        """
        try:
            for action in decision.actions:
                await self._act(job, action)
                if not isinstance(action, Wait):
                    name = type(action).__name__
                    _log.info("slurm_job.acted", action=name, reason=decision.reason)
        except kube_errors.NotFound as error:
            if not error.reason:  # a page of some proxy
                raise
            _log.debug("slurm_job.gone_already")

    async def cancel_orphan(self, job: BatchJob, where: JobResource, key: WorkloadKey) -> None:
        """Cancel a job if the API server has its SlurmJob no longer.

        Raises:
            KubeError, SlurmError: try again.
        """
        try:
            owner = await resource.get(self._kube, where, job.mark.namespace, job.mark.name)
            is_gone = owner.metadata.uid != key
        except kube_errors.NotFound as error:
            if not error.reason:  # a page of some proxy
                raise
            is_gone = True
        if is_gone:
            _log.warning("slurm_job.orphan_cancelled", job_id=job.id, uid=key)
            await calls.cancel(self._slurm, job.id, job.sluid, job.mark)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that is gone."""
        self._events.forget(key)

    def mark(self, job: SlurmJobObject, attempt: int) -> BatchMark:
        """Return the mark of an attempt's job."""
        return BatchMark(
            cluster=self._cluster,
            namespace=job.metadata.namespace,
            name=job.metadata.name,
            key=WorkloadKey(job.metadata.uid),
            attempt=attempt,
        )

    async def _act(self, job: SlurmJobObject, action: JobAction) -> None:
        match action:
            case AddFinalizer():
                with self._writing_to(job):
                    self._seen(job, await resource.add_finalizer(self._kube, job))
                self._submitter.begin(WorkloadKey(job.metadata.uid), attempt=1)
            case SubmitBatch(attempt=attempt):
                await self._submitter.submit(job, self.mark(job, attempt))
            case CancelBatch(job_id=job_id, sluid=sluid):
                try:
                    await calls.cancel(self._slurm, job_id, sluid, self.mark(job, 1))
                finally:
                    self._batch_jobs.wrote(WorkloadKey(job.metadata.uid))
            case Report(status=status):
                with self._writing_to(job):
                    self._seen(job, await resource.write_status(self._kube, job, status))
                if status.attempt > max(job.status.attempt, 1):
                    self._submitter.begin(WorkloadKey(job.metadata.uid), attempt=status.attempt)
                self._count(job.status, status)
                await self._events.report(job, status)
            case Expire():
                await resource.delete(self._kube, job)
            case RemoveFinalizer():
                with self._writing_to(job):
                    await resource.remove_finalizer(self._kube, job)
            case Wait():
                pass
            case unreachable:
                assert_never(unreachable)

    def _count(self, before: SlurmJobStatus, after: SlurmJobStatus) -> None:
        if before.phase == after.phase or after.phase not in ("Succeeded", "Failed"):
            return
        # With results, copying comes before the report: no measure of how soon an end is reported.
        ended_at = after.end_time if after.results is None else None
        since = None if ended_at is None else self._batch_jobs.now() - ended_at
        self._metrics.ended(after.reason, None if since is None else since.total_seconds())

    def _seen(self, before: SlurmJobObject, after: SlurmJobObject) -> None:
        self._objects.observe(after, base=before.metadata.resource_version)

    @contextmanager
    def _writing_to(self, job: SlurmJobObject) -> Iterator[None]:
        """Record the write, even if it fails: nothing else is done until its effect is seen."""
        try:
            yield
        finally:
            self._batch_jobs.patched(job)
