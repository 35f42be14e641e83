"""Drained nodes that one placeholder waits for, before a real slurmctld with a job that wants one of them."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bridge.domain.model.jobs import JobPhase
from bridge.domain.request.restoration import TOP_PRIORITY
from bridge.slurm import jobs
from bridge.slurm import nodes as slurm_nodes
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, SlurmNode
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import CLUSTER, in_phase, spec

SHAPE = SlurmNodeSpec(
    name=SlurmNode("released-a"),
    address="127.0.0.1",
    cpus=64,
    memory_mib=4000,
    features=(names.BRIDGED_FEATURE, nodes.cluster_feature(CLUSTER)),
)
"""Larger than any other node there."""
A, B = SlurmNode("released-a"), SlurmNode("released-b")
STRANGER = spec(cpus_per_task=64)
OURS = spec(
    cpus_per_task=64,
    tasks=2,
    nodes_min=2,
    nodes_max=2,
    required_nodes=(A, B),
    priority=TOP_PRIORITY,
)


@pytest.fixture
async def queue(client: SlurmClient, submit: Submit) -> AsyncIterator[tuple[JobId, JobId]]:
    """A stranger's job that has waited longer, and ours."""
    for name in (A, B):
        await slurm_nodes.create(client, replace(SHAPE, name=name))
        await slurm_nodes.drain(client, name, "test")
    stranger, ours = await submit(STRANGER), await submit(OURS)
    for job_id in (stranger, ours):
        await in_phase(client, job_id, JobPhase.WAITING)
    yield stranger, ours
    for job_id in (stranger, ours):
        await jobs.cancel(client, job_id)
        await in_phase(client, job_id, JobPhase.ENDED)
    for name in (A, B):
        await slurm_nodes.delete(client, name)


async def test_released_one_by_one_they_go_to_whoever_waits_behind(
    client: SlurmClient, queue: tuple[JobId, JobId]
) -> None:
    """Why they are released together; once Slurm keeps nodes for a job whose others are drained, this fails."""
    stranger, ours = queue

    await slurm_nodes.undrain(client, [A])

    assert (A,) == (await in_phase(client, stranger, JobPhase.RUNNING)).nodes
    await slurm_nodes.undrain(client, [B])
    await in_phase(client, ours, JobPhase.WAITING)


async def test_released_together_they_go_to_the_first_in_the_queue(
    client: SlurmClient, queue: tuple[JobId, JobId]
) -> None:
    stranger, ours = queue

    await slurm_nodes.undrain(client, [A, B])

    assert {A, B} == {*(await in_phase(client, ours, JobPhase.RUNNING)).nodes}
    await in_phase(client, stranger, JobPhase.WAITING)
