"""How long the extender believes a list of Slurm's nodes."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.model.hybrid import HybridRule
from bridge.kube.decode import BOUND_PODS, PODS
from extender.nodes import BridgedNodes, Sharing
from slurmclient import TokenFile
from slurmclient.errors import Unavailable
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode
from tests.extender.peers import PING, reply
from tests.make import placing
from tests.virtual_time import VirtualClock, run

A, B = SlurmNode("a"), SlurmNode("b")


class Slurmrestd(Transport):
    """Has these nodes of ours, and counts how often it is asked for them."""

    def __init__(self, *ours: SlurmNode, takes_s: float = 0.0) -> None:
        self.ours = ours
        self.lists = 0
        self.takes_s = takes_s
        self.is_away = False

    @override
    def avoid(self, server: int) -> None:
        """There is no other."""

    @override
    async def exchange(self, request: Request) -> Reply:
        if self.is_away:
            raise Unavailable(request.operation, "no answer")
        if request.path.endswith("/ping/"):
            return reply(PING)
        assert "slurm_get_nodes" == request.operation
        self.lists += 1
        await asyncio.sleep(self.takes_s)
        mark = nodes.cluster_feature(placing.CLUSTER)
        listed: list[dict[str, Any]] = [
            {"name": name, "state": ["IDLE"], "features": [mark] if name in self.ours else []}
            for name in (A, B)
        ]
        return reply({"nodes": listed, "errors": []})


def known_to_kubernetes() -> Cache[KubeNodeFacts]:
    kube_nodes = Cache(NODES)
    for name in (A, B):
        kube_nodes.put(placing.kube_node(name))
    return kube_nodes


def edited(name: str, version: str = "2") -> KubeNodeFacts:
    return placing.kube_node(name, labels={"edit": version}, resource_version=version)


def bridged(
    slurm: Slurmrestd, clock: VirtualClock, kube_nodes: Cache[KubeNodeFacts] | None = None
) -> BridgedNodes:
    return BridgedNodes(
        SlurmClient(slurm, token=TokenFile("nowhere"), connections=1, on_call=lambda *_: None),
        cluster=placing.CLUSTER,
        mirror=SimpleNamespace(  # type: ignore[arg-type]  # all that is asked
            pods=Cache(PODS),
            kube_nodes=kube_nodes or known_to_kubernetes(),
            bound=Cache(BOUND_PODS),
        ),
        placeholders=None,  # type: ignore[arg-type]  # of pods that are there
        gpu_resources={},
        resources={},
        milli_per_cpu=1000,
        sharing=Sharing(rule=HybridRule.ACCEPT_OVERLAP),
        clock=clock,
    )


@pytest.mark.parametrize("left", [(), (A,)], ids=["none is left", "one is left"])
def test_a_list_without_nodes_that_were_there_is_soon_read_again(
    left: tuple[SlurmNode, ...],
) -> None:
    """So a submit right after `scontrol reconfigure` is not the last for a while to find no node."""

    async def main(clock: VirtualClock) -> None:
        slurm = Slurmrestd(A, B)
        there = bridged(slurm, clock)
        assert {A, B} == (await there.pool()).nodes.keys()
        await clock.sleep(11)
        slurm.ours = left
        assert set(left) == (await there.pool()).nodes.keys()
        slurm.ours = (A, B)
        await clock.sleep(1.1)
        assert {A, B} == (await there.pool()).nodes.keys()
        assert 3 == slurm.lists

    run(main)


def test_a_new_leader_lists_the_nodes_as_soon_as_slurm_answers_and_no_more() -> None:
    """A placeholder from before it led may start before the first submit."""

    async def main(clock: VirtualClock) -> None:
        slurm = Slurmrestd(A, B)
        slurm.is_away = True
        there = bridged(slurm, clock)
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(there.list_first(asyncio.Event()))
            await clock.sleep(10)
            assert there.gres(A) is None
            slurm.is_away = False
            await clock.sleep(2)
            assert listing.done()
        assert there.gres(A) is not None
        assert 1 == slurm.lists

    run(main)


def test_a_list_is_read_every_ten_seconds_at_most_while_the_same_nodes_are_missing() -> None:
    async def main(clock: VirtualClock) -> None:
        slurm = Slurmrestd(A)
        there = bridged(slurm, clock)
        for _ in range(30):
            await there.pool()
            await clock.sleep(1.1)
        assert 3 == slurm.lists

    run(main)


def test_where_nodes_change_all_the_time_a_fifth_of_it_goes_to_lists() -> None:
    """Heartbeats of thousands of nodes that come too late make some of them change each moment."""

    async def main(clock: VirtualClock) -> None:
        slurm, kube_nodes = Slurmrestd(A, B, takes_s=1.0), known_to_kubernetes()
        there = bridged(slurm, clock, kube_nodes)
        while clock.monotonic() < 100:
            kube_nodes.put(edited(B, str(clock.monotonic())))
            await there.pool()
            await clock.sleep(0.1)
        assert 20 == slurm.lists

    run(main)


def test_a_node_that_leaves_is_gone_from_the_pool_before_a_list_is_due() -> None:
    async def main(clock: VirtualClock) -> None:
        slurm, kube_nodes = Slurmrestd(A, B, takes_s=1.0), known_to_kubernetes()
        there = bridged(slurm, clock, kube_nodes)
        assert {A, B} == (await there.pool()).nodes.keys()
        kube_nodes.put(replace(edited(B), labels={}))
        assert {A} == (await there.pool()).nodes.keys()
        assert 1 == slurm.lists

    run(main)


def test_an_edit_while_nodes_are_listed_has_them_listed_once_more() -> None:
    """Slurm may have got the node after the list was made."""

    async def main(clock: VirtualClock) -> None:
        slurm, kube_nodes = Slurmrestd(A, takes_s=1.0), known_to_kubernetes()
        there = bridged(slurm, clock, kube_nodes)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(there.pool())
            await clock.sleep(0.5)
            kube_nodes.put(edited(B))
        assert {A} == first.result().nodes.keys()
        slurm.ours = (A, B)
        await clock.sleep(4)
        assert {A, B} == (await there.pool()).nodes.keys()

    run(main)
