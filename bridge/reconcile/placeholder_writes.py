"""Carry out decisions that concern a workload's placeholder: every write to Slurm is made here.

There is no business `if` here. Every action is idempotent and may be cut off anywhere: the next
decision starts from what can be observed then. A write is recorded in the expectations when it is
over, whatever its result.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar, assert_never

from bridge.domain.lifecycle import amendments, outcome
from bridge.domain.lifecycle.actions import (
    Cancel,
    Complete,
    Enlist,
    Outcome,
    OwnCause,
    Record,
    Resize,
    Restore,
    SetTimeLimit,
    Submit,
)
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from bridge.reconcile.completion import Completer
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid, WorkloadKey

_T = TypeVar("_T")


class PlaceholderSubmitter(Protocol):
    """Submits placeholders. Only the extender can do that, as only it places pods."""

    async def submit(self, pod: Pod, action: Submit) -> None:
        """Submit a placeholder, or remember why not."""

    async def resize(self, pod: Pod, action: Resize) -> bool:
        """Change what a pending placeholder asks for; return False if that takes another job."""


RestoreFor = Callable[[Pod, Restore], Awaitable[None]]
"""Submits again a placeholder that Slurm has lost. Only the controllers do that: by then they own
the pods.
"""

InSlurm = Submit | Resize | Restore | Cancel | Complete | Enlist | Record | SetTimeLimit
"""The actions on a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderWrites:
    """The writes of one leader."""

    kube: KubeClient
    slurm: SlurmClient
    completer: Completer
    placeholders: Placeholders
    on_completed: Callable[[], None]
    """Called after Slurm has taken an end."""
    submitter: PlaceholderSubmitter | None = None
    restore: RestoreFor | None = None

    def of(self, workload: WorkloadKey) -> "WorkloadWrites":
        """Return the writes about one workload's placeholder."""
        return WorkloadWrites(self, workload)


class WorkloadWrites:
    """The writes about one workload's placeholder."""

    def __init__(self, leader: PlaceholderWrites, workload: WorkloadKey) -> None:
        self._leader = leader
        self._slurm = leader.slurm
        self._placeholders = leader.placeholders
        self._workload = workload

    async def act(self, pod: Pod, action: InSlurm) -> None:
        """Carry out one action that was decided on for the pod.

        Raises:
            KubeError, SlurmError: decide again later.
        """
        match action:
            case Submit():
                await _required(self._leader.submitter, pod, action).submit(pod, action)
            case Resize():
                await self._resize_or_cancel(pod, action)
            case Restore():
                await _required(self._leader.restore, pod, action)(pod, action)
            case _:
                changes = None if isinstance(action, Cancel | Complete) else action.job_id
                with self._writing(changes=changes):
                    job = await self._verified(action.job_id, action.sluid)
                    if job is not None:
                        await self._write(pod, action, job)

    async def _resize_or_cancel(self, pod: Pod, action: Resize) -> None:
        with self._writing(changes=action.job_id):
            is_done = await _required(self._leader.submitter, pod, action).resize(pod, action)
        if not is_done:
            cause = OwnCause.RESIZED
            await self.act(pod, Cancel(job_id=action.job_id, sluid=action.sluid, cause=cause))

    async def _write(
        self, pod: Pod, action: Cancel | Complete | Enlist | Record | SetTimeLimit, job: SlurmJob
    ) -> None:
        match action:
            case Cancel(cause=None):
                await jobs.cancel(self._slurm, job.id, sluid=job.sluid)
            case Cancel():
                if not await self._was_placed_by(job, pod):
                    mark = partial(replace, cause=action.cause, misfits=action.misfits)
                    await jobs.cancel_for(self._slurm, job, mark)
            case Complete():
                how = await self._worst(job, action.outcome)
                if action.is_on_record and not outcome.is_failure(how):
                    await jobs.cancel(self._slurm, job.id, sluid=job.sluid)
                else:
                    await self._leader.completer.complete(job, how)
                self._leader.on_completed()
            case Enlist() | Record():
                # To the current identity: the other program may have changed it as well.
                amend = amendments.of(pod, action)
                await jobs.amend_identity(self._slurm, job.id, job.identity, amend, sluid=job.sluid)
            case SetTimeLimit():
                await jobs.set_time_limit(
                    self._slurm,
                    job,
                    minutes=action.minutes,
                    true_min=action.true_min,
                    expected_min=action.expected_min,
                )
            case unreachable:
                assert_never(unreachable)

    async def _worst(self, job: SlurmJob, how: Outcome) -> Outcome:
        """Include the recorded outcomes of members that ended earlier.

        A replacement may have reversed them since we read.
        """
        if not job.identity.failed:
            return how
        now = await jobs.job(self._slurm, job.id, sluid=job.sluid)
        identity = now.identity if isinstance(now, SlurmJob) else job.identity
        return outcome.worst([how, *map(outcome.decode, identity.failed.values())])

    @contextmanager
    def _writing(self, *, changes: JobId | None = None) -> Iterator[None]:
        """Record a write when it is over; `changes` names a job to be read again because of it."""
        try:
            yield
        finally:
            if changes is not None:
                self._placeholders.changed(changes)
            self._placeholders.wrote(self._workload)

    async def _verified(self, job_id: JobId, sluid: Sluid | None) -> SlurmJob | None:
        """Return the placeholder that was meant, not another job that has taken its id.

        Return None if it is gone. slurmctld may re-use job ids after a hard crash. A job that was
        read with its sluid is safe; one that was only just submitted is read once before anything
        is done to it.
        """
        known = self._placeholders.job(job_id)
        if known is not None and known.sluid is not None and known.sluid == sluid:
            return known
        return await jobs.verified(self._slurm, job_id, self._workload, sluid=sluid)

    async def _was_placed_by(self, job: SlurmJob, pod: Pod) -> bool:
        """Check whether another leader placed the pod by this job, unknown to our cache."""
        try:
            now = await decode.get_pod(self._leader.kube, pod.namespace, pod.name)
        except kube_errors.NotFound:
            return False
        return now.uid == pod.uid and not now.is_gated and job.is_named(now.job_id, now.sluid)


def _required(part: _T | None, pod: Pod, action: InSlurm) -> _T:
    """Return the part that carries an action out; a program without it gets no such action."""
    if part is None:
        raise AssertionError(f"not for this program: {type(action).__name__} of {pod.full_name}")
    return part
