"""Make and remove the pods that copy results, as `slurmjobs.companions.collecting` decides, and say how the copying stands.

A queue of its own, as that of the companions that print output: a claim that cannot be mounted delays one SlurmJob, and nothing else.
What is told of it comes from the pods; only why one was refused is kept here, and a new leader finds that out again.
"""

import asyncio
from datetime import timedelta
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from bridge.reconcile.program import Program
from slurmjobs.companions import collecting, pod
from slurmjobs.companions.collecting import CollectFacts
from slurmjobs.lifecycle.situation import Collected, Collection
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.pods import CompanionPod, CompanionWatch, path_of
from slurmruntime.kube import errors, paths
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)

_WORKERS: Final = 4
_AGAIN: Final = timedelta(seconds=30)
"""After something that only others can change: a quota, a missing right, another pod of that name."""
_SOON: Final = timedelta(seconds=2)


class ResultCollectors:
    """Sees to collectors during one term of leadership."""

    def __init__(
        self,
        program: Program,
        watch: CompanionWatch,
        *,
        objects: JobCaches,
        batch_jobs: BatchJobs,
        told: WorkQueue[WorkloadKey],
    ) -> None:
        """told: gets each SlurmJob of whose collecting there is news."""
        self._program = program
        self._watch = watch
        self._objects = objects
        self._batch_jobs = batch_jobs
        self._told = told
        self._queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        self._maker = program.kube.acting_as(program.settings.slurm_jobs.companion_account)
        self._troubles: dict[WorkloadKey, str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """See to collectors until told to stop."""
        self._objects.subscribe(self._job_changed)
        self._watch.pods.subscribe(self._pod_changed)
        await worker.run(
            self._queue,
            self.reconcile,
            name="collectors",
            count=_WORKERS,
            stop=stop,
            metrics=self._program.metrics,
            aside=Aside(self._program.set_aside, "workload"),
        )

    def collection(self, job: SlurmJobObject) -> Collection:
        """Return how the copying of a SlurmJob's results stands."""
        if not self._watch.pods.synced.is_set():
            return Collection(state=Collected.NOT_YET)
        return collecting.decide(self._facts(job)).collection

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Look at one SlurmJob's collectors and do what is needed.

        Return the delay until the next look if no event comes first.

        Raises:
            KubeError: try again after a back-off.
        """
        job = self._objects.get(key)
        if job is None or not collecting.is_due(job):
            self._troubles.pop(key, None)
            return None
        if not self._watch.pods.synced.is_set():
            return _SOON
        bind_contextvars(slurm_job=job.full_name)
        facts = self._facts(job)
        step = collecting.decide(facts)
        for collector in self._watch.collectors(key):
            if collector.collector in step.remove and collector.metadata.deletion_timestamp is None:
                await self._remove(collector)
        self._told.add(key)
        if step.make:
            return await self._make(key, job, facts, step.make)
        return step.retry_after

    def _facts(self, job: SlurmJobObject) -> CollectFacts:
        key = WorkloadKey(job.metadata.uid)
        return CollectFacts(
            job=job,
            collectors=[collector.collector for collector in self._watch.collectors(key)],
            now=self._batch_jobs.now(),
            trouble=self._troubles.get(key, ""),
        )

    async def _make(
        self, key: WorkloadKey, job: SlurmJobObject, facts: CollectFacts, number: int
    ) -> timedelta | None:
        account = collecting.account_of(job, self._batch_jobs.of(key), facts.collectors)
        if account is None or account.uid == 0:
            return self._trouble(key, "nobody knows the number of the job's user, or it is root's")
        manifest = pod.collector(
            job,
            account,
            self._program.settings.slurm_jobs.companion_image,
            number=number,
            seconds=collecting.seconds_left(facts),
        )
        path = paths.of("api", "v1", "namespaces", job.metadata.namespace, "pods")
        name = collecting.name_of(job, number)
        try:
            await self._maker.request("POST", path, body=manifest)
        except errors.Conflict:  # ours, which the watch has not shown yet; or somebody else's pod
            return self._trouble(key, f"there is a pod {name} already")
        except (errors.Forbidden, errors.Rejected) as error:
            return self._trouble(key, f"pod {name} was refused: {error}")
        except errors.NotFound:
            return None  # the namespace is gone
        self._troubles.pop(key, None)
        _log.info("collector.made", name=name, uid=account.uid)
        return None

    def _trouble(self, key: WorkloadKey, why: str) -> timedelta:
        _log.warning("collector.refused", why=why)
        self._troubles[key] = shortened(why, 1000)
        self._told.add(key)
        return _AGAIN

    async def _remove(self, found: CompanionPod) -> None:
        try:
            await self._program.kube.request(
                "DELETE", path_of(found), body={"preconditions": {"uid": found.metadata.uid}}
            )
        except (errors.NotFound, errors.Conflict):
            return

    def _job_changed(self, old: SlurmJobObject | None, new: SlurmJobObject | None) -> None:
        found = new or old
        if found is not None and (found.spec.results or new is None):
            self._queue.add(WorkloadKey(found.metadata.uid))

    def _pod_changed(self, old: CompanionPod | None, new: CompanionPod | None) -> None:
        found = new or old
        if found is not None and found.is_for == pod.COLLECT:
            self._queue.add(found.key)
