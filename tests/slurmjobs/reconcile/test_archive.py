"""What is made of slurmdbd's answers, and of silence."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from slurmclient.errors import Declined, Malformed, SlurmError, TooOld, Unavailable
from slurmjobs.lifecycle.situation import ArchiveFinding
from slurmjobs.reconcile.archive import Archives
from slurmruntime.process.clock import SystemClock
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import WorkloadKey
from tests.slurmjobs.lifecycle.situations import UID, mark, slurm_job


class _Slurm:
    """Says how much slurmctld has still to tell slurmdbd, and answers every question alike."""

    def __init__(self, answer: SlurmError | Mapping[str, Any], backlog: int) -> None:
        self._answer = answer
        self._backlog = backlog

    async def call(self, operation: str, *_: object, answer: type[Any], **__: object) -> object:
        if operation == "diag":
            return wire.Diagnosis(statistics=wire.Statistics(dbd_agent_queue_size=self._backlog))
        if isinstance(self._answer, SlurmError):
            raise self._answer
        return answer(**self._answer)


async def found(answer: SlurmError | Mapping[str, Any], *, backlog: int = 0) -> ArchiveFinding:
    answered: asyncio.Queue[WorkloadKey] = asyncio.Queue()
    slurm = cast("SlurmClient", _Slurm(answer, backlog))
    archives = Archives(slurm, clock=SystemClock(), wake=answered.put_nowait)
    job, stop = slurm_job(), asyncio.Event()
    assert ArchiveFinding.ASKING is archives.finding(job, mark()).finding
    async with asyncio.TaskGroup() as group:
        group.create_task(archives.run(stop))
        assert UID == await asyncio.wait_for(answered.get(), 5)
        stop.set()
    return archives.finding(job, mark()).finding


async def test_only_a_slurm_that_keeps_no_accounts_counts_as_unrecorded() -> None:
    assert ArchiveFinding.UNKNOWN is await found(TooOld("accounting.jobs", "no such path"))


@pytest.mark.parametrize(
    "error",
    [
        Declined("accounting.jobs", "access denied", status=500, error_number=2002),
        Malformed("accounting.jobs", "half an answer"),
        Unavailable("accounting.jobs", "connection refused"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_proves_nothing(error: SlurmError) -> None:
    assert ArchiveFinding.ASKING is await found(error)


async def test_nothing_is_proven_while_slurmdbd_does_not_know_all() -> None:
    assert ArchiveFinding.ASKING is await found({"jobs": []}, backlog=3)
    assert ArchiveFinding.NOTHING is await found({"jobs": []})
