"""Decode and watch the companion pods of SlurmJobs."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from bridge.reconcile.informers import watch_service
from bridge.reconcile.program import Program
from slurmjobs.companions import pod
from slurmjobs.companions.collecting import Collector
from slurmjobs.companions.due import Account, LogCompanion
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Watch
from slurmruntime.process.lifetime import Service
from slurmruntime.values import names
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import WorkloadKey

WORKERS: Final = 4
RETRY: Final = timedelta(seconds=30)
"""Retry delay if only others can change the cause: a quota, a missing right, another pod of that name."""
SOON: Final = timedelta(seconds=2)

_OVER: Final = ("Succeeded", "Failed")


class _ContainerStateWaiting(ObjectStruct, frozen=True):
    reason: str = ""
    message: str = ""


class _ContainerStateTerminated(ObjectStruct, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: datetime | None = None


class _ContainerState(ObjectStruct, frozen=True):
    waiting: _ContainerStateWaiting | None = None
    terminated: _ContainerStateTerminated | None = None


class _ContainerStatus(ObjectStruct, frozen=True):
    state: _ContainerState = _ContainerState()


class _PodCondition(ObjectStruct, frozen=True):
    status: str = ""
    message: str = ""


class _Status(ObjectStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[_PodCondition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _SecurityContext(ObjectStruct, frozen=True):
    run_as_user: int | None = None
    run_as_group: int | None = None


class _Spec(ObjectStruct, frozen=True):
    security_context: _SecurityContext = _SecurityContext()


class CompanionPod(ObjectStruct, frozen=True):
    """The fields of a companion pod that matter here."""

    metadata: ObjectMetadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def key(self) -> WorkloadKey:
        """The uid of its SlurmJob."""
        return WorkloadKey(self.metadata.controller_uid)

    @property
    def facts(self) -> LogCompanion:
        """The facts for decisions if it prints output."""
        annotations = self.metadata.annotations
        return LogCompanion(
            job_id=annotations.get(names.FOLLOWS_ANNOTATION, ""),
            ended=annotations.get(names.ENDED_ANNOTATION, ""),
            is_over=self._is_over,
        )

    @property
    def purpose(self) -> str:
        """The value of the companion label: `pod.LOG` or `pod.COLLECT`."""
        return self.metadata.labels.get(names.COMPANION_LABEL, "")

    @property
    def collector(self) -> Collector:
        """The facts for decisions if it copies results."""
        security = self.spec.security_context
        has_account = security.run_as_user is not None and security.run_as_group is not None
        number = self.metadata.name.rpartition("-")[2]
        ended = next(iter(self.status.container_statuses), _ContainerStatus()).state.terminated
        return Collector(
            run=self.metadata.annotations.get(names.FOLLOWS_ANNOTATION, ""),
            number=int(number) if number in ("1", "2", "3") else 0,
            is_over=self._is_over,
            exit_code=ended.exit_code if ended else None,
            message=self._message,
            ended_at=ended.finished_at if ended else None,
            account=Account(uid=security.run_as_user or 0, gid=security.run_as_group or 0)
            if has_account
            else None,
        )

    @property
    def _is_over(self) -> bool:
        return self.status.phase in _OVER or self.metadata.deletion_timestamp is not None

    @property
    def _message(self) -> str:
        """How it ended or why it waits: its own message, else the kubelet's, else the scheduler's."""
        status = self.status
        state = next(iter(status.container_statuses), _ContainerStatus()).state
        unmet = (
            condition.message for condition in status.conditions if condition.status == "False"
        )
        candidates = (
            state.terminated.message if state.terminated else "",
            status.message or status.reason,
            state.terminated.reason if state.terminated else "",
            (state.waiting.message or state.waiting.reason) if state.waiting else "",
            next(filter(None, unmet), "") if status.phase == "Pending" else "",
        )
        return shortened(next(filter(None, candidates), "").strip(), 1000)


PODS: Final = resource.own_kind(paths.collection("v1", "pods"), "Pod", CompanionPod)
"""Companions, by uid."""


class CompanionWatch:
    """Watches the companions of all SlurmJobs, in every replica."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.pods: Cache[CompanionPod] = Cache(PODS, program.set_aside)
        self._by_job = self.pods.index(lambda companion: [companion.key])

    def of(self, key: WorkloadKey) -> CompanionPod | None:
        """Return the pod that prints a SlurmJob's output; one that is over only if there is no other."""
        printers = (
            companion for companion in self._by_job.get(key) if companion.purpose == pod.LOG
        )
        return min(printers, key=lambda companion: companion.facts.is_over, default=None)

    def collectors(self, key: WorkloadKey) -> list[CompanionPod]:
        """Return the pods that copy a SlurmJob's results, of all runs."""
        return [
            companion for companion in self._by_job.get(key) if companion.purpose == pod.COLLECT
        ]

    def changes_of(self, purpose: str) -> Watch[WorkloadKey]:
        """Return the watch that queues the SlurmJob of each changed pod with this purpose."""

        def keys(old: CompanionPod | None, new: CompanionPod | None) -> Iterator[WorkloadKey]:
            companion = new or old
            if companion is not None and companion.purpose == purpose:
                yield companion.key

        return Watch(self.pods, keys)

    async def create(self, job: SlurmJobObject, manifest: Mapping[str, object]) -> None:
        """Create a companion as their own service account, by which webhook and policies recognise them."""
        account = self._program.installation.companion_account
        path = paths.collection("v1", "pods", job.metadata.namespace)
        await self._program.kube.acting_as(account).request("POST", path, body=manifest)

    def part(self) -> Service:
        """Return the service that runs the watch."""
        return watch_service(
            self._program, "companions", self.pods, label_selector=names.COMPANION_LABEL
        )


def path_of(companion: CompanionPod) -> str:
    """Return a companion's path in the API."""
    return paths.pod(companion.metadata.namespace, companion.metadata.name)


async def remove(kube: KubeClient, companion: CompanionPod) -> None:
    """Delete a companion; succeed if it is gone, or if another one of its name has replaced it.

    Raises:
        KubeError: try again.
    """
    if companion.metadata.deletion_timestamp is not None:
        return
    try:
        await kube.request(
            "DELETE", path_of(companion), body={"preconditions": {"uid": companion.metadata.uid}}
        )
    except (errors.NotFound, errors.Conflict):
        return
