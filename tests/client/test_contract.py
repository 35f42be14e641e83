"""What `FakeSlurm` has in common with the real Slurm: these tests run against both."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sandbox.client import Sandbox
from slurmclient import (
    Added,
    Cache,
    Client,
    Conflict,
    Deleted,
    Event,
    Forbidden,
    Model,
    Modified,
    NotFound,
    Restarted,
    TokenFile,
    has_ended,
)
from slurmclient.fake.server import FakeSlurm
from slurmclient.watching import listing
from slurmruntime.process.clock import SystemClock
from tests.client.conftest import Row, Submit
from tests.servers import until


class NodeRow(Model, frozen=True):
    name: str
    state: frozenset[str] = frozenset()


@pytest.fixture(params=["slurm", "fake"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    if request.param == "slurm":
        slurm: Sandbox = request.getfixturevalue("slurm_accounting")
        async with Client(slurm.slurmrestd_url, token=TokenFile(slurm.token_file)) as opened:
            yield opened
    else:
        async with FakeSlurm() as fake, Client(fake.url, token=str(request.param)) as opened:
            yield opened


async def test_a_job_is_submitted_read_changed_and_cancelled(
    client: Client, submit: Submit
) -> None:
    began = SystemClock().now().replace(microsecond=0) - timedelta(seconds=1)
    job = await submit(name="life", comment="hi", hold=True, time_limit=timedelta(minutes=90))
    read = await client.jobs.get(job.job_id)
    assert ("life", "hi", 90, True) == (read.name, read.comment, read.time_limit, read.hold)
    assert read.submit_time is not None
    assert read.submit_time >= began
    assert read.start_time is None

    await client.jobs.update(job.job_id, time_limit=timedelta(hours=2), comment="changed")
    changed = await client.jobs.get(job.job_id)
    assert (120, "changed") == (changed.time_limit, changed.comment)

    await client.jobs.cancel(job.job_id)
    ended = await client.jobs.wait(job.job_id, timeout_s=30, interval_s=0.05)
    assert has_ended(ended.job_state)
    assert "CANCELLED" in ended.job_state
    with pytest.raises(Conflict) as raised:
        await client.jobs.update(job.job_id, time_limit=timedelta(hours=3))
    assert 2084 == raised.value.error_number


async def test_a_view_has_the_fields_it_names(client: Client, submit: Submit) -> None:
    job = await submit(name="viewed", hold=True)
    row = next(one for one in await client.jobs.list(as_=Row) if one.job_id == job.job_id)
    assert ("viewed", frozenset({"PENDING"})) == (row.name, row.job_state)
    assert row == await client.jobs.get(job.job_id, as_=Row)
    assert row in [one async for one in client.jobs.iter(as_=Row)]


async def test_states_are_those_of_the_list_for_a_hundredth_of_its_size(
    client: Client, submit: Submit
) -> None:
    job = await submit(hold=True)
    assert {str(job.job_id): frozenset({"PENDING"})} == await client.jobs.states(
        [job.job_id, 99999]
    )
    assert str(job.job_id) in await client.jobs.states()


async def test_states_are_read_anew_only_if_one_has_changed(client: Client, submit: Submit) -> None:
    job = await submit(name="still", hold=True)
    first = await listing.all_jobs(client.speaker)
    assert job.job_id in first.states
    assert first is await listing.all_jobs(client.speaker, before=first)

    await client.jobs.cancel(job.job_id)
    after = await listing.all_jobs(client.speaker, before=first)
    assert first is not after
    assert {"CANCELLED"} == after.states[job.job_id]


async def test_a_missing_or_ended_job_cannot_be_cancelled(client: Client, submit: Submit) -> None:
    job = await submit(hold=True)
    with pytest.raises(NotFound):
        await client.jobs.cancel(99999)
    with pytest.raises(NotFound):
        await client.jobs.update(99999, comment="x")
    await client.jobs.cancel(job.job_id)
    with pytest.raises(Conflict) as raised:
        await client.jobs.cancel(job.job_id)
    assert 2021 == raised.value.error_number


async def test_a_signal_that_does_not_exist_is_not_sent_as_slurm_would_kill_the_job(
    client: Client, submit: Submit
) -> None:
    job = await submit(hold=True)
    with pytest.raises(ValueError, match="expected a signal"):
        await client.jobs.cancel(job.job_id, signal="NOPE")
    assert not has_ended((await client.jobs.get(job.job_id)).job_state)


async def test_several_jobs_are_cancelled_at_once_and_never_all_by_accident(
    client: Client, submit: Submit
) -> None:
    jobs = [(await submit(hold=True, name=f"many-{number}")).job_id for number in range(3)]
    done = await client.jobs.cancel_many(*jobs, 99999)
    assert {0, 2017} == {one.error.code for one in done} | {0}
    for job_id in jobs:
        assert has_ended((await client.jobs.states([job_id]))[str(job_id)])
    with pytest.raises(ValueError, match="name the jobs"):
        await client.jobs.cancel_many()


async def test_another_user_is_impersonated_over_the_same_connections(
    client: Client, submit: Submit
) -> None:
    roots = await submit(hold=True)
    alice = client.as_user("alice")
    theirs = await alice.jobs.submit(
        flags=["EXTERNAL_JOB"], hold=True, name="alice's", account="kubernetes", minimum_nodes=1
    )
    assert "alice" == (await client.jobs.get(theirs.job_id)).user_name
    with pytest.raises(Forbidden):
        await alice.jobs.cancel(roots.job_id)
    await alice.jobs.cancel(theirs.job_id)


async def test_a_key_submits_once(client: Client, submit: Submit) -> None:
    first = await submit(key="once", comment="mine")
    again = await submit(key="once", comment="mine")
    assert (first.job_id, True, False) == (again.job_id, first.is_new, again.is_new)
    job = await client.jobs.get(first.job_id)
    assert (False, "mine slurmclient-key=once") == (job.hold, job.comment)
    with pytest.raises(ValueError, match="expected a key"):
        await submit(key="no spaces")


async def test_a_key_submits_once_from_many_at_the_same_time(
    client: Client, submit: Submit
) -> None:
    answers = await asyncio.gather(*(submit(key="crowd") for _ in range(6)))
    assert 1 == len({one.job_id for one in answers})
    alive = [
        one
        for one in await client.jobs.list()
        if "slurmclient-key" in one.comment
        and "crowd" in one.comment
        and not has_ended(one.job_state)
    ]
    assert [answers[0].job_id] == [one.job_id for one in alive]
    assert not alive[0].hold


async def test_a_node_is_created_drained_resumed_and_deleted(client: Client) -> None:
    await client.nodes.create(
        "NodeName=made State=EXTERNAL NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000"
    )
    with pytest.raises(Conflict) as raised:
        await client.nodes.create("NodeName=made State=EXTERNAL NodeAddr=127.0.0.1")
    assert 2168 == raised.value.error_number
    await client.nodes.drain("made", "a fan")
    node = await client.nodes.get("made")
    assert ("a fan", True) == (node.reason, "DRAIN" in node.state)
    await client.nodes.resume("made")
    assert "DRAIN" not in (await client.nodes.get("made", as_=NodeRow)).state
    refused = await client.nodes.update("made", cpus=3)
    assert refused.warnings, "Slurm ignores it, and says so"
    await client.nodes.delete("made")
    with pytest.raises(NotFound):
        await client.nodes.get("made")


async def test_a_stream_gives_what_the_list_gives(client: Client) -> None:
    assert await client.nodes.list(as_=NodeRow) == [
        one async for one in client.nodes.iter(as_=NodeRow)
    ]
    assert [] == [one async for one in client.licenses.iter()]


def of(event: Event[Row], name: str) -> bool:
    match event:
        case Added(new) | Modified(_, new):
            return new.name == name
        case Deleted(old):
            return old.name == name
        case Restarted():
            return False


async def events_of(watching: AsyncIterator[Event[Row]], name: str, count: int) -> list[Event[Row]]:
    found: list[Event[Row]] = []
    async with asyncio.timeout(30):
        async for event in watching:
            found += [event] * of(event, name)
            if len(found) == count:
                break
    return found


async def test_events_arrive_in_order_each_with_its_own_old_and_new(
    client: Client, submit: Submit
) -> None:
    job = await submit(name="watched", hold=True)
    watching = client.jobs.watch(as_=Row, interval_s=0.1)
    (added,) = await events_of(watching, "watched", 1)
    await client.jobs.cancel(job.job_id)
    (ended,) = await events_of(watching, "watched", 1)
    match added, ended:
        case Added(first), Modified(old, new):
            assert first == old
            assert (frozenset({"PENDING"}), True) == (old.job_state, has_ended(new.job_state))
        case other:
            pytest.fail(f"unexpected {other}")


async def test_what_the_client_writes_is_in_its_cache_when_the_call_returns(
    client: Client, cache: Cache[Row], submit: Submit
) -> None:
    job = await submit(name="mine", hold=True)
    row = cache.get(job.job_id)
    assert row is not None
    assert [row] == cache.by("name", "mine")
    await client.jobs.update(job.job_id, comment="changed", name="renamed")
    changed = cache.get(job.job_id)
    assert changed is not None
    assert ("changed", []) == (changed.comment, cache.by("name", "mine"))
    assert [changed] == cache.by("name", "renamed")
    await client.jobs.cancel(job.job_id)
    ended = cache.get(job.job_id)
    assert ended is not None
    assert has_ended(ended.job_state)


async def test_every_handler_receives_every_event_and_a_slow_one_delays_no_other(
    client: Client, cache: Cache[Row], submit: Submit
) -> None:
    heard: list[str] = []
    late: list[str] = []
    may_go_on = asyncio.Event()

    async def slow(event: Event[Row]) -> None:
        await may_go_on.wait()
        late.append(repr(event))

    cache.on(slow)
    cache.on(lambda event: heard.append(repr(event)))
    job = await submit(name="heard", hold=True)
    await client.jobs.cancel(job.job_id)
    await until(lambda: "CANCELLED" in "".join(heard), 30)
    assert [] == late
    may_go_on.set()
    await until(lambda: late == heard, 30)


async def test_nodes_are_watched_too(client: Client) -> None:
    async with client.nodes.cache(as_=NodeRow, interval_s=0.2) as nodes:
        await nodes.synced(timeout_s=30)
        assert {"node-0", "node-1"} <= {node.name for node in nodes.values()}
        await client.nodes.drain("node-1", "watched")
        drained = nodes.get("node-1")
        assert drained is not None
        assert "DRAIN" in drained.state
        await client.nodes.resume("node-1")
        await nodes.fresh(timeout_s=30)
        resumed = nodes.get("node-1")
        assert resumed is not None
        assert "DRAIN" not in resumed.state


async def test_a_released_job_runs(client: Client, submit: Submit) -> None:
    job = await submit(hold=True)
    await client.jobs.release(job.job_id)
    async with client.jobs.cache(as_=Row, interval_s=0.1) as jobs:
        row = await jobs.wait_for(
            job.job_id, lambda one: one is not None and "RUNNING" in one.job_state, timeout_s=30
        )
        assert row is not None


async def test_a_missing_object_is_not_found(client: Client) -> None:
    for get in (client.jobs.get, client.nodes.get, client.partitions.get):
        with pytest.raises(NotFound):
            await get("99999")
    with pytest.raises(NotFound) as raised:
        await client.jobs.submit(flags=["EXTERNAL_JOB"], partition="nope")
    assert 2000 == raised.value.error_number


async def test_the_cluster_says_what_it_is(client: Client) -> None:
    assert 45 == (await client.dialect()).version
    assert [True] == [one.responding for one in await client.ping()]
    assert (await client.diag()).server_thread_count > 0
    (partition,) = await client.partitions.list()
    assert partition.nodes.total >= 4
