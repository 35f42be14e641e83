"""Nodes, partitions, reservations and the rest of slurmctld, at a real Slurm."""

from datetime import timedelta

import pytest

from slurmclient import Client, Model, NotFound
from slurmruntime.process.clock import SystemClock


class Row(Model, frozen=True):
    name: str
    state: frozenset[str] = frozenset()


async def test_a_partition_is_created_changed_and_deleted(client: Client) -> None:
    await client.partitions.save("made", nodes={"configured": "node-1"})
    assert "node-1" == (await client.partitions.get("made")).nodes.configured
    assert {"made", "slurm-bridge"} <= {one.name for one in await client.partitions.list()}
    await client.partitions.delete("made")
    with pytest.raises(NotFound):
        await client.partitions.get("made")


async def test_a_reservation_is_created_changed_and_deleted(client: Client) -> None:
    start = SystemClock().now().replace(microsecond=0) + timedelta(days=400)
    await client.reservations.save(
        "made", start_time=start, duration=timedelta(hours=1), users=["root"], node_list=["node-3"]
    )
    made = await client.reservations.get("made")
    assert (start, start + timedelta(hours=1), "node-3") == (
        made.start_time,
        made.end_time,
        made.node_list,
    )
    await client.reservations.save("made", duration=timedelta(hours=2))
    assert start + timedelta(hours=2) == (await client.reservations.get("made")).end_time
    await client.reservations.delete("made")
    with pytest.raises(NotFound):
        await client.reservations.get("made")


async def test_a_list_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    nodes = await client.nodes.list(as_=Row)
    assert nodes.updated_at is not None
    later = nodes.updated_at + timedelta(seconds=1)
    assert await client.nodes.list_if_changed(later, as_=Row) is None
    assert nodes == await client.nodes.list_if_changed(None, as_=Row)


async def test_a_missing_object_is_not_found(client: Client) -> None:
    for get in (client.nodes.get, client.partitions.get, client.reservations.get):
        with pytest.raises(NotFound, match="nope"):
            await get("nope")


async def test_the_rest_of_slurmctld_is_read(client: Client) -> None:
    assert [] == await client.licenses.list()
    shares = await client.shares.list()
    assert "root" in {one.name for one in shares}
    assert {"kubernetes"} == {
        one.name
        for one in await client.shares.list(accounts=["kubernetes"])
        if one.name == "kubernetes"
    }
    assert (await client.diag()).server_thread_count > 0
    assert "sandbox" == (await client.conf()).cluster_name
    assert [True] == [one.responding for one in await client.ping()]
    await client.reconfigure()


async def test_nothing_that_slurm_writes_is_odd(client: Client) -> None:
    for listing in (
        await client.jobs.list(),
        await client.nodes.list(),
        await client.partitions.list(),
        await client.reservations.list(),
        await client.shares.list(),
    ):
        assert () == listing.odd
