"""Submits placeholders: the effective request is put together and checked here, before every submit."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from bridge.domain import names
from bridge.domain.actions import Resize, Submit
from bridge.domain.facts import Refusal
from bridge.domain.faults import Fault
from bridge.domain.ids import PodUid
from bridge.domain.jobs import SlurmJob
from bridge.domain.placeholder import Frozen, PlaceholderSpec
from bridge.domain.pods import Pod
from bridge.domain.request import build, overrides, revision
from bridge.domain.request.build import Defaults
from bridge.domain.request.permit import Permit
from bridge.runtime.clock import Clock
from bridge.runtime.metrics import Metrics
from bridge.runtime.placeholders import Placeholders
from bridge.slurm import errors, jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.discovery import Discovery
from extender.bridged import Bridged
from extender.identities import Identities
from extender.owners import Owners

_log = structlog.get_logger(__name__)


class Submitter:
    """Submits, and remembers refusals until the next accepted submit; a new leader simply tries again."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        discovery: Discovery,
        placeholders: Placeholders,
        bridged: Bridged,
        owners: Owners,
        identities: Identities,
        defaults: Defaults,
        priority_classes: Mapping[str, Mapping[str, str]],
        concurrency: int,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._slurm = slurm
        self._discovery = discovery
        self._placeholders = placeholders
        self._bridged = bridged
        self._owners = owners
        self._identities = identities
        self._defaults = defaults
        self._priority_classes = priority_classes
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._metrics = metrics
        self._refusals: dict[str, Refusal] = {}
        self._asked: dict[str, tuple[frozenset[PodUid], Mapping[str, str]]] = {}
        """What was asked for when a workload was first submitted, and for whom: Slurm may have forgotten that job by the next
        time."""

    def refusal(self, uid: str) -> Refusal | None:
        """What was said against the workload's last submits; None since one was accepted."""
        return self._refusals.get(uid)

    def retry(self, uid: str) -> None:
        """The workload has been edited: what was refused is not what it asks for now."""
        self._refusals.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The workload has been placed, or is gone."""
        self._refusals.pop(uid, None)
        self._asked.pop(uid, None)

    async def submit(self, pod: Pod, action: Submit) -> None:
        """Submit a placeholder, or remember why not.

        Raises:
            LostReply: it may have been accepted: whether it was, the next readings tell.
            KubeError, SlurmError: it was not submitted.
        """
        may_still_happen = False
        uid = action.gang.uid if action.gang else pod.uid
        try:
            spec = await self._spec(pod, action)
            async with self._slots:
                job_id = await jobs.submit(self._slurm, spec)
        except errors.LostReply:
            may_still_happen = True
            raise
        except _Faulty as faulty:
            self._refuse(uid, str(faulty))
        except errors.Rejected as refusal:
            self._refuse(uid, refusal.words)
        else:
            self._discovery.note_submitted(job_id, spec.identity)
            if spec.identity.frozen:
                self._asked[uid] = (frozenset(spec.identity.pods), spec.identity.frozen.asked)
            self._refusals.pop(uid, None)
            self._metrics.submitted(pod.waiting_time(self._clock.now()).total_seconds())
            _log.info("placeholder.submitted", job_id=job_id)
        finally:
            self._placeholders.wrote(uid, may_still_happen=may_still_happen)

    async def resize(self, pod: Pod, action: Resize) -> bool:
        """Have a waiting placeholder ask for what its gang needs by now; False: that takes another job.

        Whatever has become of the job meanwhile, the next reading tells.

        Raises:
            LostReply: it may have been done: whether it was, the next readings tell.
            KubeError, SlurmError: not all of it was done.
        """
        job = self._placeholders.job(action.job_id)
        if job is None:
            return True
        try:
            spec = await self._spec(pod, Submit(gang=action.gang))
            changes = revision.changes(spec, job)
            for component, change in (changes or {}).items():
                await jobs.update_as_user(self._slurm, job, change, component=component)
        except _Faulty as faulty:
            _log.info("placeholder.not_resized", job_id=job.id, why=str(faulty))
            return False
        except errors.NotFound:
            return True
        except errors.Rejected as refusal:
            _log.info("placeholder.not_resized", job_id=job.id, why=refusal.words)
            return refusal.error_number in (errors.JOB_NOT_PENDING, errors.JOB_FINISHED)
        if changes is not None:
            _log.info("placeholder.resized", job_id=job.id, tasks=action.gang.size)
        return changes is not None

    async def _spec(self, pod: Pod, action: Submit) -> PlaceholderSpec:
        pod = await self._with_deadline(pod)
        members = (pod, *action.gang.members[1:]) if action.gang else (pod,)
        texts = await self._request(action.gang.uid if action.gang else pod.uid, members)
        asked, faults = overrides.read(texts)
        if faults:
            raise _Faulty(faults)
        permit = await self._identities.permit(members, asked)
        if isinstance(permit, tuple):
            raise _Faulty(permit)
        pool = await self._bridged.pool()
        built = build.build(
            pod,
            asked,
            self._defaults,
            pool,
            permit=permit,
            avoid=action.avoid,
            gang=action.gang,
        )
        if isinstance(built, tuple):
            raise _Faulty(built)
        return replace(built, identity=replace(built.identity, frozen=_frozen(permit, texts)))

    async def _request(self, uid: str, members: Sequence[Pod]) -> Mapping[str, str]:
        """What they were submitted with before, or else what they and their owners say now."""
        pods = {member.uid for member in members}
        former = [
            job.identity.frozen.asked
            for job in self._placeholders.of(uid)
            if job.identity.frozen is not None and not pods.isdisjoint(job.identity.pods)
        ]
        if former:
            return former[-1]
        named, asked = self._asked.get(uid, (frozenset(), {}))
        if not pods.isdisjoint(named):
            return asked
        texts = [await self._says(member) for member in members]
        for member, text in zip(members, texts, strict=True):
            if text != texts[0]:
                path = f"metadata.annotations[{names.REQUEST_PREFIX}…]"
                words = f"the pods of a gang ask for the same, {members[0].name} and {member.name} do not"
                raise _Faulty((Fault(path, words),))
        return texts[0]

    async def _with_deadline(self, pod: Pod) -> Pod:
        """The pod's own `activeDeadlineSeconds`, or its Job's: that ends all of a Job's pods alike."""
        if pod.deadline_s is not None:
            return pod
        owner = next(iter(await self._owners.chain(pod)), None)
        deadline_s = owner.spec.get("activeDeadlineSeconds") if owner else None
        return replace(pod, deadline_s=deadline_s) if isinstance(deadline_s, int) else pod

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        """Whether a pod that claims a place in somebody's placeholder is of the same Slurm user and account.

        Raises:
            KubeError: an owner or the namespace could not be read.
        """
        frozen = job.identity.frozen
        if frozen is None:
            return False
        asked, _ = overrides.read(frozen.asked)
        granted = await self._identities.permit((pod,), asked)
        if isinstance(granted, Permit):
            return (granted.user, granted.account) == (frozen.user, frozen.account)
        _log.warning("gang.not_admitted", pod=pod.full_name, why=granted[0].text)
        return False

    async def _says(self, pod: Pod) -> Mapping[str, str]:
        owners = overrides.requests(await self._owners.annotations(pod))
        by_class = self._priority_classes.get(pod.priority_class, {})
        return {**by_class, **owners, **overrides.requests(pod.annotations)}

    def _refuse(self, uid: str, text: str) -> None:
        before = self._refusals.get(uid)
        attempts = before.attempts + 1 if before else 1
        self._refusals[uid] = Refusal(attempts=attempts, at=self._clock.now(), text=text)
        _log.warning("placeholder.refused", text=text, attempts=attempts)


def _frozen(permit: Permit, asked: Mapping[str, str]) -> Frozen:
    return Frozen(
        requester=permit.requester,
        rule=permit.rule,
        user=permit.user,
        account=permit.account,
        asked=asked,
    )


class _Faulty(Exception):  # it never leaves this module
    """The request cannot be submitted as it is."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
