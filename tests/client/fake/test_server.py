"""`FakeSlurm`: faults, ends and restarts on demand, and how the client copes with them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from slurmclient import (
    Added,
    Client,
    Deleted,
    Event,
    LostReply,
    Model,
    NotFound,
    Restarted,
    Unavailable,
)
from slurmclient.fake.requests import DOWN, LOST_REPLY, LOST_REQUEST
from slurmclient.fake.server import FakeSlurm
from tests.servers import until


class Row(Model, frozen=True):
    job_id: int
    name: str = ""
    job_state: frozenset[str] = frozenset()


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurm]:
    async with FakeSlurm(nodes=1) as running:
        yield running


@pytest.fixture
async def client(fake: FakeSlurm) -> AsyncIterator[Client]:
    async with Client(fake.url, token="any", attempts=1) as opened:  # noqa: S106  # of a fake
        await opened.dialect()
        yield opened


async def test_a_node_registers_and_takes_what_waits(fake: FakeSlurm, client: Client) -> None:
    await client.jobs.submit(name="runs")
    waits = await client.jobs.submit(name="waits")
    fake.register("late")
    assert "RUNNING" in (await client.jobs.get(waits.job_id)).job_state
    fake.register("late")
    assert ["late", "node-0"] == sorted(each.name for each in await client.nodes.list())


async def test_a_job_ends_as_requested(fake: FakeSlurm, client: Client) -> None:
    job = await client.jobs.submit(name="fails")
    waits = await client.jobs.submit(name="waits")
    assert "PENDING" in (await client.jobs.get(waits.job_id)).job_state
    fake.end(job.job_id, "FAILED", exit_code=3)
    ended = await client.jobs.wait(job.job_id, timeout_s=30)
    assert (frozenset({"FAILED"}), 3) == (ended.job_state, ended.exit_code.return_code)
    assert "RUNNING" in (await client.jobs.get(waits.job_id)).job_state
    fake.forget(job.job_id)
    with pytest.raises(NotFound):
        await client.jobs.get(job.job_id)


async def test_a_fault_applies_to_its_operation(fake: FakeSlurm, client: Client) -> None:
    fake.fail_next("slurm_post_job_submit", LOST_REPLY)
    with pytest.raises(LostReply):
        await client.jobs.submit(name="done all the same")
    assert ["done all the same"] == [one.name for one in await client.jobs.list()]
    fake.fail_next("slurm_post_job_submit", LOST_REQUEST)
    with pytest.raises(LostReply):
        await client.jobs.submit(name="never done")
    assert 1 == len(await client.jobs.list())
    fake.fail_next("", DOWN)
    with pytest.raises(Unavailable):
        await client.jobs.list()
    assert ("slurm_get_jobs", "root") == fake.calls[-1]


async def test_a_key_survives_its_lost_answers(fake: FakeSlurm, client: Client) -> None:
    fake.fail_next("slurm_post_job_submit", LOST_REPLY)
    job = await client.jobs.submit(name="keyed", key="k")
    fake.fail_next("slurm_post_job", LOST_REQUEST)
    with pytest.raises(LostReply):
        await client.jobs.submit(name="keyed", key="k2")
    again = await client.jobs.submit(name="keyed", key="k2")
    assert (1, 2, False) == (job.job_id, again.job_id, again.is_new)


async def test_lost_state_of_slurmctld_is_reported_as_a_restart(
    fake: FakeSlurm, client: Client
) -> None:
    await client.jobs.submit(name="before")
    watching = client.jobs.watch(as_=Row, interval_s=0.05)
    await anext(watching)
    fake.restart()
    await client.jobs.submit(name="beside")
    assert "beside" == getattr((await anext(watching)), "new").name, "a mere restart is none"  # noqa: B009  # Added
    fake.restart(wipe=True)
    await client.jobs.submit(name="after")
    told = [await anext(watching) for _ in range(4)]
    assert isinstance(told[0], Restarted)
    assert {"before", "beside"} == {one.old.name for one in told if isinstance(one, Deleted)}


async def test_lost_state_is_noticed_while_slurmctld_does_not_say_when_it_started(
    fake: FakeSlurm, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its first seconds `req_time_start` is 0."""
    unset = {"set": True, "infinite": False, "number": 0}
    monkeypatch.setattr(fake, "slurm_get_diag", lambda _: {"statistics": {"req_time_start": unset}})
    await client.jobs.submit(name="before")
    watching = client.jobs.watch(as_=Row, interval_s=0.05)
    await anext(watching)
    fake.restart(wipe=True)
    await client.jobs.submit(name="after")
    async with asyncio.timeout(30):
        assert isinstance(await anext(watching), Restarted)


async def test_a_change_succeeds_even_if_the_look_after_it_fails(
    fake: FakeSlurm, client: Client
) -> None:
    async with client.jobs.cache(as_=Row, interval_s=0.05) as jobs:
        await jobs.synced(timeout_s=30)
        fake.fail_next("slurm_get_job", DOWN)
        job = await client.jobs.submit(name="made")
        row = await jobs.wait_for(job.job_id, lambda one: one is not None, timeout_s=30)
        assert row is not None
        assert "made" == row.name


async def test_a_handler_that_falls_far_behind_starts_over(
    fake: FakeSlurm, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmclient.watching.backlog._BACKLOG", 3)
    told: list[Event[Row]] = []
    may_go_on = asyncio.Event()

    async def slow(event: Event[Row]) -> None:
        told.append(event)
        await may_go_on.wait()

    async with client.jobs.cache(as_=Row, interval_s=0.05) as jobs:
        await jobs.synced(timeout_s=30)
        jobs.on(slow)
        for number in range(6):
            await client.jobs.submit(name=f"job-{number}", hold=True)
        may_go_on.set()
        await until(lambda: any(isinstance(one, Restarted) for one in told) and len(told) >= 8, 30)
    again = told[[isinstance(one, Restarted) for one in told].index(True) + 1 :]
    assert {f"job-{number}" for number in range(6)} <= {
        one.new.name for one in again if isinstance(one, Added)
    }


async def test_an_exception_of_a_handler_ends_the_cache(client: Client) -> None:
    def broken(_event: Event[Row]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # noqa: PT012  # it is raised out of the block
        async with client.jobs.cache(as_=Row, interval_s=0.05) as jobs:
            await jobs.synced(timeout_s=30)
            jobs.on(broken)
            await client.jobs.submit(name="heard")
            await asyncio.Event().wait()
