"""Submits placeholders: gathers the facts, decides on the request, and submits it or remembers the refusal."""

import asyncio
from collections.abc import Callable

import structlog

from bridge.domain.lifecycle.actions import Resize, Submit
from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.refusals import RefusalCache, Refusals
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import attribution, overrides, revision
from bridge.domain.request.build import Defaults
from bridge.domain.request.effective import effective
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from extender.gathering import Gatherer
from slurmclient import errors
from slurmruntime.leading.controller import Process
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import JOB_FINISHED, JOB_NOT_PENDING
from slurmruntime.values.faults import Refusal
from slurmruntime.values.ids import JobId, PodUid, WorkloadKey, alone_key

_log = structlog.get_logger(__name__)


class Submitter:
    """Submits placeholders, and remembers refusals until the next accepted submit.

    A new leader simply tries again.
    """

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        placeholders: Placeholders,
        gatherer: Gatherer,
        defaults: Defaults,
        concurrency: int,
        process: Process,
        on_submitted: Callable[[], None] | None = None,
    ) -> None:
        """on_submitted: called after each accepted submit."""
        self._slurm = slurm
        self._placeholders = placeholders
        self._gatherer = gatherer
        self._defaults = defaults
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = process.clock
        self._metrics = process.metrics
        self._on_submitted = on_submitted
        self._refusals: Refusals[WorkloadKey] = Refusals()
        self._shared = RefusalCache()
        self._submitted: dict[WorkloadKey, Identity] = {}
        """The last submit of each workload, because Slurm may have forgotten the job by the next one."""

    def refusal(self, key: WorkloadKey) -> SubmitRefusal | None:
        """Return why the workload's last submits were refused; None once one was accepted."""
        return self._refusals.get(key)

    def retry(self, pod: PodUid) -> None:
        """Forget the refusal of a pod's workload, because the pod was edited and requests something else now."""
        self._refusals.clear_for(pod)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a workload that has been placed, or is gone."""
        self._refusals.clear(key)
        self._submitted.pop(key, None)

    async def submit(self, pod: Pod, action: Submit) -> None:
        """Submit a placeholder, or remember why not.

        Raises:
            LostReply: it may have been accepted; the next readings show whether it was.
            KubeError, SlurmError: it was not submitted.
        """
        may_still_happen = False
        key = _key(pod, action)
        try:
            spec = await self._effective(pod, action)
            async with self._slots:
                # Checked only here, because an identical request may have been refused while this one waited.
                if known_refusal := self._shared.get(spec, self._placeholders.now()):
                    self._refuse(pod, action, known_refusal)
                    return
                job_id = await self._ask(spec)
        except errors.LostReply:
            may_still_happen = True
            raise
        except Refusal as refusal:
            self._refuse(pod, action, refusal.text, is_of_nodes=refusal.is_of_nodes)
        except (errors.Declined, errors.TooOld) as refusal:
            self._refuse(pod, action, refusal.words)
        else:
            self._placeholders.submitted(job_id, spec.identity, in_detail=bool(pod.resource_claims))
            if self._on_submitted is not None:
                self._on_submitted()
            self._submitted[key] = spec.identity
            self._refusals.clear(key)
            self._metrics.pods.submitted(pod.waiting_time(self._clock.now()).total_seconds())
            _log.info("placeholder.submitted", job_id=job_id)
        finally:
            self._placeholders.wrote(key, may_still_happen=may_still_happen)

    async def _ask(self, spec: PlaceholderSpec) -> JobId:
        try:
            job_id = await jobs.submit(self._slurm, spec)
        except errors.Declined as refusal:
            self._shared.refused(spec, refusal.words, self._placeholders.now())
            raise
        self._shared.accepted(spec)
        return job_id

    async def resize(self, pod: Pod, action: Resize) -> bool:
        """Change a pending placeholder to what its gang needs now; return False if that takes another job.

        If the job has changed in the meantime, the next reading shows it.

        Raises:
            LostReply: it may have been done; the next readings show whether it was.
            KubeError, SlurmError: not all of it was done.
        """
        job = self._placeholders.job(action.job_id)
        if job is None:
            return True
        try:
            spec = await self._effective(pod, Submit(gang=action.gang))
            changes = revision.changes(spec, job)
            for component, change in (changes or {}).items():
                await jobs.update_as_user(self._slurm, job, change, component=component)
        except errors.TargetNotFound:
            return True
        except Refusal as refusal:
            _log.info("placeholder.not_resized", job_id=job.id, why=refusal.text)
            return False
        except errors.Declined as refusal:
            _log.info("placeholder.not_resized", job_id=job.id, why=refusal.words)
            return refusal.error_number in (JOB_NOT_PENDING, JOB_FINISHED)
        if changes is not None:
            _log.info("placeholder.resized", job_id=job.id, tasks=action.gang.size)
        return changes is not None

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        """Check whether a pod that claims a slot of a placeholder has its Slurm user and account.

        Raises KubeError if an owner or the namespace could not be read.
        """
        frozen = job.identity.frozen
        if frozen is None:
            return False
        requested, _ = overrides.read(frozen.asked)
        provenance, policy = await self._gatherer.provenance(pod)
        try:
            granted = attribution.permitted((pod,), requested, provenance, policy)
        except Refusal as refusal:
            _log.warning("gang.not_admitted", pod=pod.full_name, why=refusal.faults[0].text)
            return False
        return (granted.user, granted.account) == (frozen.user, frozen.account)

    async def _effective(self, pod: Pod, action: Submit) -> PlaceholderSpec:
        key = _key(pod, action)
        last = [self._submitted[key]] if key in self._submitted else []
        facts = await self._gatherer.request(
            _members(pod, action),
            gang=action.gang,
            submitted=(*last, *(job.identity for job in self._placeholders.of(key))),
            avoid=tuple(action.avoid),
        )
        return effective(facts, self._defaults)

    def _refuse(self, pod: Pod, action: Submit, text: str, *, is_of_nodes: bool = False) -> None:
        refusal = self._refusals.add(
            _key(pod, action),
            text,
            at=self._placeholders.now(),
            members=(member.uid for member in _members(pod, action)),
            is_of_nodes=is_of_nodes,
        )
        _log.warning("placeholder.refused", text=refusal.text, attempts=refusal.attempts)


def _members(pod: Pod, action: Submit) -> tuple[Pod, ...]:
    return (pod, *action.gang.members[1:]) if action.gang else (pod,)


def _key(pod: Pod, action: Submit) -> WorkloadKey:
    return action.gang.key if action.gang else alone_key(pod.uid)
