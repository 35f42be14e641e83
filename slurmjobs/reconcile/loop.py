"""The reconcile loop over SlurmJobs: gather, decide, act."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog
from structlog.contextvars import bind_contextvars
from typing_extensions import override

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from bridge.domain.observation.dwell import TimeInState
from bridge.domain.observation.view import Past
from slurmjobs.lifecycle import failed, table
from slurmjobs.lifecycle.situation import Collection, JobFacts, JobPolicy
from slurmjobs.lifecycle.table import JobRow
from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.reconcile.actuator import JobActuator
from slurmjobs.reconcile.archive import Archives
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.submitting import BatchSubmitter
from slurmjobs.reconcile.telling import about
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values import names
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.ids import WorkloadKey
from slurmruntime.values.oddities import About

_log = structlog.get_logger(__name__)

_MOST_VANISHED = 3
"""Orphaned jobs are cancelled only if at most this many SlurmJobs vanish at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsInSlurm:
    """What this leader knows of the jobs of SlurmJobs, and how it gets more of them."""

    batch_jobs: BatchJobs
    archives: Archives
    submitter: BatchSubmitter


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSources:
    """What is watched, and the queue that it fills."""

    objects: JobCaches
    pods: Cache[Pod]
    """Pods that SlurmJobs may depend on."""
    queue: WorkQueue[WorkloadKey]
    """The queue of SlurmJobs' uids; readings of Slurm fill it, too."""


class SlurmJobLoop(Keys[WorkloadKey]):
    """Reconciles SlurmJobs during one term of leadership."""

    def __init__(
        self,
        sources: JobSources,
        in_slurm: JobsInSlurm,
        actuator: JobActuator,
        *,
        collection: Callable[[SlurmJobObject], Collection],
        policy: JobPolicy,
        process: Process,
    ) -> None:
        """collection: returns the state of copying a SlurmJob's results."""
        self._objects = sources.objects
        self._queue = sources.queue
        self._batch_jobs = in_slurm.batch_jobs
        self._archives = in_slurm.archives
        self._submitter = in_slurm.submitter
        self._actuator = actuator
        self._collection = collection
        self._policy = policy
        self._metrics = process.metrics
        self._time_in_state = TimeInState()
        self._tracked: dict[WorkloadKey, Past] = {}
        self._gone: dict[WorkloadKey, JobResource] = {}
        """SlurmJobs that this process has seen and that are gone, with their resources."""
        self._dependents = sources.objects.index(_depends_on)
        self._controller = Controller(
            "slurm_jobs",
            self.reconcile,
            [Watch(sources.objects, self._of_job), Watch(sources.pods, self._of_pod)],
            process=process,
            keys=self,
            queue=sources.queue,
        )

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile SlurmJobs until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._archives.run(stop))
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Reconcile one SlurmJob; return the delay until the next time if no event comes first.

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
            await self._actuator.cancel_orphan(job, where, key)
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

    # -- events -----------------------------------------------------------------------------------

    @override
    def about(self, key: WorkloadKey, /) -> About | None:
        job = self._objects.get(key)
        return None if job is None else about(job)

    def _of_job(
        self, old: SlurmJobObject | None, new: SlurmJobObject | None
    ) -> Iterator[WorkloadKey]:
        job = new or old
        if job is None:
            return
        key = WorkloadKey(job.metadata.uid)
        self._metrics.slurm_jobs.moved(_phase(old), _phase(new))
        if new is None:
            self._gone[key] = job.resource
            self._actuator.forget(key)
            self._time_in_state.forget(key)
            self._submitter.forget(key)
            self._archives.forget(key)
        elif old is not None and old.metadata.generation != new.metadata.generation:
            self._submitter.retry(key)
        yield key
        yield from self._dependents_of(f"SlurmJob {job.full_name}")

    def _of_pod(self, old: Pod | None, new: Pod | None) -> Iterator[WorkloadKey]:
        if new is not None and (old is None or (old.job_id, old.phase) != (new.job_id, new.phase)):
            yield from self._dependents_of(f"pod {new.full_name}")

    def _dependents_of(self, dependency: str) -> Iterator[WorkloadKey]:
        """Yield the SlurmJobs that wait for something, which may now be submitted."""
        for other in self._dependents.get(dependency):
            dependent = WorkloadKey(other.metadata.uid)
            if other.status.job_id is None:
                self._submitter.retry(dependent)
                yield dependent

    @override
    def lane(self, key: WorkloadKey, /) -> str:
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
