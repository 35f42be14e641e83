"""The reconcile loop over SlurmJobs: gather, decide, act."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import structlog
from structlog.contextvars import bind_contextvars

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from bridge.domain.observation.dwell import TimeInState
from bridge.domain.observation.view import Past
from bridge.slurm.batch_jobs import calls
from slurmjobs.lifecycle import failed, table
from slurmjobs.lifecycle.situation import Collection, JobFacts, JobPolicy
from slurmjobs.lifecycle.table import JobRow
from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.reconcile import resource
from slurmjobs.reconcile.actuator import JobActuator
from slurmjobs.reconcile.archive import Archives
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.submitting import BatchSubmitter
from slurmjobs.reconcile.telling import JobEvents, about
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import About, Oddities

_log = structlog.get_logger(__name__)

_MOST_VANISHED = 3
"""Orphaned jobs are cancelled only if at most this many SlurmJobs vanish at once."""


class SlurmJobLoop:
    """Reconciles SlurmJobs during one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        objects: JobCaches,
        pods: Cache[Pod],
        queue: WorkQueue[WorkloadKey],
        batch_jobs: BatchJobs,
        archives: Archives,
        submitter: BatchSubmitter,
        actuator: JobActuator,
        events: JobEvents,
        collection: Callable[[SlurmJobObject], Collection],
        policy: JobPolicy,
        metrics: Metrics,
        set_aside: Oddities,
    ) -> None:
        """collection: returns the state of copying a SlurmJob's results."""
        self._kube = kube
        self._slurm = slurm
        self._objects = objects
        self._pods = pods
        self._queue = queue
        self._batch_jobs = batch_jobs
        self._archives = archives
        self._submitter = submitter
        self._actuator = actuator
        self._events = events
        self._collection = collection
        self._policy = policy
        self._metrics = metrics
        self._set_aside = set_aside
        self._time_in_state = TimeInState()
        self._tracked: dict[WorkloadKey, Past] = {}
        self._gone: dict[WorkloadKey, JobResource] = {}
        """SlurmJobs that this process has seen and that are gone, with their resources."""
        self._dependents = objects.index(_depends_on)
        queue.serve_by(self._namespace)

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile SlurmJobs until `stop` is set."""
        self._objects.subscribe(self._changed)
        self._pods.subscribe(self._pod_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._archives.run(stop))
            await worker.run(
                self._queue,
                self.reconcile,
                name="slurm_jobs",
                count=workers,
                stop=stop,
                metrics=self._metrics,
                aside=Aside(self._set_aside, "workload", self._about),
            )

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Reconcile one SlurmJob.

        Return the delay until the next time if no event comes first.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        job = self._objects.get(key)
        if job is None:
            await self._cancel_orphans(key)
            return None
        bind_contextvars(slurm_job=job.full_name)
        try:
            self._track(key, job)
            facts = self._gather(key, job)
            if self._batch_jobs.is_awaited(key):
                self._queue.undecided(key)
            decision = table.decide(facts, self._policy)
            await self._actuator.carry_out(job, decision)
        except PEER_ERRORS:
            raise
        except Exception as error:
            if job.is_ours:
                with suppress(*PEER_ERRORS):  # the original error matters more
                    report = failed.decision(job, error, self._batch_jobs.now())
                    await self._actuator.carry_out(job, report)
            raise
        return decision.retry_after

    # -- gather -----------------------------------------------------------------------------------

    def _gather(self, key: WorkloadKey, job: SlurmJobObject) -> JobFacts:
        now = self._batch_jobs.now()
        facts = JobFacts(
            job=job,
            seen=self._batch_jobs.seen(job),
            now=now,
            refusal=self._submitter.refusal(key),
        )
        attempt = table.attempt_of(facts)
        facts = replace(facts, is_untried=self._submitter.is_untried(key, attempt))
        if table.needs_archive(facts):
            mark = self._actuator.mark(job, attempt)
            facts = replace(facts, archive=self._archives.finding(job, mark))
        else:
            self._archives.forget(key)
        if table.row_of(job) is JobRow.COLLECTING:
            facts = replace(facts, collection=self._collection(job))
        place = table.position(facts, self._policy)
        since = self._time_in_state.since(key, (place.row, place.column), now)
        return replace(facts, since=since)

    def _track(self, key: WorkloadKey, job: SlurmJobObject) -> None:
        """Begin to track it: the finalizer shows what other leaders may have written about it.

        If a finalizer appeared that this process did not add, another leader handled the SlurmJob in
        between.
        """
        has_finalizer = names.SLURM_JOB_FINALIZER in (job.metadata.finalizers or ())
        past = Past.NOTHING
        if has_finalizer and self._tracked.get(key, Past.NOTHING) is not Past.NOTHING:
            return
        if has_finalizer and not self._submitter.is_ours(key):
            past = Past.IN_FLIGHT if job.status.job_id is None else Past.HANDED_OVER
            self._batch_jobs.forget(key)
        self._tracked[key] = past
        self._batch_jobs.meet(key, past)

    # -- what is gone -----------------------------------------------------------------------------

    async def _cancel_orphans(self, key: WorkloadKey) -> None:
        """Cancel the jobs of a SlurmJob that this process has seen and that is certainly gone.

        Its finalizer was removed by force. Jobs of SlurmJobs that this process has never seen are left
        alone and logged: after a backup was restored, they may be anything. So are those of many objects
        that vanish at once: then it is more likely that the API server is wrong.
        """
        live = [job for job in self._batch_jobs.of(key) if job.phase is not JobPhase.ENDED]
        for job in live:
            where = self._gone.get(key)
            if where is None or not self._objects.is_synced(where):
                _log.warning("slurm_job.unknown_object", job_id=job.id, uid=key)
                continue
            if (vanished := self._vanished()) > _MOST_VANISHED:
                _log.warning("slurm_job.orphan_held", job_id=job.id, uid=key, vanished=vanished)
                continue
            if await self._is_gone(where, job.mark.namespace, job.mark.name, key):
                _log.warning("slurm_job.orphan_cancelled", job_id=job.id, uid=key)
                await calls.cancel(self._slurm, job.id, job.sluid, job.mark)
        if not live:
            self._batch_jobs.forget(key)
            self._tracked.pop(key, None)
            self._gone.pop(key, None)

    def _vanished(self) -> int:
        """Count the SlurmJobs that are gone but have live jobs."""
        return sum(
            any(job.phase is not JobPhase.ENDED for job in self._batch_jobs.of(key))
            for key in self._gone
        )

    async def _is_gone(
        self, where: JobResource, namespace: str, name: str, key: WorkloadKey
    ) -> bool:
        try:
            return (await resource.get(self._kube, where, namespace, name)).metadata.uid != key
        except kube_errors.NotFound:
            return True

    # -- events -----------------------------------------------------------------------------------

    def _about(self, key: WorkloadKey) -> About | None:
        job = self._objects.get(key)
        return None if job is None else about(job)

    def _changed(self, old: SlurmJobObject | None, new: SlurmJobObject | None) -> None:
        job = new or old
        if job is None:
            return
        key = WorkloadKey(job.metadata.uid)
        self._metrics.slurm_jobs.moved(_phase(old), _phase(new))
        if new is None:
            self._gone[key] = job.resource
            self._events.forget(key)
            self._time_in_state.forget(key)
            self._submitter.forget(key)
            self._archives.forget(key)
        elif old is not None and old.metadata.generation != new.metadata.generation:
            self._submitter.retry(key)
        self._queue.add(key)
        self._wake_dependents(f"SlurmJob {job.full_name}")

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and (old is None or (old.job_id, old.phase) != (new.job_id, new.phase)):
            self._wake_dependents(f"pod {new.full_name}")

    def _wake_dependents(self, dependency: str) -> None:
        for other in self._dependents.get(dependency):
            dependent = WorkloadKey(other.metadata.uid)
            if other.status.job_id is None:
                self._submitter.retry(dependent)
                self._queue.add(dependent)

    def _namespace(self, key: WorkloadKey) -> str:
        job = self._objects.get(key)
        return job.metadata.namespace if job else ""


def _phase(job: SlurmJobObject | None) -> str | None:
    return None if job is None else job.status.phase or ""


def _depends_on(job: SlurmJobObject) -> list[str]:
    namespace = job.metadata.namespace
    return [
        f"SlurmJob {namespace}/{dependency.slurm_job}"
        if dependency.slurm_job
        else f"pod {namespace}/{dependency.pod}"
        for dependency in job.spec.depends_on
        if dependency.slurm_job or dependency.pod
    ]
