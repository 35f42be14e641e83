"""Jobs at a real Slurm."""

import pytest

from sandbox.client import Sandbox
from slurmclient import (
    Client,
    LostReply,
    NotFound,
    Rejected,
    TokenFile,
)
from slurmclient.resources.job_states import has_ended
from tests import faults
from tests.client.conftest import Submit
from tests.client.looking import eventually
from tests.faults import Proxy
from tests.servers import until


async def test_a_held_job_starts_when_it_is_released(client: Client, submit: Submit) -> None:
    job = await submit(hold=True)
    assert "PENDING" in (await client.jobs.get(job.job_id)).job_state
    await client.jobs.release(job.job_id)

    async def runs() -> bool:
        return "RUNNING" in (await client.jobs.get(job.job_id)).job_state

    await eventually(runs)
    has = await client.resources(job.job_id)
    assert 1 == len(has)
    running = await client.jobs.get(job.job_id)
    assert running.job_resources is not None
    assert has[0].node == running.job_resources.nodes.list


async def test_a_name_that_is_not_utf_8_costs_only_itself(
    client: Client, slurm_accounting: Sandbox, submit: Submit
) -> None:
    other = await submit(name="readable", hold=True)
    odd = await submit(name="odd", hold=True)
    slurm_accounting.run(
        "scontrol", "update", f"JobId={odd.job_id}", b"Name=a\xffb".decode(errors="surrogateescape")
    )
    names = {one.job_id: one.name for one in await client.jobs.list()}
    assert "readable" == names[other.job_id]
    assert names[odd.job_id].startswith("a")
    assert "odd" != names[odd.job_id]
    assert names == {one.job_id: one.name async for one in client.jobs.iter()}


async def test_a_refusal_is_reported_in_slurms_words(client: Client, submit: Submit) -> None:
    with pytest.raises(NotFound, match="Invalid partition name") as raised:
        await submit(partition="nope")
    assert 2000 == raised.value.error_number
    with pytest.raises(Rejected, match="minimum_nodes"):
        await submit(minimum_nodes="abc")
    with pytest.raises(NotFound, match="Invalid account") as raised:
        await submit(account="nope")
    assert 2045 == raised.value.error_number


async def test_a_flag_that_does_not_exist_is_refused_and_the_job_is_there_all_the_same(
    client: Client,
) -> None:
    with pytest.raises(Rejected) as raised:
        await client.jobs.submit(flags=["EXTERNAL_JOB", "NOPE"], hold=True)
    assert raised.value.job_id is not None
    await client.jobs.cancel(raised.value.job_id)
    with pytest.raises(Rejected) as raised:
        await client.jobs.submit(flags=["EXTERNAL_JOB", "NOPE"], key="no-such-flag")
    assert raised.value.job_id is not None
    assert has_ended((await client.jobs.get(raised.value.job_id)).job_state)


async def test_a_key_is_its_users_own_whatever_others_write_into_their_comments(
    client: Client, submit: Submit
) -> None:
    bobs = await submit(
        hold=True,
        comment="slurmclient-key=mine",
        account="kubernetes",
        user_id="bob",
        group_id="bob",
    )
    alices = await client.as_user("alice").jobs.submit(
        flags=["EXTERNAL_JOB"], account="kubernetes", minimum_nodes=1, key="mine"
    )
    roots = await submit(key="mine")
    assert 3 == len({bobs.job_id, alices.job_id, roots.job_id})
    await client.jobs.cancel(alices.job_id)


@pytest.mark.parametrize(
    ("fault", "path"),
    [
        pytest.param(faults.LOST_REPLY, "/job/submit", id="the answer to the submit"),
        pytest.param(faults.LOST_REQUEST, "/job/submit", id="the submit"),
        pytest.param(faults.late(0.5), "/job/submit", id="the submit, which arrives late"),
        pytest.param(faults.LOST_REPLY, "/job/", id="the answer to what came second"),
    ],
)
async def test_a_key_submits_once_whatever_gets_lost(
    slurm_accounting: Sandbox, client: Client, submit: Submit, fault: faults.Fault, path: str
) -> None:
    """A loss that cannot be recovered from is reported; the next try yields the one job."""
    key = f"lost-{abs(hash((fault, path)))}"
    async with (
        Proxy.to(slurm_accounting.slurmrestd_url) as proxy,
        Client(proxy.url, token=TokenFile(slurm_accounting.token_file)) as through,
    ):
        await through.ping()
        proxy.inject(fault, "POST", path)
        try:
            told = (
                await through.jobs.submit(
                    key=key,
                    flags=["EXTERNAL_JOB"],
                    minimum_nodes=1,
                    memory_per_node={"set": True, "number": 100},
                )
            ).job_id
        except LostReply:
            told = 0
        if fault.arrives_after_s:
            await until(lambda: any(line.startswith("LATE") for line in proxy.requests), 20)
    settled = await submit(key=key)
    assert told in {0, settled.job_id}
    with_key = [one for one in await client.jobs.list() if key in one.comment]
    released = [one for one in with_key if f"key={key}" in one.comment]
    assert [settled.job_id] == [one.job_id for one in released]
    assert all(has_ended(one.job_state) for one in with_key if one.job_id != settled.job_id)


async def test_a_submit_without_a_key_says_that_its_answer_got_lost(
    slurm_accounting: Sandbox,
) -> None:
    async with (
        Proxy.to(slurm_accounting.slurmrestd_url) as proxy,
        Client(proxy.url, token=TokenFile(slurm_accounting.token_file)) as through,
    ):
        await through.ping()
        proxy.inject(faults.LOST_REQUEST, "POST", "/job/submit")
        with pytest.raises(LostReply):
            await through.jobs.submit(flags=["EXTERNAL_JOB"], hold=True)
        assert 1 == proxy.count("POST", "/job/submit")
