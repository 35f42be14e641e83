"""What is asked of Slurm once more when a pod is about to be bound: whether its job still has the node, and nobody else may get it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.pods import Pod
from bridge.escrow import shares
from slurmclient.errors import Unavailable
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid
from tests import virtual_time
from tests.make import placing as build
from tests.make.slurm import Job, Slurm
from tests.make.slurm_nodes import Node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

EXTERNAL = {names.EXTERNAL_NODE_LABEL: "true"}
HYBRID = {names.EXTERNAL_NODE_LABEL: "false", names.HYBRID_NODE_LABEL: "true"}
NODE = KubeNode("k1")


class Site:
    """A node, and a job of ours that was placed there."""

    def __init__(
        self, state: str, labels: dict[str, str], *, rule: HybridRule = HybridRule.ESCROW
    ) -> None:
        jobs = [Job(id=7, comment="", state=state, nodes="k1")] if state else []
        self.node = Node(name="k1", states={"ALLOCATED"})
        self.slurm = Slurm(Trouble(), jobs, [self.node])
        self.rule = rule
        self.clock = VirtualClock()
        self.calls = 0
        self.is_away = False
        self.nodes = Cache(NODES)
        self.nodes.put(build.kube_node("k1", labels=labels))

    async def call(self, *args: object, **kwargs: object) -> object:
        self.calls += 1
        if self.is_away:
            raise Unavailable("job.get", "no connection")
        return await self.slurm.call(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came

    async def look(self) -> str:
        pod: Pod = build.pod(uid=PodUid("one"), gates=(), labels={names.JOB_ID_LABEL: "7"})
        look = shares.last_check(self, self.nodes, self.rule, self.clock)  # type: ignore[arg-type]  # it takes the client's place
        return await look(pod, NODE)


def played(play: Callable[[], Awaitable[None]]) -> None:
    async def main(_clock: VirtualClock) -> None:
        await play()

    virtual_time.run(main)


@pytest.mark.parametrize("state", ["RUNNING", "RUNNING CONFIGURING", "SUSPENDED"])
def test_a_pod_whose_job_has_its_share_is_bound(state: str) -> None:
    async def play() -> None:
        assert "" == await Site(state, HYBRID).look()

    played(play)


@pytest.mark.parametrize("state", ["CANCELLED", "PREEMPTED", "PENDING REQUEUED", ""])
def test_a_pod_whose_job_has_lost_it_is_not_bound(state: str) -> None:
    """A native job may have been let go before anybody saw the pod there."""

    async def play() -> None:
        assert "Slurm job 7 no longer has k1" == await Site(state, HYBRID).look()

    played(play)


def test_what_cannot_be_known_is_a_reason_not_to_bind() -> None:
    async def play() -> None:
        site = Site("RUNNING", HYBRID)
        site.is_away = True
        assert "cannot check whether" in await site.look()

    played(play)


def test_on_external_nodes_nobody_is_asked() -> None:
    async def play() -> None:
        site = Site("CANCELLED", EXTERNAL)
        assert "" == await site.look()
        assert 0 == site.calls

    played(play)


def test_in_turns_a_pod_waits_for_the_drain_before_its_job_is_checked() -> None:
    """A job that ends in between must not leave the pod beside a native one."""

    async def play() -> None:
        site = Site("RUNNING", HYBRID, rule=HybridRule.ALTERNATE)

        async def drain(state: str) -> None:
            await site.clock.sleep(1)
            site.node.states.add("DRAIN")
            site.slurm.jobs[7].state = state

        for state, expected in (
            ("RUNNING", ""),
            ("CANCELLED", "Slurm job 7 no longer has k1"),
        ):
            site.node.states.discard("DRAIN")
            async with asyncio.TaskGroup() as group:
                group.create_task(drain(state))
                assert expected == await site.look()

    played(play)


def test_in_turns_no_pod_is_bound_to_a_node_that_nobody_drains() -> None:
    async def play() -> None:
        site = Site("RUNNING", HYBRID, rule=HybridRule.ALTERNATE)
        assert "k1 is not drained in Slurm yet" in await site.look()
        assert 3 <= site.clock.monotonic() < 4

        site.is_away = True
        assert "cannot check whether" in await site.look()

    played(play)
