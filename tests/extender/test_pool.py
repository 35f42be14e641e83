"""How long the extender believes a list of Slurm's nodes."""

from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.ids import SlurmNode
from bridge.domain.model import nodes
from bridge.kube.cache import Cache
from bridge.kube.decode import BOUND_PODS, NODES, PODS
from bridge.slurm.client import SlurmClient
from extender.nodes import Bridged
from slurmclient import TokenFile
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from tests.extender.peers import PING, reply
from tests.make import placing
from tests.virtual_time import VirtualClock, run

A, B = SlurmNode("a"), SlurmNode("b")


class Slurmrestd(Transport):
    """Has these nodes of ours, and counts how often it is asked for them."""

    def __init__(self, *ours: SlurmNode) -> None:
        self.ours = ours
        self.lists = 0

    @override
    def avoid(self, server: int) -> None:
        """There is no other."""

    @override
    async def exchange(self, request: Request) -> Reply:
        if request.path.endswith("/ping/"):
            return reply(PING)
        assert "slurm_get_nodes" == request.operation
        self.lists += 1
        mark = nodes.cluster_feature(placing.CLUSTER)
        listed: list[dict[str, Any]] = [
            {"name": name, "state": ["IDLE"], "features": [mark] if name in self.ours else []}
            for name in (A, B)
        ]
        return reply({"nodes": listed, "errors": []})


def bridged(slurm: Slurmrestd, clock: VirtualClock) -> Bridged:
    kube_nodes = Cache(NODES)
    for name in (A, B):
        kube_nodes.put(placing.kube_node(name))
    return Bridged(
        SlurmClient(slurm, token=TokenFile("nowhere"), connections=1, on_call=lambda *_: None),
        cluster=placing.CLUSTER,
        pods=Cache(PODS),
        kube_nodes=kube_nodes,
        bound=Cache(BOUND_PODS),
        placeholders=None,  # type: ignore[arg-type]  # of pods that are there
        gpu_resources={},
        milli_per_cpu=1000,
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


def test_a_list_is_read_every_ten_seconds_at_most_while_the_same_nodes_are_missing() -> None:
    async def main(clock: VirtualClock) -> None:
        slurm = Slurmrestd(A)
        there = bridged(slurm, clock)
        for _ in range(30):
            await there.pool()
            await clock.sleep(1.1)
        assert 3 == slurm.lists

    run(main)
