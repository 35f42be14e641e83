"""Wire the controller of SlurmJobs, for one process and for one term of leadership."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial

from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.reconcile.informers import watch_service
from bridge.reconcile.leadership import Leadership
from bridge.reconcile.program import Program
from bridge.settings.policy_file import PolicyFile
from bridge.settings.slurm_jobs import zone
from bridge.settings.sylabs import SylabsSection
from slurmjobs.lifecycle.situation import Collection, CopyState, JobPolicy
from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import JobResource, SlurmJobObject
from slurmjobs.reconcile import dependencies
from slurmjobs.reconcile.actuator import JobActuator
from slurmjobs.reconcile.archive import Archives
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.collectors import ResultCollectors
from slurmjobs.reconcile.companions.logs import LogCompanions
from slurmjobs.reconcile.companions.pods import CompanionWatch
from slurmjobs.reconcile.dependencies import SlurmDependencies, UnmetDependency
from slurmjobs.reconcile.loop import JobsInSlurm, JobSources, SlurmJobLoop
from slurmjobs.reconcile.preparing import Preparer
from slurmjobs.reconcile.remembering import AnswerCache
from slurmjobs.reconcile.submitting import BatchSubmitter
from slurmjobs.reconcile.telling import JobEvents
from slurmjobs.sylabs.job import KINDS, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmruntime.kube import objects
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import pause
from slurmruntime.process.lifetime import Service
from slurmruntime.slurm import inspection
from slurmruntime.values.ids import WorkloadKey

_SYNC_POLL_S = 0.2
_WORKERS = 8
_SUBMITS = 4
"""Concurrent submits; slurmctld accepts one after another anyway."""
_PACE = Pace(busy_s=1, idle_s=1, shortest_s=1)
"""Nobody waits for a batch job within a second."""
_LABELS_LAST_S = 5.0
_SLURM_USER_LASTS_S = 30.0
"""SlurmUser changes only when slurmctld restarts."""


class SlurmJobs:
    """SlurmJobs in one process, whether it leads or not."""

    def __init__(self, program: Program, policy: PolicyFile, pods: Cache[Pod]) -> None:
        self._program = program
        self._pods = pods
        self._pods_by_name = pods.index(lambda pod: [pod.full_name])
        self._policy = policy
        self._objects = JobCaches(_resources(program.settings.sylabs), program.set_aside)
        self._by_name = self._objects.of(slurmjob.OURS).index(lambda job: [job.full_name])
        image, account = (
            program.settings.slurm_jobs.companion_image,
            program.installation.companion_account,
        )
        self._companions = CompanionWatch(program) if image and account else None

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica; readiness depends on the watch of our own kind."""
        watches = (self._watch(resource, cache) for resource, cache in self._objects)
        companions = [self._companions.part()] if self._companions else []
        return (*watches, *companions)

    def _watch(self, resource: JobResource, cache: Cache[SlurmJobObject]) -> Service:
        # A foreign definition may never be installed: our own jobs do not wait for it.
        group, _, _ = resource.api_version.partition("/")
        is_ours = resource is slurmjob.OURS
        name = "slurm_jobs" if is_ours else f"{resource.plural}.{group}"
        return watch_service(self._program, name, cache, is_needed=is_ours)

    async def control(self, term: Leadership, stop: asyncio.Event) -> None:
        """Run the controller while this process leads."""
        program = self._program
        while not self._objects.is_synced(slurmjob.OURS):
            await pause(_SYNC_POLL_S, stop)  # the definition may never be installed
            if stop.is_set():
                return
        queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        batch_jobs = BatchJobs(
            term.discovery,
            term.placeholders,
            pace=_PACE,
            clock=program.clock,
            wake=queue.add,
            remind=queue.remind,
        )
        term.placeholders.share_with(batch_jobs)
        submitter = BatchSubmitter(
            program.slurm,
            preparer=self._preparer(),
            batch_jobs=batch_jobs,
            concurrency=_SUBMITS,
            clock=program.clock,
            metrics=program.metrics.slurm_jobs,
        )
        parts: list[LogCompanions | ResultCollectors] = []
        collection: Callable[[SlurmJobObject], Collection] = _not_served
        if self._companions is not None:
            printers = LogCompanions(
                program, self._companions, objects=self._objects, batch_jobs=batch_jobs
            )
            collectors = ResultCollectors(
                program,
                self._companions,
                objects=self._objects,
                batch_jobs=batch_jobs,
                job_queue=queue,
            )
            parts, collection = [printers, collectors], collectors.collection
        loop = SlurmJobLoop(
            JobSources(objects=self._objects, pods=self._pods, queue=queue),
            JobsInSlurm(
                batch_jobs=batch_jobs,
                archives=Archives(program.slurm, clock=program.clock, wake=queue.add),
                submitter=submitter,
            ),
            JobActuator(
                kube=program.kube,
                slurm=program.slurm,
                cluster=program.cluster,
                objects=self._objects,
                batch_jobs=batch_jobs,
                submitter=submitter,
                events=JobEvents(program.events),
                metrics=program.metrics.slurm_jobs,
            ),
            collection=collection,
            policy=JobPolicy(poll_interval=timedelta(seconds=_PACE.busy_s)),
            process=program.process,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop, workers=_WORKERS))
            for part in parts:
                group.create_task(part.run(stop))

    def _preparer(self) -> Preparer:
        program = self._program
        time_zone = zone(program.settings.slurm_jobs.time_zone)
        monotonic = program.clock.monotonic

        async def labels_of(namespace: str) -> Mapping[str, str]:
            return (await objects.get_namespace(program.kube, namespace)).labels

        async def operators_of(_: str) -> frozenset[str]:
            return await inspection.slurm_user(program.slurm)

        labels = AnswerCache(labels_of, lasts_s=_LABELS_LAST_S, monotonic=monotonic)
        slurm_user = AnswerCache(operators_of, lasts_s=_SLURM_USER_LASTS_S, monotonic=monotonic)
        return Preparer(
            program.kube,
            policy=lambda: self._policy.current,
            labels=labels.get,
            slurm_user=partial(slurm_user.get, ""),
            now=lambda: program.clock.now().astimezone(time_zone),
            resolve=self._resolve,
            has_collectors=self._companions is not None,
        )

    def _resolve(self, job: SlurmJobObject) -> SlurmDependencies | UnmetDependency:
        namespace, wanted = job.metadata.namespace, job.spec.depends_on
        return dependencies.resolve(
            job,
            jobs={
                one.slurm_job: self._named(namespace, one.slurm_job)
                for one in wanted
                if one.slurm_job
            },
            pods={one.pod: self._pod_named(namespace, one.pod) for one in wanted if one.pod},
        )

    def _named(self, namespace: str, name: str) -> SlurmJobObject | None:
        return next(iter(self._by_name.get(f"{namespace}/{name}")), None)

    def _pod_named(self, namespace: str, name: str) -> Pod | None:
        pods = self._pods_by_name.get(f"{namespace}/{name}")
        return max(pods, key=lambda pod: pod.created_at, default=None)


def _not_served(_job: SlurmJobObject) -> Collection:
    text = "slurm-bridge has no image to copy them with (slurm_jobs.companion_image)"
    return Collection(state=CopyState.GIVEN_UP, text=text)


def _resources(sylabs: SylabsSection) -> Iterator[JobResource]:
    yield slurmjob.OURS
    if sylabs.enabled:
        site = SylabsSite.of(sylabs)
        yield from (SylabsResource(kind, site) for kind in KINDS)
