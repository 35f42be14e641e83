"""Closing a cache in the very moment in which it is asked to look again."""

import asyncio

import pytest

from slurmclient import Client, Model
from slurmclient.fake import FakeSlurm


class Row(Model, frozen=True):
    job_id: int


@pytest.mark.parametrize("turns", range(4))
async def test_a_cache_that_is_closed_while_it_is_refreshed_ends(turns: int) -> None:
    fake = FakeSlurm(nodes=1)
    async with (
        asyncio.timeout(10),
        fake,
        Client(fake.url, token="any") as slurm,  # noqa: S106  # of a fake
        slurm.jobs.cache(as_=Row, interval_s=60) as jobs,
    ):
        await jobs.synced()
        await asyncio.sleep(0)
        jobs.refresh()
        for _ in range(turns):
            await asyncio.sleep(0)
