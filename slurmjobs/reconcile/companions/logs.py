"""Create, notify and remove log companions, as `slurmjobs.companions.due` decides: gather, decide, act.

It has its own queue, so that a job and its status never wait for a companion. Only creating is done as a separate service
account (argument `--companion-account`); everything else is done as ourselves.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import structlog
from structlog.contextvars import bind_contextvars

from bridge.reconcile.program import Program
from slurmjobs.companions import due, pod
from slurmjobs.companions.due import LogStep
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.batch_jobs import BatchJobs
from slurmjobs.reconcile.caches import JobCaches
from slurmjobs.reconcile.companions.pods import (
    RETRY,
    SOON,
    WORKERS,
    CompanionPod,
    CompanionWatch,
    path_of,
    remove,
)
from slurmjobs.reconcile.telling import about
from slurmruntime.kube import errors
from slurmruntime.kube.client import JSON_PATCH
from slurmruntime.leading.controller import Controller, Watch
from slurmruntime.model import json_patch
from slurmruntime.process.events import EventType
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)


class LogCompanions:
    """Manages log companions during one term of leadership."""

    def __init__(
        self, program: Program, watch: CompanionWatch, *, objects: JobCaches, batch_jobs: BatchJobs
    ) -> None:
        self._program = program
        self._watch = watch
        self._objects = objects
        self._batch_jobs = batch_jobs
        self._controller = Controller(
            "companions",
            self.reconcile,
            [Watch(objects, self._of_job), watch.changes_of(pod.LOG)],
            process=program.process,
        )
        self._refused: dict[str, str] = {}
        """The refusal that a SlurmJob's last Event reported."""

    async def run(self, stop: asyncio.Event) -> None:
        """Manage companions until `stop` is set."""
        await self._controller.run(stop, workers=WORKERS)

    async def reconcile(self, key: WorkloadKey) -> timedelta | None:
        """Reconcile one SlurmJob's companion; return the delay until the next time if no event comes first.

        Raises:
            KubeError: try again after a back-off.
        """
        job = self._objects.get(key)
        if job is None or not self._watch.pods.synced.is_set():
            return None if job is None else SOON
        bind_contextvars(slurm_job=job.full_name)
        companion = self._watch.of(key)
        match due.step(job, companion.facts if companion else None, self._batch_jobs.now()):
            case LogStep.MAKE:
                return await self._create(job)
            case LogStep.TELL if companion is not None:
                await self._report_end(companion, due.exit_code(job))
            case LogStep.REMOVE if companion is not None:
                await remove(self._program.kube, companion)
        return None

    async def _create(self, job: SlurmJobObject) -> timedelta | None:
        account = due.account_of(job, self._batch_jobs.of(WorkloadKey(job.metadata.uid)))
        if account is None:
            return SOON if job.status.phase == "Running" else None  # Slurm has forgotten the job
        if account.uid == 0:
            return None
        image = self._program.settings.slurm_jobs.companion_image
        try:
            await self._watch.create(job, pod.manifest(job, account, image))
        except errors.Conflict:  # ours, not seen by the watch yet; or another pod of that name
            _log.info("companion.name_taken", name=pod.name_of(job))
            return RETRY
        except (errors.Forbidden, errors.Rejected) as error:
            _log.warning("companion.refused", error=str(error))
            await self._report_refusal(job, error.message)
            return RETRY
        except errors.NotFound:
            return None  # the namespace is gone
        _log.info("companion.made", name=pod.name_of(job), uid=account.uid)
        return None

    async def _report_refusal(self, job: SlurmJobObject, why: str) -> None:
        """Send the job's author an Event saying why nothing prints its output, once for each cause."""
        if self._refused.get(job.metadata.uid) == why:
            return
        self._refused[job.metadata.uid] = why
        await self._program.events.record(
            about(job),
            EventType.WARNING,
            action="Companion",
            reason="CompanionRefused",
            note=f"companion {pod.name_of(job)}, which would print the job's output, was refused: {why}",
        )

    async def _report_end(self, companion: CompanionPod, code: int) -> None:
        path = f"/metadata/annotations/{json_patch.escape(names.ENDED_ANNOTATION)}"
        same = json_patch.test("/metadata/uid", companion.metadata.uid)
        operations = [same, json_patch.add(path, str(code))]
        try:
            await self._program.kube.request(
                "PATCH", path_of(companion), body=operations, content_type=JSON_PATCH
            )
        except (errors.NotFound, errors.Conflict):
            return

    def _of_job(
        self, old: SlurmJobObject | None, new: SlurmJobObject | None
    ) -> Iterator[WorkloadKey]:
        job = new or old
        if new is None and old is not None:
            self._refused.pop(old.metadata.uid, None)
        if job is not None and job.spec.output is not None:  # few have one
            yield WorkloadKey(job.metadata.uid)
