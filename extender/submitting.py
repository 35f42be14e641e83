"""Submits placeholders: the effective request is put together and checked here, before every submit."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import structlog

from bridge.domain import overrides, request
from bridge.domain.actions import Submit
from bridge.domain.facts import Refusal
from bridge.domain.faults import Fault
from bridge.domain.ids import PodUid
from bridge.domain.permit import Permit
from bridge.domain.placeholder import Frozen, PlaceholderSpec
from bridge.domain.pods import Pod
from bridge.domain.request import Defaults
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
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._metrics = metrics
        self._refusals: dict[PodUid, Refusal] = {}
        self._asked: dict[PodUid, Mapping[str, str]] = {}
        """What was asked for when a pod was first submitted: Slurm may have forgotten that job by the next time."""

    def refusal(self, uid: PodUid) -> Refusal | None:
        """What was said against the pod's last submits; None since one was accepted."""
        return self._refusals.get(uid)

    def retry(self, uid: PodUid) -> None:
        """The pod has been edited: what was refused is not what it asks for now."""
        self._refusals.pop(uid, None)

    def forget(self, uid: PodUid) -> None:
        """The pod has been placed, or is gone."""
        self._refusals.pop(uid, None)
        self._asked.pop(uid, None)

    async def submit(self, pod: Pod, action: Submit) -> None:
        """Submit a placeholder, or remember why not.

        Raises:
            LostReply: it may have been accepted: whether it was, the next readings tell.
            KubeError, SlurmError: it was not submitted.
        """
        may_still_happen = False
        try:
            spec = await self._spec(pod, action)
            async with self._slots:
                job_id = await jobs.submit(self._slurm, spec)
        except errors.LostReply:
            may_still_happen = True
            raise
        except _Faulty as faulty:
            self._refuse(pod, str(faulty))
        except errors.Rejected as refusal:
            self._refuse(pod, refusal.words)
        else:
            self._discovery.note_submitted(job_id, spec.identity)
            if spec.identity.frozen:
                self._asked[pod.uid] = spec.identity.frozen.asked
            self._refusals.pop(pod.uid, None)
            self._metrics.submitted(pod.waiting_time(self._clock.now()).total_seconds())
            _log.info("placeholder.submitted", job_id=job_id)
        finally:
            self._placeholders.wrote(pod.uid, may_still_happen=may_still_happen)

    async def _spec(self, pod: Pod, action: Submit) -> PlaceholderSpec:
        texts = await self._request(pod)
        asked, faults = overrides.read(texts)
        if faults:
            raise _Faulty(faults)
        permit = await self._identities.permit((pod,), asked)
        if isinstance(permit, tuple):
            raise _Faulty(permit)
        pool = await self._bridged.pool()
        built = request.build(pod, asked, self._defaults, pool, permit=permit, avoid=action.avoid)
        if isinstance(built, tuple):
            raise _Faulty(built)
        return replace(built, identity=replace(built.identity, frozen=_frozen(permit, texts)))

    async def _request(self, pod: Pod) -> Mapping[str, str]:
        """What it was submitted with before, or else what it and its owners say now."""
        former = [
            job.identity.frozen.asked
            for job in self._placeholders.view(pod).jobs
            if job.identity.frozen is not None
        ]
        if former:
            return former[-1]
        if pod.uid in self._asked:
            return self._asked[pod.uid]
        owners = overrides.requests(await self._owners.annotations(pod))
        return {**owners, **overrides.requests(pod.annotations)}

    def _refuse(self, pod: Pod, text: str) -> None:
        before = self._refusals.get(pod.uid)
        attempts = before.attempts + 1 if before else 1
        self._refusals[pod.uid] = Refusal(attempts=attempts, at=self._clock.now(), text=text)
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
