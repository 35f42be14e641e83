"""Jobs that slurmctld has purged, or whose ids it has given again, at a real slurmdbd."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, Model, NotFound, Rejected, TokenFile
from slurmruntime.process.clock import SystemClock
from tests.client.looking import eventually
from tests.servers import running_sandbox

FIELDS = {
    "flags": ["EXTERNAL_JOB"],
    "minimum_nodes": 1,
    "memory_per_node": {"set": True, "number": 100},
}


class Row(Model, frozen=True):
    name: str


@pytest.fixture
def forgetful_slurm() -> Iterator[Sandbox]:
    """A Slurm that purges jobs one second after their end, and stores their comments."""
    with running_sandbox(
        Options(kubernetes=False, bridge=False, accounting=True, nodes=1)
    ) as sandbox:
        for conf in sandbox.slurm_conf.parent.glob("slurm*.conf"):
            text = conf.read_text().replace("MinJobAge=300", "MinJobAge=1")
            conf.write_text(f"{text}\nAccountingStoreFlags=job_comment\n")
        sandbox.restart("slurmctld")
        sandbox.restart("slurmrestd")
        yield sandbox


async def test_a_purged_job_is_found_by_its_key_and_a_reused_id_has_two_records(
    forgetful_slurm: Sandbox,
) -> None:
    slurm = forgetful_slurm
    since = SystemClock().now() - timedelta(seconds=5)
    async with Client(slurm.slurmrestd_url, token=TokenFile(slurm.token_file)) as client:
        job = await client.jobs.submit(name="first", key="once", comment="mine", **FIELDS)  # type: ignore[arg-type]  # a field of any name

        async def runs() -> bool:
            return "RUNNING" in (await client.jobs.get(job.job_id)).job_state

        async def is_purged() -> bool:
            return not await client.jobs.states([job.job_id])

        async def is_found() -> bool:
            return await client.db.jobs.with_key("once", since=since) is not None

        await eventually(runs)
        await client.jobs.cancel(job.job_id)
        await eventually(is_purged, deadline_s=90)
        with pytest.raises(NotFound):
            await client.jobs.get(job.job_id)
        await eventually(is_found)
        found = await client.db.jobs.with_key("once", since=since)
        assert found is not None
        assert (job.job_id, "first") == (found.job_id, found.name)
        assert await client.db.jobs.with_key("other", since=since) is None

        await asyncio.to_thread(slurm.restart, "slurmctld", signal="KILL", wipe=True)
        await asyncio.to_thread(slurm.create_slurm_nodes)
        second = await client.jobs.submit(name="second", hold=True, **FIELDS)  # type: ignore[arg-type]  # a field of any name
        assert job.job_id == second.job_id, "Slurm gives the id again"

        async def has_two_records() -> bool:
            return len(await client.db.jobs.runs(job.job_id)) == 2

        await eventually(has_two_records)
        assert ["second", "first"] == [one.name for one in await client.db.jobs.runs(job.job_id)]
        assert "second" == (await client.db.jobs.get(job.job_id)).name
        assert "second" == (await client.db.jobs.get(job.job_id, as_=Row)).name
        (first,) = await client.db.jobs.runs(found.sluid)
        assert "first" == first.name


async def test_a_key_is_not_taken_for_unused_where_comments_are_not_stored(client: Client) -> None:
    with pytest.raises(Rejected, match="AccountingStoreFlags=job_comment"):
        await client.db.jobs.with_key("unused", since=SystemClock().now())
