"""Make, tell and remove companions, as `slurmjobs.companions.due` decides: gather, decide, act.

A queue of its own: whatever becomes of a companion, the job and its status do not wait for it. LogCompanions are made as
a service account of their own (`slurm_jobs.companion_account`), by which webhook and policies know them; all else is done as ourselves.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from bridge.domain.model.batch import BatchJob
from bridge.reconcile.program import Program
from slurmjobs.companions import due, pod
from slurmjobs.companions.due import Account, LogFacts, LogStep
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.pods import CompanionPod, CompanionWatch, path_of
from slurmjobs.reconcile.telling import about
from slurmruntime.kube import errors, events, paths
from slurmruntime.kube.client import JSON_PATCH
from slurmruntime.kube.events import Event, EventType
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)

_WORKERS: Final = 4
_AGAIN: Final = timedelta(seconds=30)
"""After something that only others can change: a quota, a missing right, another pod of that name."""
_SOON: Final = timedelta(seconds=2)


class LogCompanions:
    """Sees to the companions during one term of leadership."""

    def __init__(
        self,
        program: Program,
        watch: CompanionWatch,
        *,
        objects: JobCaches,
        batch_jobs: BatchJobs,
    ) -> None:
        self._program = program
        self._watch = watch
        self._objects = objects
        self._batch_jobs = batch_jobs
        self._queue: WorkQueue[WorkloadKey] = WorkQueue(rng=program.rng)
        self._refused: dict[str, str] = {}
        """Why a SlurmJob's companion was refused, as its Event says."""
        account = program.settings.slurm_jobs.companion_account
        self._maker = program.kube.acting_as(account)

    async def run(self, stop: asyncio.Event) -> None:
        """See to companions until told to stop."""
        self._objects.subscribe(self._job_changed)
        self._watch.pods.subscribe(self._pod_changed)
        await worker.run(
            self._queue,
            self.reconcile,
            name="companions",
            count=_WORKERS,
            stop=stop,
            metrics=self._program.metrics,
            aside=Aside(self._program.set_aside, "workload"),
        )

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Look at one SlurmJob's companion and do what is needed.

        Return the delay until the next look if no event comes first.

        Raises:
            KubeError: try again after a back-off.
        """
        job = self._objects.get(key)
        if job is None or not self._watch.pods.synced.is_set():
            return None if job is None else _SOON
        bind_contextvars(slurm_job=job.full_name)
        found = self._watch.of(key)
        companion = found.facts if found else None
        facts = LogFacts(job=job, companion=companion, now=self._batch_jobs.now())
        match due.step(facts):
            case LogStep.MAKE:
                return await self._make(job)
            case LogStep.TELL if found is not None:
                await self._tell(found, due.exit_code(job))
            case LogStep.REMOVE if found is not None and found.metadata.deletion_timestamp is None:
                await self._remove(found)
        return None

    async def _make(self, job: SlurmJobObject) -> timedelta | None:
        account = account_of(job, self._batch_jobs.of(WorkloadKey(job.metadata.uid)))
        if account is None:
            return _SOON if job.status.phase == "Running" else None  # Slurm has forgotten the job
        if account.uid == 0:
            return None
        image = self._program.settings.slurm_jobs.companion_image
        path = paths.of("api", "v1", "namespaces", job.metadata.namespace, "pods")
        try:
            await self._maker.request("POST", path, body=pod.manifest(job, account, image))
        except errors.Conflict:  # ours, which the watch has not shown yet; or somebody else's pod
            _log.info("companion.name_taken", name=pod.name_of(job))
            return _AGAIN
        except (errors.Forbidden, errors.Rejected) as error:
            _log.warning("companion.refused", error=str(error))
            await self._tell_refused(job, error.message)
            return _AGAIN
        except errors.NotFound:
            return None  # the namespace is gone
        _log.info("companion.made", name=pod.name_of(job), uid=account.uid)
        return None

    async def _tell_refused(self, job: SlurmJobObject, why: str) -> None:
        """Tell who submitted the job why nothing prints its output, once for each cause."""
        if self._refused.get(job.metadata.uid) == why:
            return
        self._refused[job.metadata.uid] = why
        event = Event(
            type=EventType.WARNING,
            action="Companion",
            reason="CompanionRefused",
            note=f"its companion {pod.name_of(job)}, which would print its output, is refused: {why}",
            at=self._program.clock.now(),
        )
        try:
            await events.create_event(
                self._program.kube, about(job), event, by=self._program.reporter
            )
        except errors.KubeError as error:
            _log.warning("event.lost", error=str(error))

    async def _tell(self, found: CompanionPod, code: int) -> None:
        path = f"/metadata/annotations/{names.ENDED_ANNOTATION.replace('/', '~1')}"
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid},
            {"op": "add", "path": path, "value": str(code)},
        ]
        try:
            await self._program.kube.request(
                "PATCH", path_of(found), body=operations, content_type=JSON_PATCH
            )
        except (errors.NotFound, errors.Conflict):
            return

    async def _remove(self, found: CompanionPod) -> None:
        try:
            await self._program.kube.request(
                "DELETE", path_of(found), body={"preconditions": {"uid": found.metadata.uid}}
            )
        except (errors.NotFound, errors.Conflict):
            return

    def _job_changed(self, old: SlurmJobObject | None, new: SlurmJobObject | None) -> None:
        found = new or old
        if new is None and old is not None:
            self._refused.pop(old.metadata.uid, None)
        if found is not None and found.spec.output is not None:  # nearly none has one
            self._queue.add(WorkloadKey(found.metadata.uid))

    def _pod_changed(self, old: CompanionPod | None, new: CompanionPod | None) -> None:
        found = new or old
        if found is not None and found.is_for == pod.LOG:
            self._queue.add(found.key)


def account_of(job: SlurmJobObject, jobs: Iterable[BatchJob]) -> Account | None:
    """Return whose the SlurmJob's present job is, by Slurm's word; None if Slurm has not said."""
    for each in jobs:
        if each.id == job.status.job_id and each.uid is not None and each.gid is not None:
            return Account(uid=each.uid, gid=each.gid)
    return None
