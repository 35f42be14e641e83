"""Watching and caching, at a real Slurm."""

import asyncio
from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import (
    Added,
    Cache,
    Client,
    Deleted,
    Event,
    Modified,
    Restarted,
    TokenFile,
    has_ended,
)
from tests import faults
from tests.client.conftest import Row, Submit
from tests.faults import Proxy
from tests.servers import running_sandbox, until


async def test_what_slurm_forgets_is_deleted_and_reused_ids_are_a_restart(
    own_slurm: Sandbox,
) -> None:
    slurm = own_slurm
    async with Client(
        slurm.slurmrestd_url, token=TokenFile(slurm.token_file), timeout_s=5
    ) as client:
        fields = {"flags": ["EXTERNAL_JOB"], "hold": True}
        first = await client.jobs.submit(name="before", **fields)  # type: ignore[arg-type]  # a field of any name
        watching = client.jobs.watch(as_=Row, interval_s=0.1)
        async with asyncio.timeout(30):
            first_event = await anext(watching)
        assert isinstance(first_event, Added)
        await asyncio.to_thread(slurm.restart, "slurmctld", signal="KILL", wipe=True)
        await asyncio.to_thread(slurm.create_slurm_nodes)
        second = await client.jobs.submit(name="after", **fields)  # type: ignore[arg-type]  # a field of any name
        assert first.job_id == second.job_id, "Slurm gives the id again"
        told: list[str] = []
        async with asyncio.timeout(60):
            async for event in watching:
                told.append(
                    type(event).__name__
                    + ("" if isinstance(event, Restarted) else f" {_name(event)}")
                )
                if told[-1] == "Added after":
                    break
        assert "Restarted" == told[0]
        assert told.index("Deleted before") < told.index("Added after")


def _name(event: Event[Row]) -> str:
    match event:
        case Added(new) | Modified(_, new):
            return new.name
        case Deleted(old):
            return old.name
        case Restarted():
            return ""


@pytest.fixture
def own_slurm() -> Iterator[Sandbox]:
    """A Slurm of its own, for a test that crashes it."""
    with running_sandbox(Options(kubernetes=False, bridge=False, nodes=1)) as sandbox:
        yield sandbox


async def test_what_others_write_is_waited_for(
    slurm_accounting: Sandbox, cache: Cache[Row], submit: Submit
) -> None:
    job = await submit(name="others", hold=True)
    waiting = asyncio.create_task(  # noqa: TID251  # the test awaits it
        cache.wait_for(
            job.job_id, lambda row: row is not None and has_ended(row.job_state), timeout_s=30
        )
    )
    await asyncio.to_thread(slurm_accounting.run, "scancel", str(job.job_id))
    row = await waiting
    assert row is not None
    assert "CANCELLED" in row.job_state
    with pytest.raises(TimeoutError):
        await cache.wait_for(99999, lambda found: found is not None, timeout_s=0.5)


async def test_a_fresh_look_sees_what_others_did_before(
    slurm_accounting: Sandbox, cache: Cache[Row], submit: Submit
) -> None:
    job = await submit(name="fresh", hold=True)
    await asyncio.to_thread(slurm_accounting.run, "scancel", str(job.job_id))
    await cache.fresh(timeout_s=30)
    row = cache.get(job.job_id)
    assert row is not None
    assert "CANCELLED" in row.job_state
    assert cache.age_s is not None
    assert cache.age_s < 30


async def test_a_slurm_that_does_not_answer_is_waited_for(slurm_accounting: Sandbox) -> None:
    async with (
        Proxy.to(slurm_accounting.slurmrestd_url) as proxy,
        Client(proxy.url, token=TokenFile(slurm_accounting.token_file), attempts=1) as through,
        through.jobs.cache(as_=Row, interval_s=0.1) as running,
    ):
        await running.synced(timeout_s=30)
        proxy.inject(faults.LOST_REPLY, "GET", "/jobs/", times=3)
        await until(lambda: running.error is not None, 30)
        await running.fresh(timeout_s=30)
        assert running.error is None
