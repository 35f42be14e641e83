"""The accounting, at a real slurmdbd."""

from contextlib import suppress
from datetime import timedelta

import pytest

from slurmclient import Client, Model, NotFound
from slurmruntime.process.clock import SystemClock
from tests.client.conftest import Submit
from tests.client.looking import eventually


class Row(Model, frozen=True):
    job_id: int
    name: str = ""


async def test_accounts_users_and_associations_are_made_changed_and_removed(client: Client) -> None:
    await client.db.accounts.add("physics", description="p", organization="o", fairshare=5)
    await client.db.users.add("bob", accounts=["physics"], fairshare=3)
    assert ("physics", "p") == (
        (await client.db.accounts.get("physics")).name,
        (await client.db.accounts.get("physics")).description,
    )
    found = await client.db.associations.list(account="physics", user="bob")
    assert [("bob", 3)] == [(one.user, one.shares_raw) for one in found]
    await client.db.accounts.save(
        {"name": "physics", "description": "changed", "organization": "o"}
    )
    assert "changed" == (await client.db.accounts.get("physics")).description
    await client.db.associations.delete_where(account="physics", user="bob")
    assert [] == await client.db.associations.list(account="physics", user="bob")
    await client.db.accounts.delete("physics")
    with pytest.raises(NotFound):
        await client.db.accounts.get("physics")
    with pytest.raises(ValueError, match="expected a filter"):
        await client.db.associations.delete_where()


async def test_a_qos_is_made_changed_and_removed(client: Client) -> None:
    await client.db.qos.save({"name": "high", "priority": {"set": True, "number": 100}})
    assert 100 == (await client.db.qos.get("high")).priority
    await client.db.qos.save({"name": "high", "description": "first"})
    assert (100, "first") == (
        (await client.db.qos.get("high")).priority,
        (await client.db.qos.get("high")).description,
    )
    await client.db.qos.delete("high")
    with pytest.raises(NotFound):
        await client.db.qos.get("high")


async def test_the_rest_of_slurmdbd_is_read(client: Client) -> None:
    assert "alice" in {one.name for one in await client.db.users.list()}
    assert "alice" == (await client.db.users.get("alice")).name
    assert ["sandbox"] == [one.name for one in await client.db.clusters.list()]
    assert "sandbox" == (await client.db.clusters.get("sandbox")).name
    assert {"cpu", "mem"} <= {one.type for one in await client.db.tres.list()}
    assert () == (await client.db.wckeys.list()).odd
    assert () == (await client.db.instances.list()).odd
    assert [True] == [one.responding for one in await client.db.ping()]
    assert (await client.db.diag()).time_start
    assert (await client.db.conf()).dbd_port
    dump = await client.db.dump()
    assert "kubernetes" in {one.name for one in dump.accounts}


async def test_a_missing_object_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.db.users.get("nope")
    with pytest.raises(NotFound):
        await client.db.jobs.get(99999)


async def test_ended_jobs_are_read_by_windows_each_once(client: Client, submit: Submit) -> None:
    began = SystemClock().now()
    job = await submit(name="accounted", account="kubernetes", user_id="alice", group_id="alice")

    async def runs() -> bool:
        return "RUNNING" in (await client.jobs.get(job.job_id)).job_state

    async def is_accounted_for() -> bool:
        with suppress(NotFound):  # slurmctld tells slurmdbd a moment later
            return "CANCELLED" in (await client.db.jobs.get(job.job_id)).state.current
        return False

    await eventually(runs)
    await client.jobs.cancel(job.job_id)
    await eventually(is_accounted_for)
    end = SystemClock().now() + timedelta(seconds=1)
    found = [
        one.job_id
        async for one in client.db.jobs.windows(
            began - timedelta(seconds=2), end, window=timedelta(seconds=1), as_=Row
        )
    ]
    assert 1 == found.count(job.job_id)
    assert len(found) == len(set(found))
    await client.db.jobs.update(job.job_id, comment={"administrator": "looked at"})
    assert "looked at" == (await client.db.jobs.get(job.job_id)).comment.administrator
