"""Create and remove the pods that copy results, as `slurmjobs.companions.collecting` decides, and report their progress.

It has its own queue, like the log companions: a claim that cannot be mounted delays one SlurmJob and nothing else.
Progress comes from the pods; only the reason of a refused create is kept here, and a new leader finds that out again.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import structlog
from structlog.contextvars import bind_contextvars

from bridge.reconcile.program import Program
from slurmjobs.companions import collecting, pod
from slurmjobs.companions.collecting import CollectFacts
from slurmjobs.lifecycle.situation import Collection, CopyState
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.pods import RETRY, SOON, WORKERS, CompanionWatch, remove
from slurmruntime.kube import errors
from slurmruntime.leading.controller import Controller, Watch
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)


class ResultCollectors:
    """Manages collectors during one term of leadership."""

    def __init__(
        self,
        program: Program,
        watch: CompanionWatch,
        *,
        objects: JobCaches,
        batch_jobs: BatchJobs,
        job_queue: WorkQueue[WorkloadKey],
    ) -> None:
        """job_queue: gets each SlurmJob whose copying has made progress."""
        self._program = program
        self._watch = watch
        self._objects = objects
        self._batch_jobs = batch_jobs
        self._job_queue = job_queue
        self._controller = Controller(
            "collectors",
            self.reconcile,
            [Watch(objects, _of_job), watch.changes_of(pod.COLLECT)],
            process=program.process,
        )
        self._refusals: dict[WorkloadKey, str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Manage collectors until `stop` is set."""
        await self._controller.run(stop, workers=WORKERS)

    def collection(self, job: SlurmJobObject) -> Collection:
        """Return the state of copying a SlurmJob's results."""
        if not self._watch.pods.synced.is_set():
            return Collection(state=CopyState.NOT_YET)
        return collecting.decide(self._facts(job)).collection

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Reconcile one SlurmJob's collectors; return the delay until the next time if no event comes first.

        Raises:
            KubeError: try again after a back-off.
        """
        job = self._objects.get(key)
        if job is None or not collecting.is_due(job):
            self._refusals.pop(key, None)
            return None
        if not self._watch.pods.synced.is_set():
            return SOON
        bind_contextvars(slurm_job=job.full_name)
        facts = self._facts(job)
        step = collecting.decide(facts)
        for companion in self._watch.collectors(key):
            if companion.collector in step.remove:
                await remove(self._program.kube, companion)
        self._job_queue.add(key)
        if step.make:
            return await self._create(key, job, facts, step.make)
        return step.retry_after

    def _facts(self, job: SlurmJobObject) -> CollectFacts:
        key = WorkloadKey(job.metadata.uid)
        return CollectFacts(
            job=job,
            collectors=[companion.collector for companion in self._watch.collectors(key)],
            now=self._batch_jobs.now(),
            refusal=self._refusals.get(key, ""),
        )

    async def _create(
        self, key: WorkloadKey, job: SlurmJobObject, facts: CollectFacts, number: int
    ) -> timedelta | None:
        account = collecting.account_of(job, self._batch_jobs.of(key), facts.collectors)
        if account is None or account.uid == 0:
            return self._refuse(key, "the job's uid is unknown, or it is root's")
        manifest = pod.collector(
            job,
            account,
            self._program.settings.slurm_jobs.companion_image,
            number=number,
            seconds=collecting.seconds_left(facts),
        )
        name = collecting.name_of(job, number)
        try:
            await self._watch.create(job, manifest)
        except errors.Conflict:  # ours, not seen by the watch yet; or another pod of that name
            return self._refuse(key, f"pod {name} already exists")
        except (errors.Forbidden, errors.Rejected) as error:
            return self._refuse(key, f"pod {name} was refused: {error}")
        except errors.NotFound:
            return None  # the namespace is gone
        self._refusals.pop(key, None)
        _log.info("collector.made", name=name, uid=account.uid)
        return None

    def _refuse(self, key: WorkloadKey, why: str) -> timedelta:
        _log.warning("collector.refused", why=why)
        self._refusals[key] = shortened(why, 1000)
        self._job_queue.add(key)
        return RETRY


def _of_job(old: SlurmJobObject | None, new: SlurmJobObject | None) -> Iterator[WorkloadKey]:
    job = new or old
    if job is not None and (job.spec.results or new is None):
        yield WorkloadKey(job.metadata.uid)
