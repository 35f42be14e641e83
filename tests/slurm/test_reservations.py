"""Reservations of nodes against the real slurmrestd."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from bridge.slurm import nodes
from bridge.slurm.nodes import Deletion
from slurmclient.errors import Declined
from slurmruntime.model.nodes import NodeReservation, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.process.clock import SystemClock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode

NAME = "SlurmOperatorMaint-made"
FLAGS = frozenset({"MAINT", "IGNORE_JOBS"})
DEADLINE_S = 60.0
PAUSE_S = 0.2
HALF_AN_HOUR = timedelta(minutes=30)


@pytest.fixture
async def node(client: SlurmClient) -> AsyncIterator[SlurmNode]:
    """A node of our own, and no reservation when it goes."""
    name = SlurmNode("reserved-1")
    spec = SlurmNodeSpec(name=name, address="127.0.0.1", cpus=1, memory_mib=100)
    await nodes.create(client, spec)
    yield name
    await nodes.unreserve(client, NAME)
    await nodes.delete(client, name)


def reservation(node: SlurmNode, start: datetime, *flags: str) -> NodeReservation:
    return NodeReservation(
        name=NAME,
        start=start,
        end=start + HALF_AN_HOUR,
        nodes=frozenset({node}),
        flags=FLAGS | {*flags},
    )


async def test_a_reservation_is_made_found_and_deleted(
    client: SlurmClient, node: SlurmNode
) -> None:
    start = SystemClock().now().replace(microsecond=0) + timedelta(days=400)
    wanted = reservation(node, start, "WEEKLY")
    assert None is await nodes.reservation(client, NAME)
    await nodes.reserve(client, wanted)
    found = await nodes.reservation(client, NAME)
    assert found is not None
    assert (wanted.start, wanted.end, wanted.nodes) == (found.start, found.end, found.nodes)
    assert wanted.flags <= found.flags
    await nodes.unreserve(client, NAME)
    assert None is await nodes.reservation(client, NAME)
    await nodes.unreserve(client, NAME)  # a reply was lost


async def test_a_node_says_in_which_reservation_it_is_now(
    client: SlurmClient, node: SlurmNode
) -> None:
    """The reservation began just under a minute ago: what is left of a window is asked for in whole minutes."""
    start = SystemClock().now().replace(microsecond=0) - timedelta(seconds=59)
    assert "" == (await nodes.node(client, node)).reservation
    await nodes.reserve(client, reservation(node, start))
    there = await told(client, node, NAME)
    assert "MAINTENANCE" in there.states
    found = await nodes.reservation(client, NAME)
    assert found is not None
    assert start + HALF_AN_HOUR == found.end
    await nodes.unreserve(client, NAME)
    await told(client, node, "")


@pytest.fixture
async def other(client: SlurmClient) -> AsyncIterator[SlurmNode]:
    """Another node of our own, which leaves."""
    name = SlurmNode("reserved-2")
    await nodes.create(
        client, SlurmNodeSpec(name=name, address="127.0.0.1", cpus=1, memory_mib=100)
    )
    yield name
    await nodes.unreserve(client, NAME)
    await nodes.delete(client, name)


async def test_a_reservation_that_has_begun_keeps_its_nodes_and_gets_more(
    client: SlurmClient, node: SlurmNode, other: SlurmNode
) -> None:
    """Slurm lets no node go that a reservation has, and leaves one out that it does not know."""
    start = SystemClock().now().replace(microsecond=0) - timedelta(seconds=59)
    await nodes.reserve(client, reservation(node, start))
    await told(client, node, NAME)

    await nodes.extend_reservation(client, NAME, {node, other})

    await told(client, other, NAME)
    await nodes.extend_reservation(client, NAME, {node, other, SlurmNode("nope")})
    assert Deletion.BUSY is await nodes.delete(client, other)
    found = await nodes.reservation(client, NAME)
    assert found is not None
    assert frozenset({node, other}) == found.nodes
    assert start + HALF_AN_HOUR == found.end
    assert found.flags >= FLAGS
    await nodes.extend_reservation(client, NAME, {node})
    await told(client, other, "")
    assert Deletion.DELETED is await nodes.delete(client, other)
    await told(client, node, NAME)


async def told(client: SlurmClient, node: SlurmNode, expected: str) -> SlurmNodeFacts:
    """Wait until a node is in a reservation, or in none: slurmctld looks every few seconds which ones have begun."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = await nodes.node(client, node)
            if found.reservation == expected:
                return found
            await asyncio.sleep(PAUSE_S)


async def test_a_node_or_a_flag_that_slurm_does_not_have_is_refused(
    client: SlurmClient, node: SlurmNode
) -> None:
    start = SystemClock().now() + timedelta(days=400)
    with pytest.raises(Declined):
        await nodes.reserve(client, reservation(SlurmNode("nope"), start))
    assert None is await nodes.reservation(client, NAME)
    with pytest.raises(Declined):  # it may be made all the same, as a job is
        await nodes.reserve(client, reservation(node, start, "NO_SUCH_FLAG"))
