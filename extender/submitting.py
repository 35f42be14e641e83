"""Submits placeholders: the effective request is put together and checked here, before every submit."""

import asyncio

import structlog

from bridge.domain import overrides, request
from bridge.domain.actions import Submit
from bridge.domain.facts import Refusal
from bridge.domain.faults import Fault
from bridge.domain.ids import PodUid
from bridge.domain.placeholder import PlaceholderSpec
from bridge.domain.pods import Pod
from bridge.runtime.clock import Clock
from bridge.runtime.metrics import Metrics
from bridge.runtime.placeholders import Placeholders
from bridge.slurm import errors, jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.discovery import Discovery
from extender.bridged import Bridged
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
        policy: request.Policy,
        concurrency: int,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._slurm = slurm
        self._discovery = discovery
        self._placeholders = placeholders
        self._bridged = bridged
        self._owners = owners
        self._policy = policy
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._metrics = metrics
        self._refusals: dict[PodUid, Refusal] = {}

    def refusal(self, uid: PodUid) -> Refusal | None:
        """What was said against the pod's last submits; None since one was accepted."""
        return self._refusals.get(uid)

    def forget(self, uid: PodUid) -> None:
        """The pod is gone."""
        self._refusals.pop(uid, None)

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
            self._refusals.pop(pod.uid, None)
            self._metrics.submitted(pod.waiting_time(self._clock.now()).total_seconds())
            _log.info("placeholder.submitted", job_id=job_id)
        finally:
            self._placeholders.wrote(pod.uid, may_still_happen=may_still_happen)

    async def _spec(self, pod: Pod, action: Submit) -> PlaceholderSpec:
        own, faults = overrides.parse(pod.annotations)
        owners, owners_faults = overrides.parse(await self._owners.annotations(pod))
        if faults or owners_faults:
            raise _Faulty((*faults, *owners_faults))
        pool = await self._bridged.pool()
        built = request.build(pod, owners.under(own), self._policy, pool, avoid=action.avoid)
        if isinstance(built, tuple):
            raise _Faulty(built)
        return built

    def _refuse(self, pod: Pod, text: str) -> None:
        before = self._refusals.get(pod.uid)
        attempts = before.attempts + 1 if before else 1
        self._refusals[pod.uid] = Refusal(attempts=attempts, at=self._clock.now(), text=text)
        _log.warning("placeholder.refused", text=text, attempts=attempts)


class _Faulty(Exception):  # it never leaves this module
    """The request cannot be submitted as it is."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
