"""Looks up what became of placeholders that live pods miss; without this evidence, nothing is concluded.

Only missing placeholders are looked up, once for all pods of a placeholder and two at a time:
slurmdbd may be slow, and a loss may concern many.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from bridge.domain.lifecycle import evidence as job_evidence
from bridge.domain.lifecycle.evidence import AccountingRecord
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence
from bridge.slurm import accounting, jobs
from slurmclient.errors import SlurmError, TargetNotFound, TooOld
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, PodUid, Sluid

_log = structlog.get_logger(__name__)

T = TypeVar("T")

_AT_A_TIME = 2
_LASTS_S = 30.0
"""How long an answer is valid. After that, it is looked up again for a pod that still misses its
placeholder; the old answer is used until then.
"""

_AGAIN_S = 1.0
"""Retry delay while slurmdbd lags behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvidence:
    """The result of the lookup for one placeholder."""

    evidence: Evidence
    record: AccountingRecord | None = None
    """slurmdbd's record; None if slurmdbd was not asked or has none."""


_LOOKING = JobEvidence(evidence=Evidence.PENDING)


@dataclass(slots=True)
class _Case:
    job_id: JobId
    sluid: Sluid | None
    pods: set[PodUid] = field(default_factory=set)
    finding: JobEvidence = _LOOKING
    until_s: float = 0.0
    is_queued: bool = False


class EvidenceLookup:
    """The evidence lookups of one term of leadership."""

    def __init__(self, slurm: SlurmClient, *, clock: Clock, wake: Callable[[PodUid], None]) -> None:
        """wake: called with the uid of each pod whose lookup is complete."""
        self._slurm = slurm
        self._clock = clock
        self._wake = wake
        self._cases: dict[str, _Case] = {}
        self._missed_by: dict[PodUid, str] = {}
        self._open: asyncio.Queue[_Case] = asyncio.Queue()
        self._last_error = ""

    def finding(self, pod: Pod) -> JobEvidence:
        """Return what is known of the placeholder that a pod misses; queue a lookup if that is unknown or outdated."""
        if pod.job_id is None:
            return JobEvidence(evidence=Evidence.NONE)
        if self._missed_by.get(pod.uid) != pod.placed_by:
            self.forget(pod.uid)
        case = self._cases.setdefault(pod.placed_by, _Case(pod.job_id, pod.sluid))
        case.pods.add(pod.uid)
        self._missed_by[pod.uid] = pod.placed_by
        if not case.is_queued and self._clock.monotonic() >= case.until_s:
            case.is_queued = True
            self._open.put_nowait(case)
        return case.finding

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is gone or misses nothing."""
        ref = self._missed_by.pop(uid, None)
        if ref is not None:
            self._cases[ref].pods.discard(uid)
            if not self._cases[ref].pods:
                del self._cases[ref]

    async def run(self, stop: asyncio.Event) -> None:
        """Run lookups until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_A_TIME):
                name = f"inquiry {number}"
                group.create_task(liveness.run(name, self._answer_forever(), stop))

    async def _answer_forever(self) -> None:
        while True:
            liveness.turned(rests_s=None)
            case = await self._open.get()
            liveness.turned()
            case.finding = await self._look_up(case.job_id, case.sluid)
            is_answered = case.finding.evidence is not Evidence.PENDING
            case.until_s = self._clock.monotonic() + (_LASTS_S if is_answered else _AGAIN_S)
            case.is_queued = False
            for uid in case.pods:
                self._wake(uid)

    async def _look_up(self, job_id: JobId, sluid: Sluid | None) -> JobEvidence:
        backlog = await self._answer(accounting.backlog(self._slurm))
        record = await self._answer(accounting.record(self._slurm, job_id, sluid=sluid))
        if record is not None:
            evidence = job_evidence.verdict(record, is_up_to_date=backlog == 0)
            return JobEvidence(evidence=evidence, record=record)
        numbering = await self._answer(accounting.numbering(self._slurm))
        if numbering is not None:
            is_lost = job_evidence.went_backwards(job_id, numbering)
        else:
            holder = await self._answer(self._holder(job_id))
            is_lost = None not in (sluid, holder) and sluid != holder
        return JobEvidence(evidence=Evidence.LOST if is_lost else Evidence.NONE)

    async def _holder(self, job_id: JobId) -> Sluid | None:
        return (await jobs.job(self._slurm, job_id)).sluid

    async def _answer(self, question: Coroutine[None, None, T | None]) -> T | None:
        """Return the answer; None also if the server is unavailable, which proves nothing."""
        try:
            return await question
        except (TargetNotFound, TooOld):
            return None
        except SlurmError as error:
            if str(error) != self._last_error:
                _log.warning("inquiry.unanswered", error=str(error))
            self._last_error = str(error)
            return None
