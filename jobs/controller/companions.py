"""Make, tell and remove companions, as `jobs.companions.due` decides: gather, decide, act.

A queue of its own: whatever becomes of a companion, the job and its status do not wait for it. LogCompanions are made as
a service account of their own (`slurm_jobs.companion_account`), by which webhook and policies know them; all else is done as ourselves.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

import msgspec
import structlog
from structlog.contextvars import bind_contextvars

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.domain import names
from bridge.domain.ids import WorkloadKey
from bridge.domain.model.batch import BatchJob
from bridge.kube import errors, paths
from bridge.kube.cache import Cache
from bridge.kube.client import JSON_PATCH
from bridge.kube.decode import Json, ResourceKind, malformed
from bridge.kube.watch import Reflector
from bridge.leading import worker
from bridge.leading.worker import Aside
from bridge.leading.workqueue import WorkQueue
from bridge.process import liveness
from bridge.process.lifetime import Service
from bridge.reconcile.program import Program
from jobs.companions import due, pod
from jobs.companions.due import Account, LogCompanion, LogFacts, LogStep
from jobs.controller.batch_jobs import BatchJobs
from jobs.controller.caches import JobCaches
from jobs.objects.slurmjob import SlurmJobObject

_log = structlog.get_logger(__name__)

_WORKERS: Final = 4
_AGAIN: Final = timedelta(seconds=30)
"""After something that only others can change: a quota, a missing right, another pod of that name."""
_SOON: Final = timedelta(seconds=2)
_OVER: Final = ("Succeeded", "Failed")


class _Status(ObjectStruct, frozen=True):
    phase: str = ""


class CompanionPod(ObjectStruct, frozen=True):
    """What is read of a companion."""

    metadata: ObjectMetadata
    status: _Status = _Status()

    @property
    def key(self) -> WorkloadKey:
        """The uid of its SlurmJob."""
        return WorkloadKey(self.metadata.controller_uid)

    @property
    def facts(self) -> LogCompanion:
        """What decisions depend on."""
        said = self.metadata.annotations
        return LogCompanion(
            job_id=said.get(names.FOLLOWS_ANNOTATION, ""),
            ended=said.get(names.ENDED_ANNOTATION, ""),
            is_over=self.status.phase in _OVER or self.metadata.deletion_timestamp is not None,
        )


_decoder = msgspec.json.Decoder(CompanionPod)


def read(body: Json) -> CompanionPod:
    """Decode a companion.

    Raises:
        Malformed: it is none.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise malformed("Pod", error) from error


PODS: Final = ResourceKind(
    path="/api/v1/pods",
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
    name=lambda found: found.metadata.full_name,
)
"""Companions, by uid."""


class CompanionWatch:
    """The companions of all SlurmJobs, in every replica."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.pods: Cache[CompanionPod] = Cache(PODS, program.set_aside)
        self._by_job = self.pods.index(lambda found: [found.key])

    def of(self, key: WorkloadKey) -> CompanionPod | None:
        """Return the companion of a SlurmJob; one that is being deleted only if there is no other."""
        found = self._by_job.get(key)
        return min(found, key=lambda each: each.facts.is_over, default=None)

    def part(self) -> Service:
        """Return the service that keeps them up to date."""
        program = self._program
        reflector = Reflector(
            program.kube,
            self.pods,
            label_selector=names.COMPANION_LABEL,
            set_aside=program.set_aside,
            jitter=program.rng.random,
            on_turn=liveness.turned,
        )
        program.health.register("companions", reflector.check)

        async def run(stop: asyncio.Event) -> None:
            with liveness.loop("watch of companions"):
                await reflector.run(stop)

        return Service(name="companions", run=run)


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
        account = program.settings.slurm_jobs.companion_account
        self._maker = program.kube.acting_as(account)

    async def run(self, stop: asyncio.Event) -> None:
        """See to companions until told to stop."""
        self._objects.subscribe(self._waking(lambda job: WorkloadKey(job.metadata.uid)))
        self._watch.pods.subscribe(self._waking(lambda found: found.key))
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
            return _AGAIN
        except errors.NotFound:
            return None  # the namespace is gone
        _log.info("companion.made", name=pod.name_of(job), uid=account.uid)
        return None

    async def _tell(self, found: CompanionPod, code: int) -> None:
        path = f"/metadata/annotations/{names.ENDED_ANNOTATION.replace('/', '~1')}"
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid},
            {"op": "add", "path": path, "value": str(code)},
        ]
        try:
            await self._program.kube.request(
                "PATCH", _path(found), body=operations, content_type=JSON_PATCH
            )
        except (errors.NotFound, errors.Conflict):
            return

    async def _remove(self, found: CompanionPod) -> None:
        try:
            await self._program.kube.request(
                "DELETE", _path(found), body={"preconditions": {"uid": found.metadata.uid}}
            )
        except (errors.NotFound, errors.Conflict):
            return

    def _waking(self, key_of: Callable[..., WorkloadKey]) -> Callable[..., None]:
        def changed(old: object, new: object) -> None:
            self._queue.add(key_of(new or old))

        return changed


def account_of(job: SlurmJobObject, jobs: Iterable[BatchJob]) -> Account | None:
    """Return whose the SlurmJob's present job is, by Slurm's word; None if Slurm has not said."""
    for each in jobs:
        if each.id == job.status.job_id and each.uid is not None and each.gid is not None:
            return Account(uid=each.uid, gid=each.gid)
    return None


def _path(found: CompanionPod) -> str:
    return paths.pod(found.metadata.namespace, found.metadata.name)
