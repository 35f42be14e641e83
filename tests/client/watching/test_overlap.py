"""A read of one object while a look is under way: whatever changes in between is seen."""

from collections.abc import Callable
from typing import Any, cast

from slurmclient import Added, Client, Model, Modified
from slurmclient.calls.speaker import Speaker
from slurmclient.fake import FakeSlurm
from slurmclient.watching.job_picture import JobPicture
from slurmclient.watching.picture_by_name import PictureByName
from tests.client.conftest import Row
from tests.client.looking import ticks


class NodeRow(Model, frozen=True):
    name: str
    comment: str = ""


class Interrupted:
    """A speaker that lets something happen before it sends a certain operation."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self.before: dict[str, Callable[[], Any]] = {}
        self.queries: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._speaker, name)

    async def read(self, operation: str, *rest: Any, **more: Any) -> Any:
        self.queries.append(more.get("query"))
        await self._interrupt(operation)
        return await self._speaker.read(operation, *rest, **more)

    async def read_all(self, operation: str, *rest: Any, **more: Any) -> Any:
        await self._interrupt(operation)
        return await self._speaker.read_all(operation, *rest, **more)

    async def call(self, label: str, operation: str, **more: Any) -> Any:
        await self._interrupt(operation)
        return await self._speaker.call(label, operation, **more)

    async def _interrupt(self, operation: str) -> None:
        if act := self.before.pop(operation, None):
            await act()


async def test_a_node_that_changes_again_before_the_list_is_made() -> None:
    fake = FakeSlurm(nodes=1, clock=ticks())
    async with fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # of a fake
        speaker = Interrupted(slurm.speaker)
        nodes = PictureByName(
            cast("Speaker", speaker),
            NodeRow,
            ticks(),
            lists="slurm_get_nodes",
            gets="slurm_get_node",
            key="nodes",
            parameter="node_name",
        )
        assert [Added(NodeRow(name="node-0"))] == await nodes.poll()

        async def twice() -> None:
            await slurm.nodes.update("node-0", comment="ours")
            assert [Modified] == [type(one) for one in await nodes.poll_one("node-0")]
            await slurm.nodes.update("node-0", comment="theirs")

        speaker.before["slurm_get_nodes"] = twice
        await nodes.poll()
        await nodes.poll()
        assert "theirs" == nodes.objects["node-0"].comment
        _, interrupted, after = speaker.queries
        assert interrupted == after, "or else Slurm would say that nothing has changed"


async def test_a_job_that_changes_again_before_the_states_are_read() -> None:
    async with FakeSlurm(nodes=1) as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # of a fake
        speaker = Interrupted(slurm.speaker)
        jobs = JobPicture(cast("Speaker", speaker), Row, ticks(), resync_s=1e9)
        job = await slurm.jobs.submit(name="twice", hold=True)
        await jobs.poll()

        async def twice() -> None:
            await slurm.jobs.update(job.job_id, comment="ours")
            assert [Modified] == [type(one) for one in await jobs.poll_one(str(job.job_id))]
            await slurm.jobs.cancel(job.job_id)

        speaker.before["slurm_get_jobs_state"] = twice
        await jobs.poll()
        await jobs.poll()
        assert frozenset({"CANCELLED"}) == jobs.objects[str(job.job_id)].job_state
