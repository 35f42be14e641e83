"""Ask slurmdbd about jobs that slurmctld certainly does not know."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from bridge.domain.model.batch import BatchJob, BatchMark
from bridge.slurm import accounting
from bridge.slurm.batch_jobs import calls
from slurmclient.errors import SlurmError, TooOld
from slurmjobs.lifecycle.situation import Archive, ArchiveFinding
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid, WorkloadKey

_log = structlog.get_logger(__name__)

_AT_A_TIME = 2
_LASTS_S = 30.0
"""How long an answer is valid; then slurmdbd may know more."""
_RETRY_S = 2.0
"""Retry delay after a failure, and while slurmctld has not sent everything to slurmdbd."""
_EPOCH = datetime.fromtimestamp(0, UTC)

ASKING = Archive(finding=ArchiveFinding.ASKING)


@dataclass(slots=True)
class _Question:
    mark: BatchMark
    job_id: JobId | None
    sluid: Sluid | None
    since: datetime
    answer: Archive = ASKING
    until_s: float = field(default=0.0)
    is_queued: bool = False


class Archives:
    """Queries slurmdbd during one term of leadership, a few questions at a time."""

    def __init__(
        self, slurm: SlurmClient, *, clock: Clock, wake: Callable[[WorkloadKey], None]
    ) -> None:
        """wake: called with the key of each SlurmJob whose question was answered."""
        self._slurm = slurm
        self._clock = clock
        self._wake = wake
        self._questions: dict[WorkloadKey, _Question] = {}
        self._open: asyncio.Queue[_Question] = asyncio.Queue()

    def finding(self, job: SlurmJobObject, mark: BatchMark) -> Archive:
        """Return slurmdbd's last answer about an attempt's job; ask again if it is missing or outdated."""
        status = job.status
        job_id = None if status.job_id is None else JobId(status.job_id)
        question = self._questions.get(mark.key)
        if question is None or (question.mark, question.job_id) != (mark, job_id):
            # An array's sluid would be that of one task.
            sluid = (
                Sluid(status.sluid) if status.sluid and job_id and status.array is None else None
            )
            since = job.metadata.creation_timestamp or _EPOCH
            question = self._questions[mark.key] = _Question(mark, job_id, sluid, since)
        if not question.is_queued and self._clock.monotonic() >= question.until_s:
            question.is_queued = True
            self._open.put_nowait(question)
        return question.answer

    def forget(self, key: WorkloadKey) -> None:
        """Forget a SlurmJob that needs no answer."""
        self._questions.pop(key, None)

    async def run(self, stop: asyncio.Event) -> None:
        """Ask until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_A_TIME):
                group.create_task(liveness.run(f"archive {number}", self._ask_forever(), stop))

    async def _ask_forever(self) -> None:
        while True:
            liveness.turned(rests_s=None)
            question = await self._open.get()
            liveness.turned()
            question.answer = await self._ask(question)
            is_open = question.answer.finding is ArchiveFinding.ASKING
            question.until_s = self._clock.monotonic() + (_RETRY_S if is_open else _LASTS_S)
            question.is_queued = False
            self._wake(question.mark.key)

    async def _ask(self, question: _Question) -> Archive:
        try:
            backlog = await accounting.backlog(self._slurm)
            record = await self._look_up(question)
        except TooOld:
            return Archive(finding=ArchiveFinding.UNKNOWN)
        except SlurmError as error:
            _log.warning("archive.unanswered", error=str(error))
            return ASKING
        if isinstance(record, BatchJob):
            return Archive(finding=ArchiveFinding.ENDED, job=record)
        if backlog:
            return ASKING  # slurmdbd may learn of it any moment
        return Archive(finding=ArchiveFinding.UNFINISHED if record else ArchiveFinding.NOTHING)

    async def _look_up(self, question: _Question) -> BatchJob | bool:
        if question.job_id is not None:
            return await calls.read_record(
                self._slurm, question.job_id, question.mark, sluid=question.sluid
            )
        return await calls.search(
            self._slurm, question.mark, since=question.since, name="", user=""
        )
