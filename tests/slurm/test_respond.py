"""A registration in the place of a slurmd: what it clears, and that it changes nothing else. Against the real slurmctld."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.domain.model.jobs import JobPhase
from bridge.slurm import complete, jobs, nodes, respond
from bridge.slurm.complete import ControllerHosts
from bridge.slurm.nodes import Deletion
from bridge.slurm.respond import Responder
from sandbox.client import Sandbox
from sandbox.slurm_conf import PARTITION
from slurmclient.errors import TooOld
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.process.clock import SystemClock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode
from tests.slurm.placeholders import in_phase, spec

NAME = SlurmNode("answered")
TYPED = SlurmNodeSpec(
    name=NAME,
    address="127.0.0.9",
    cpus=4,
    memory_mib=2048,
    features=(PARTITION,),
    gres="gpu:a100:1,gpu:b:2,nic:1",
    gres_conf="count=1,name=gpu,type=a100,file=gpu-0+count=2,name=gpu,type=b,file=gpu-1,file=gpu-2"
    "+count=1,name=nic,file=nic-0",
    threads_per_core=2,
)


@pytest.fixture
async def busy(client: SlurmClient) -> AsyncIterator[SlurmNode]:
    """A node with devices of several types on which a job runs."""
    await nodes.create(client, TYPED)
    asked = replace(spec(), required_nodes=(NAME,), gres_per_node="gres/gpu:b:1")
    job = await in_phase(client, await jobs.submit(client, asked), JobPhase.RUNNING)
    yield NAME
    await jobs.cancel(client, job.id)
    async with asyncio.timeout(30):
        while await nodes.delete(client, NAME) is Deletion.BUSY:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.2)


@pytest.fixture(params=[44, 45])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both that have this message."""
    monkeypatch.setattr(complete, "protocol_for", lambda _: request.param)


@pytest.mark.usefixtures("protocol")
async def test_it_clears_what_no_state_clears(
    client: SlurmClient,
    controllers: ControllerHosts,
    busy: SlurmNode,
    slurm: Sandbox,
) -> None:
    slurm.run("scontrol", "update", f"nodename={busy}", "state=NoResp")
    before = await nodes.node(client, busy)
    assert "NOT_RESPONDING" in before.states
    await nodes.undrain(client, [busy])
    assert "NOT_RESPONDING" in (await nodes.node(client, busy)).states

    now_s = int(SystemClock().now().timestamp())
    await Responder(client, controllers).respond(before, now_s)
    await nodes.set_address(client, busy, TYPED.address)

    after = await nodes.node(client, busy)
    assert before.states - {"NOT_RESPONDING"} == after.states
    assert replace(before, states=after.states) == after
    assert ["RUNNING"] == slurm.run("squeue", "-h", "-w", busy, "-o", "%T").split()


async def test_nobody_else_may_answer(
    client: SlurmClient,
    controllers: ControllerHosts,
    busy: SlurmNode,
    slurm: Sandbox,
    tmp_path: Path,
) -> None:
    slurm.run("scontrol", "update", f"nodename={busy}", "state=NoResp")
    before = await nodes.node(client, busy)
    token = tmp_path / "token"
    token.write_text(slurm.token("kubernetes"))

    async with SlurmClient.open(slurm.slurmrestd_url, token_file=token) as users:
        await Responder(users, controllers).respond(before, 1)

    assert before == await nodes.node(client, busy)


async def test_slurm_before_25_11_has_another_message(
    client: SlurmClient,
    controllers: ControllerHosts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(complete, "protocol_for", lambda _: 43)
    some = (await nodes.listing(client))[0]
    with pytest.raises(TooOld):
        await Responder(client, controllers).respond(some, 1)


def test_kinds_of_gres_have_slurms_numbers() -> None:
    assert 0x757067 == respond.gres_id("gpu")
    assert ord("s") + ord("d") == respond.gres_id("s\0\0\0d")
