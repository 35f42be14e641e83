"""Concurrent submits with one key, while requests and answers are lost or late: one job runs."""

import asyncio
import random

import pytest

from slurmclient import Client, LostReply, has_ended
from slurmclient.fake.requests import LATE, LOST_REPLY, LOST_REQUEST
from slurmclient.fake.server import FakeSlurm
from slurmclient.resources.jobs import Jobs

OPERATIONS = ("slurm_post_job_submit", "slurm_post_job", "slurm_delete_job", "slurm_get_jobs")
FAULTS = (LOST_REPLY, LOST_REQUEST, LATE)


async def ask(jobs: Jobs, told: list[int], times: int) -> None:
    """Submit several times; ignore lost replies, as a program does that tries again."""
    for _ in range(times):
        try:
            told.append((await jobs.submit(name="storm", key="storm")).job_id)
        except LostReply:
            continue


@pytest.mark.parametrize("seed", range(40))
async def test_one_job_of_a_key_runs_whatever_gets_lost(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # a test's dice
    told: list[int] = []
    async with FakeSlurm(nodes=9) as fake, Client(fake.url, token="any", attempts=1) as slurm:  # noqa: S106  # of a fake
        await slurm.dialect()
        for _ in range(chance.randrange(1, 6)):
            fake.fail_next(chance.choice(OPERATIONS), chance.choice(FAULTS))
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(ask(slurm.jobs, told, chance.randrange(1, 4)))
            group.create_task(_deliver(fake, chance.random() / 20))
        fake.deliver()
        settled = await _settled(slurm.jobs)
        fake.deliver()
        again = await _settled(slurm.jobs)
        jobs = await slurm.jobs.list()
    assert {settled} == {settled, again, *told}
    assert [settled] == [job.job_id for job in jobs if job.start_time is not None], "one has run"
    assert [settled] == [job.job_id for job in jobs if not has_ended(job.job_state)]


async def _settled(jobs: Jobs) -> int:
    told: list[int] = []
    while not told:
        await ask(jobs, told, 1)
    return told[0]


async def _deliver(fake: FakeSlurm, after_s: float) -> None:
    await asyncio.sleep(after_s)
    fake.deliver()
