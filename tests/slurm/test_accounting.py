"""What tells a lost job from one that ended: slurmdbd's record of it, and how slurmctld gives out ids."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridge.domain.lifecycle import evidence
from bridge.domain.lifecycle.evidence import AccountingRecord
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.observation.view import Evidence
from bridge.slurm import accounting, jobs
from sandbox import nss
from sandbox.client import Sandbox
from slurmclient.errors import SlurmError
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec

ACCOUNT = nss.JOB_USER.name
DEADLINE_S = 30.0


@pytest.fixture
async def accounted(slurm_accounting: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(
        slurm_accounting.slurmrestd_url, token_file=slurm_accounting.token_file
    ) as opened:
        yield opened


async def record_once(client: SlurmClient, job: SlurmJob, *, ended: bool) -> AccountingRecord:
    """Slurmctld tells slurmdbd a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            record = await accounting.record(client, job.id, sluid=job.sluid)
            is_whole = (
                record is not None and record.started_at is not None
            )  # a pending one has no limit yet
            if record is not None and is_whole and ended == (record.ended_at is not None):
                return record
            await asyncio.sleep(0.05)


async def test_a_job_is_recorded_from_its_start_to_its_end(accounted: SlurmClient) -> None:
    job_id = await jobs.submit(accounted, spec(user=ACCOUNT, group=ACCOUNT, account=ACCOUNT))
    running = await in_phase(accounted, job_id, JobPhase.RUNNING)
    assert running.sluid is not None

    before = await record_once(accounted, running, ended=False)
    await jobs.cancel(accounted, running.id, sluid=running.sluid)
    after = await record_once(accounted, running, ended=True)

    assert (frozenset({"RUNNING"}), running.started_at, 60) == (
        before.states,
        before.started_at,
        before.time_limit_min,
    )
    assert Evidence.LOST is evidence.verdict(before, is_up_to_date=True), (
        "were slurmctld not to know it"
    )
    assert (frozenset({"CANCELLED"}), "root") == (after.states, after.ended_by)
    assert Evidence.ENDED is evidence.verdict(after, is_up_to_date=True)


async def test_a_partitions_own_time_limit_is_not_taken_for_none(accounted: SlurmClient) -> None:
    asked = spec(user=ACCOUNT, group=ACCOUNT, account=ACCOUNT, time_limit_min=None)
    running = await in_phase(accounted, await jobs.submit(accounted, asked), JobPhase.RUNNING)
    assert running.sluid is not None
    assert running.grant is not None

    record = await record_once(accounted, running, ended=False)
    await jobs.cancel(accounted, running.id, sluid=running.sluid)

    said = record.time_limit_min if record.says_time_limit else running.grant.time_limit_min
    assert running.time_limit_min == said


async def test_nothing_is_known_of_a_job_that_never_was(accounted: SlurmClient) -> None:
    assert await accounting.record(accounted, JobId(999_999), sluid=None) is None


async def test_another_job_that_had_the_id_is_not_taken_for_ours(accounted: SlurmClient) -> None:
    job_id = await jobs.submit(accounted, spec(user=ACCOUNT, group=ACCOUNT, account=ACCOUNT))
    running = await in_phase(accounted, job_id, JobPhase.RUNNING)
    await jobs.cancel(accounted, job_id)
    await record_once(accounted, running, ended=True)

    assert await accounting.record(accounted, job_id, sluid=Sluid("s0000000000001")) is None


async def test_the_next_id_is_the_next_jobs(client: SlurmClient, submit: Submit) -> None:
    before = await accounting.numbering(client)

    job_id = await submit(spec(hold=True))

    assert before.next_id == job_id
    assert job_id + 1 == (await accounting.numbering(client)).next_id
    assert job_id < before.last_id


async def test_without_slurmdbd_there_is_no_record(client: SlurmClient) -> None:
    with pytest.raises(SlurmError):
        await accounting.record(client, JobId(1), sluid=None)


async def test_what_slurmdbd_has_yet_to_be_told_is_counted(
    slurm_accounting: Sandbox, accounted: SlurmClient
) -> None:
    assert 0 == await accounting.backlog(accounted)
    await asyncio.to_thread(slurm_accounting.stop, "slurmdbd")
    try:
        job_id = await jobs.submit(
            accounted, spec(user=ACCOUNT, group=ACCOUNT, account=ACCOUNT, hold=True)
        )
        await jobs.cancel(accounted, job_id)

        assert await accounting.backlog(accounted) > 0
        with pytest.raises(SlurmError):
            await accounting.record(accounted, job_id, sluid=None)
    finally:
        await asyncio.to_thread(slurm_accounting.start, "slurmdbd")
