"""Carry out what was decided for a pod: its writes to Kubernetes are made here.

Those to Slurm are in `bridge.reconcile.placeholder_writes`. There is no business `if` here either,
and the same holds: every action is idempotent and may be cut off anywhere.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, assert_never

import structlog

from bridge.domain.lifecycle import durations
from bridge.domain.lifecycle.actions import (
    Action,
    Adopt,
    Assign,
    Cancel,
    Complete,
    EndPod,
    Enlist,
    Evict,
    Excuse,
    Record,
    Release,
    Resize,
    Restore,
    SetTimeLimit,
    Shorten,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import patches, writes
from bridge.kube.patches import Patch
from bridge.reconcile.placeholder_writes import PlaceholderWrites, WorkloadWrites
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.controller import Process
from slurmruntime.process.events import EventRecorder, EventType
from slurmruntime.values import names
from slurmruntime.values.errors import CallError
from slurmruntime.values.ids import WorkloadKey

_log = structlog.get_logger(__name__)


class NotGiven(CallError):
    """A pod's claims cannot get their devices now; if that lasts, the pod gives up its node."""

    outcome = "not given"
    transient = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class DeviceGiver(Protocol):
    """Gives devices before a pod is pinned."""

    async def give(self, pod: Pod, action: Assign, job: SlurmJob | None) -> None:
        """Give a pod's claims their devices.

        Raises:
            NotGiven: it is not possible now.
            KubeError, SlurmError: decide again later.
        """

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Prepare for pods whose placeholder may start soon: do what can be done before; never fails."""

    async def take_back(self, pod: Pod) -> None:
        """Take back the devices that a pod got from a placeholder that is over.

        Raises:
            KubeError: try again later.
        """


CpuLookup = Callable[[Assign, SlurmJob | None], Awaitable[str]]
"""Returns a pod's CPUs on its node, as Slurm numbers them; "" if none are to be written on the pod.
May raise SlurmError: decide again later."""


class Actuator:
    """Carries out the decisions of one leader."""

    def __init__(
        self,
        in_slurm: PlaceholderWrites,
        *,
        pods: Cache[Pod],
        process: Process,
        devices: DeviceGiver | None = None,
        cpus: CpuLookup | None = None,
    ) -> None:
        """devices: gives devices to resource claims, None if no pod has any; cpus: None if there are no agents."""
        self._in_slurm = in_slurm
        self._kube = in_slurm.kube
        self._placeholders = in_slurm.placeholders
        self._pods = pods
        self._events = EventRecorder(
            kube=in_slurm.kube, reporter=process.reporter, clock=process.clock
        )
        self._clock = process.clock
        self._metrics = process.metrics
        self._devices = devices
        self._cpus = cpus

    async def carry_out(self, pod: Pod, decision: Decision, *, workload: WorkloadKey) -> None:
        """Carry out the actions in order, stopping at the first that fails.

        A pod that was deleted needs nothing more.

        Args:
            workload: the key of the pod's workload.

        Raises:
            KubeError, SlurmError: decide again later.
        """
        in_slurm = self._in_slurm.of(workload)
        try:
            for action in decision.actions:
                self._metrics.pods.decided(type(action).__name__)
                before, pod = pod, await self._act(pod, action, in_slurm)
                self._count(before, action)
                if not isinstance(action, Wait):
                    _log.info("pod.acted", reason=decision.reason, **_particulars(pod, action))
        except kube_errors.NotFound:
            _log.debug("pod.gone_already")

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Prepare to give devices to these pods."""
        if self._devices is not None:
            await self._devices.prepare(pods)

    async def take_back(self, pod: Pod) -> None:
        """Take back the devices that a pod's placeholder gave it before it ended.

        Raises:
            KubeError: try again later.
        """
        if self._devices is not None:
            await self._devices.take_back(pod)

    def _count(self, pod: Pod, action: Action) -> None:
        match action:
            case Assign(job_id=job_id) | Complete(job_id=job_id):
                job = self._placeholders.job(job_id)
                for step, seconds in durations.done(pod, action, job, self._clock.now()):
                    self._metrics.pods.stepped(step, seconds)
            case Evict(cause=cause) | EndPod(cause=cause):
                self._metrics.pods.evicted(cause.value)
            case _:
                pass

    async def _act(self, pod: Pod, action: Action, in_slurm: WorkloadWrites) -> Pod:
        match action:
            case (
                Submit()
                | Resize()
                | Restore()
                | Cancel()
                | Complete()
                | Enlist()
                | Record()
                | SetTimeLimit()
            ):
                await in_slurm.act(pod, action)
            case Adopt(job_id=job_id, sluid=sluid):
                return await self._patch(pod, patches.adopt(pod, job_id=job_id, sluid=sluid))
            case Assign():
                return await self._assign(pod, action)
            case Tell():
                return await self._tell(pod, action)
            case Evict():
                await self._evict(pod, action)
            case Shorten():
                await self._delete(pod, grace_s=action.grace_s)
                await self._event(pod, EventType.WARNING, "Evict", action.event, action.message)
            case EndPod() | Excuse():
                return await self._end(pod, action)
            case Release():
                with self._writing_to(pod):
                    return self._seen(pod, await writes.release_pod(self._kube, pod))
            case Wait():
                pass
            case unreachable:
                assert_never(unreachable)
        return pod

    # -- Kubernetes -------------------------------------------------------------------------------

    async def _assign(self, pod: Pod, action: Assign) -> Pod:
        job = self._placeholders.job(action.job_id)
        if pod.resource_claims and self._devices is not None:
            await self._devices.give(pod, action, job)
        cpus = await self._cpus(action, job) if self._cpus is not None else ""
        assigned = patches.assign(
            pod,
            job_id=action.job_id,
            kube_node=action.kube_node,
            sluid=action.sluid,
            grant=action.grant,
            place=action.place,
            cpus=cpus,
        )
        pod = await self._patch(pod, assigned)
        if action.waited is not None:
            text = (
                f"Slurm job {action.job_id} held node {action.kube_node} for "
                f"{action.waited.total_seconds():.0f} s until terminating pods were gone"
            )
            await self._event(pod, EventType.NORMAL, "Run", "NodeVacated", text)
        return pod

    async def _tell(self, pod: Pod, action: Tell) -> Pod:
        note = action.note(pod.job_id)
        if action.job_id not in (None, pod.job_id):
            pod = await self._patch(pod, patches.label_job_id(pod, action.job_id))
        condition = patches.pod_condition(
            pod,
            names.ALLOCATED_CONDITION,
            holds=action.allocated,
            reason=action.reason,
            message=action.message,
            now=self._clock.now(),
        )
        pod = await self._patch_status(pod, condition)
        doing = "Run" if action.allocated else "Wait"
        await self._event(pod, EventType.NORMAL, doing, action.reason, note)
        return pod

    async def _end(self, pod: Pod, action: EndPod | Excuse) -> Pod:
        build = patches.end_pod if isinstance(action, EndPod) else patches.excused
        pod = await self._patch_status(
            pod, build(pod, action.cause, action.message, self._clock.now())
        )
        await self._event(pod, EventType.WARNING, "End", action.cause.value, action.message)
        return pod

    async def _evict(self, pod: Pod, action: Evict) -> None:
        """Record the reason, then delete.

        The Eviction API is not used: a PodDisruptionBudget must not keep a node that belongs to
        someone else.
        """
        evicted = patches.evicted(
            pod, action.cause, action.message, self._clock.now(), if_unchanged=action.if_unchanged
        )
        pod = await self._patch_status(pod, evicted)
        if not action.cause.is_disruption:
            pod = await self._patch(pod, patches.fail(pod))
        version = pod.resource_version if action.if_unchanged else ""
        await self._delete(pod, version=version, grace_s=action.grace_s)
        await self._event(pod, EventType.WARNING, "Evict", action.cause.value, action.message)

    async def _delete(self, pod: Pod, *, grace_s: int | None, version: str = "") -> None:
        with self._writing_to(pod):
            await writes.delete_pod(
                self._kube,
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                version=version,
                grace_s=grace_s,
            )

    async def _patch(self, pod: Pod, patch: Patch) -> Pod:
        with self._writing_to(pod):
            return self._seen(pod, await writes.patch_pod(self._kube, pod, patch))

    async def _patch_status(self, pod: Pod, patch: Patch) -> Pod:
        with self._writing_to(pod):
            return self._seen(pod, await writes.patch_pod_status(self._kube, pod, patch))

    @contextmanager
    def _writing_to(self, pod: Pod) -> Iterator[None]:
        """Mark this version of the pod as written to.

        The write may have happened, so the version is not decided on again.
        """
        try:
            yield
        except kube_errors.Unavailable:
            self._placeholders.patched(pod)
            raise
        else:
            self._placeholders.patched(pod)

    def _seen(self, before: Pod, after: Pod) -> Pod:
        self._pods.observe(after, base=before.resource_version)
        return after

    async def _event(self, pod: Pod, kind: EventType, action: str, reason: str, note: str) -> None:
        """Send an Event; the pod's conditions say as much, so a lost one blocks nothing."""
        await self._events.record(pod.about, kind, action=action, reason=reason, note=note)


def _particulars(pod: Pod, action: Action) -> dict[str, object]:
    fields = {
        "job_id": getattr(action, "job_id", None) or pod.job_id,
        "node": pod.kube_node or pod.assigned_node,
        "cause": getattr(getattr(action, "cause", None), "value", None),
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return {"action": type(action).__name__, **known}
