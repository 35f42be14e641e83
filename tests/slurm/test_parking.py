"""Nodes that come into Slurm without being handed out, before a real slurmctld with jobs that wait for them."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes import parking
from bridge.domain.nodes.actions import NodeAction, RenewPartitions, SetFeatures
from bridge.domain.request.restoration import TOP_PRIORITY
from bridge.slurm import jobs
from bridge.slurm import nodes as slurm_nodes
from bridge.slurm.nodes import Creation, Deletion
from slurmclient.errors import Declined
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, SlurmNode
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import CLUSTER, in_phase, spec

PARTITION = "slurm-bridge"
WANTED = SlurmNodeSpec(
    name=SlurmNode("parked-1.example"),
    address="127.0.0.1",
    cpus=64,
    memory_mib=4000,
    features=(names.BRIDGED_FEATURE, nodes.cluster_feature(CLUSTER), "gpu", "zone=a"),
)
FOR_IT = spec(cpus_per_task=64)
"""Larger than any other node there."""
PARKED = parking.parked_spec(WANTED, CLUSTER)


@pytest.fixture
async def waiting(client: SlurmClient, submit: Submit) -> AsyncIterator[SlurmJob]:
    """A stranger's job that no node but the new one can take; where there is none, Slurm would refuse it."""
    elsewhere = replace(WANTED, name=SlurmNode("elsewhere"))
    await slurm_nodes.create(client, elsewhere)
    await slurm_nodes.drain(client, elsewhere.name, "test")
    yield await in_phase(client, await submit(FOR_IT), JobPhase.WAITING)
    await slurm_nodes.delete(client, elsewhere.name)


@pytest.fixture
async def parked(client: SlurmClient, waiting: SlurmJob) -> AsyncIterator[SlurmNode]:
    assert waiting.phase is JobPhase.WAITING
    await slurm_nodes.create(client, PARKED)
    yield PARKED.name
    await _free(client, waiting)
    await slurm_nodes.delete(client, PARKED.name)


async def _free(client: SlurmClient, waiting: SlurmJob) -> None:
    await jobs.cancel(client, waiting.id)
    await in_phase(client, waiting.id, JobPhase.ENDED)


async def passes(client: SlurmClient, submit: Submit) -> None:
    """The scheduler has looked at all that waits: it has started what came last, of the least priority."""
    last = await submit(spec(cpus_per_task=1, nice=1000))
    await in_phase(client, last, JobPhase.RUNNING)


async def carry_out(client: SlurmClient, action: NodeAction) -> None:
    match action:
        case SetFeatures(slurm_node=name, features=features):
            await slurm_nodes.set_features(client, name, features)
        case RenewPartitions(spare=spare):
            await slurm_nodes.create(client, spare)
            await slurm_nodes.delete(client, spare.name)
        case _:
            raise AssertionError(action)


async def phase(client: SlurmClient, job: SlurmJob) -> JobPhase:
    found = await jobs.job(client, job.id)
    assert isinstance(found, SlurmJob)
    return found.phase


async def test_a_parked_node_is_nobodys(
    client: SlurmClient, submit: Submit, waiting: SlurmJob, parked: SlurmNode
) -> None:
    await passes(client, submit)

    assert JobPhase.WAITING is await phase(client, waiting)
    assert () == (await slurm_nodes.node(client, parked)).partitions
    with pytest.raises(Declined):
        await submit(replace(FOR_IT, required_nodes=(parked,)))


async def test_a_node_created_with_its_features_is_given_away_at_once(
    client: SlurmClient, waiting: SlurmJob
) -> None:
    """Why nodes are parked at all; once Slurm can create them drained, this fails."""
    drained = replace(WANTED, name=SlurmNode("given-away"))
    await slurm_nodes.create(client, drained)

    await in_phase(client, waiting.id, JobPhase.RUNNING)

    await _free(client, waiting)
    await slurm_nodes.delete(client, drained.name)


async def test_it_is_drained_at_every_moment_at_which_it_is_in_a_partition(
    client: SlurmClient, submit: Submit, waiting: SlurmJob, parked: SlurmNode
) -> None:
    await slurm_nodes.drain(client, parked, "test")
    for action in parking.leave(WANTED, CLUSTER):
        await carry_out(client, action)
        await passes(client, submit)
        node = await slurm_nodes.node(client, parked)
        assert "DRAIN" in node.states
    assert JobPhase.WAITING is await phase(client, waiting)

    node = await slurm_nodes.node(client, parked)
    assert (WANTED.features, (PARTITION,)) == (node.features, node.partitions)
    # Ours waits there before the drain is taken back, and comes first.
    ours = await submit(replace(FOR_IT, required_nodes=(parked,), priority=TOP_PRIORITY))
    await slurm_nodes.undrain(client, [parked])
    assert (parked,) == (await in_phase(client, ours, JobPhase.RUNNING)).nodes
    assert JobPhase.WAITING is await phase(client, waiting)
    await jobs.cancel(client, ours)
    await in_phase(client, ours, JobPhase.ENDED)


async def test_whoever_creates_or_deletes_a_node_it_joins_drained(
    client: SlurmClient, submit: Submit, waiting: SlurmJob, parked: SlurmNode
) -> None:
    """So our own spare node may come later, or never."""
    await slurm_nodes.drain(client, parked, "test")
    features, *_ = parking.leave(WANTED, CLUSTER)
    await carry_out(client, features)
    assert () == (await slurm_nodes.node(client, parked)).partitions

    await slurm_nodes.create(client, replace(PARKED, name=SlurmNode("another")))

    await passes(client, submit)
    assert (PARTITION,) == (await slurm_nodes.node(client, parked)).partitions
    assert JobPhase.WAITING is await phase(client, waiting)
    await slurm_nodes.delete(client, SlurmNode("another"))


async def test_the_longest_name_of_a_cluster_makes_a_spare_node_too(client: SlurmClient) -> None:
    _, renew, _ = parking.leave(WANTED, ClusterId("Z" * 61 + "_1"))
    assert isinstance(renew, RenewPartitions)

    assert Creation.CREATED is await slurm_nodes.create(client, renew.spare)
    assert Deletion.DELETED is await slurm_nodes.delete(client, renew.spare.name)
