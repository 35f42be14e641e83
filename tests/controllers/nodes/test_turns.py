"""The controllers drain a machine that pods have, and give it back once their containers are gone."""

import asyncio

from bridge.domain.nodes import state
from tests import virtual_time
from tests.controllers.nodes_situations import in_turns, marked
from tests.make.leader import LISTED_AFTER_S, Leader
from tests.make.manifests import placed, running
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock


def test_its_turn_lasts_from_the_pod_to_its_last_container() -> None:
    async def main(clock: VirtualClock) -> None:
        leader = Leader(
            in_turns([placed("one")], marked(), jobs=[running(nodes="k1")]), Trouble(), clock
        )
        node, job = leader.slurm.nodes.by_name["k1"], leader.slurm.jobs[1]
        async with asyncio.TaskGroup() as group:
            group.create_task(leader.lead(for_s=60))
            await clock.sleep(LISTED_AFTER_S + 1)
            assert "DRAIN" in node.states
            assert state.REASON_PREFIX + state.TAKEN == node.reason

            job.state = "CANCELLED"
            await clock.sleep(30)
            assert "DRAIN" in node.states, "its containers still run"

            leader.api.remove("Pod", "one")
            await clock.sleep(4)
            assert "DRAIN" not in node.states

    virtual_time.run(main)
