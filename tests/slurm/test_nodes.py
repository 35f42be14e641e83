"""Nodes against the real slurmrestd, its odd answers included."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes.spec import Publishing
from bridge.slurm import encode, jobs, nodes
from bridge.slurm.nodes import Creation, Deletion
from slurmclient.errors import Declined, TargetNotFound
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, SlurmNodeSpec
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import ClusterId, KubeNode, SlurmNode
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec

NOPE = SlurmNode("nope")
SPEC = SlurmNodeSpec(
    name=SlurmNode("worker-1.example"),
    address="127.0.0.1",  # slurmctld looks up its name; without a network another one takes it 10 s
    cpus=6,
    memory_mib=4000,
    features=("slurm-bridge", "worker-1", "topology.kubernetes.io/zone=eu-1a"),
    gres="gpu:a100:2",
    gres_conf="count=2,name=gpu,type=a100,file=gpu-0,file=gpu-1",
    weight=7,
)


@pytest.fixture
async def node(client: SlurmClient) -> AsyncIterator[SlurmNode]:
    """A node of our own."""
    assert Creation.CREATED is await nodes.create(client, SPEC)
    yield SPEC.name
    await nodes.delete(client, SPEC.name)


async def test_a_new_node_is_idle_and_as_it_was_described(
    client: SlurmClient, node: SlurmNode
) -> None:
    facts = await nodes.node(client, node)

    assert {"IDLE", "EXTERNAL", "DYNAMIC_NORM"} == facts.states
    assert (6, 4000, "127.0.0.1") == (facts.cpus, facts.memory_mib, facts.address)
    assert ("gpu:a100:2", SPEC.features, "") == (facts.gres, facts.features, facts.reason)


async def test_a_node_without_gpus_and_features_can_be_created(client: SlurmClient) -> None:
    plain = SlurmNodeSpec(name=SlurmNode("plain"), address="127.0.0.1", cpus=1, memory_mib=100)

    assert Creation.CREATED is await nodes.create(client, plain)
    assert Deletion.DELETED is await nodes.delete(client, plain.name)


async def test_the_list_has_every_node(client: SlurmClient, node: SlurmNode) -> None:
    names = {facts.name for facts in await nodes.listing(client)}

    assert {node, "node-0", "node-1", "node-2", "node-3"} <= names


async def test_an_unknown_node_is_http_200_with_error_0(client: SlurmClient) -> None:
    with pytest.raises(TargetNotFound, match="no node nope"):
        await nodes.node(client, NOPE)


async def test_updating_an_unknown_node_is_not_found(client: SlurmClient) -> None:
    with pytest.raises(TargetNotFound, match="no node nope"):
        await nodes.drain(client, NOPE, "gone")


async def test_a_node_of_that_name_exists_already(client: SlurmClient, node: SlurmNode) -> None:
    assert Creation.EXISTS is await nodes.create(client, replace(SPEC, cpus=9))
    assert 6 == (await nodes.node(client, node)).cpus


async def test_gres_without_files_is_refused(client: SlurmClient) -> None:
    with pytest.raises(Declined) as error:
        await nodes.create(client, replace(SPEC, name=NOPE, gres_conf=""))

    assert (500, 22) == (error.value.status, error.value.error_number)


async def test_a_node_has_several_kinds_of_gres_and_jobs_get_each(
    client: SlurmClient, submit: Submit
) -> None:
    """As the registration describes one with MIG slices beside a whole GPU."""
    extended = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 3}
    publishing = Publishing(
        cluster=ClusterId("c"),
        gpu_resources={"nvidia.com/gpu": "gpu:a100", "nvidia.com/mig-1g.10gb": "gpu:1g.10gb"},
    )
    kube_node = KubeNodeFacts(
        name=KubeNode("mixed"),
        uid="1",
        internal_ip="127.0.0.1",
        allocatable=Allocatable(milli_cpu=4000, memory_bytes=2**32, extended=extended),
    )
    wanted = replace(
        node_spec.spec(kube_node, Demand(), publishing), features=("slurm-bridge", "mixed")
    )
    assert Creation.CREATED is await nodes.create(client, wanted)
    try:
        facts = await nodes.node(client, wanted.name)
        assert wanted.gres == gres.plain(facts.gres)

        on_it = spec(constraints="mixed")
        slices = await submit(replace(on_it, gres_per_node="gres/gpu:1g.10gb:2"))
        whole = await submit(replace(on_it, gres_per_node="gres/gpu:a100:1"))
        for job in (slices, whole):
            await in_phase(client, job, JobPhase.RUNNING)
        too_many = await submit(replace(on_it, gres_per_node="gres/gpu:1g.10gb:2"))
        assert JobPhase.WAITING is (await in_phase(client, too_many, JobPhase.WAITING)).phase
        for job in (slices, whole, too_many):
            await jobs.cancel(client, job)
    finally:
        await nodes.delete(client, wanted.name)


async def test_a_topology_that_is_not_there_is_refused(client: SlurmClient) -> None:
    with pytest.raises(Declined) as error:
        await nodes.create(client, replace(SPEC, name=NOPE, topology="nope:s1"))

    assert 2178 == error.value.error_number


async def test_a_node_conf_slurm_does_not_understand_is_rejected_and_not_unavailability(
    client: SlurmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "node_conf", lambda _: "NotAKey=1")

    with pytest.raises(Declined) as error:
        await nodes.create(client, SPEC)

    assert (500, -1) == (error.value.status, error.value.error_number)


async def test_draining_keeps_jobs_out_and_undraining_lets_them_in(
    client: SlurmClient, node: SlurmNode, submit: Submit
) -> None:
    await nodes.drain(client, node, "cordoned: kernel update")
    facts = await nodes.node(client, node)
    assert "DRAIN" in facts.states
    assert "cordoned: kernel update" == facts.reason

    waiting = await submit(spec(constraints="worker-1"))
    await nodes.undrain(client, [node])
    await nodes.undrain(client, [node])  # fine where it is not drained

    assert (node,) == (await in_phase(client, waiting, JobPhase.RUNNING)).nodes
    assert "" == (await nodes.node(client, node)).reason


async def test_a_node_that_is_down_has_ended_its_jobs_and_can_be_resumed(
    client: SlurmClient, node: SlurmNode, submit: Submit
) -> None:
    running = await in_phase(client, await submit(spec(constraints="worker-1")), JobPhase.RUNNING)

    await nodes.down(client, node, "kubelet lost")

    job = await in_phase(client, running.id, JobPhase.ENDED)
    assert JobEnd.NODE_FAIL is job.end
    await nodes.resume(client, node)
    assert "IDLE" in (await nodes.node(client, node)).states


async def test_resuming_a_node_that_is_up_is_refused(client: SlurmClient, node: SlurmNode) -> None:
    with pytest.raises(Declined) as error:
        await nodes.resume(client, node)

    assert 2180 == error.value.error_number


async def test_features_and_address_are_replaced(client: SlurmClient, node: SlurmNode) -> None:
    await nodes.set_features(client, node, ["slurm-bridge", "disk=ssd"])
    await nodes.set_address(client, node, "127.0.0.3")

    facts = await nodes.node(client, node)
    assert (("slurm-bridge", "disk=ssd"), "127.0.0.3") == (facts.features, facts.address)


async def test_no_features_at_all_are_replaced_too(client: SlurmClient, node: SlurmNode) -> None:
    await nodes.set_features(client, node, [])

    assert () == (await nodes.node(client, node)).features


async def test_a_busy_node_is_not_deleted(
    client: SlurmClient, node: SlurmNode, submit: Submit
) -> None:
    running = await in_phase(client, await submit(spec(constraints="worker-1")), JobPhase.RUNNING)

    assert Deletion.BUSY is await nodes.delete(client, node)
    await jobs.cancel(client, running.id)
    assert Deletion.DELETED is await nodes.delete(client, node)
    assert Deletion.NO_SUCH_NODE is await nodes.delete(client, node)


async def test_a_node_that_does_not_respond_shows_it_and_only_creating_it_anew_helps(
    client: SlurmClient, node: SlurmNode
) -> None:
    """What a signal to one of its jobs does, ten seconds later."""
    await nodes._update(client, "test", node, {"state": ["NOT_RESPONDING"]})

    assert "NOT_RESPONDING" in (await nodes.node(client, node)).states
    with pytest.raises(Declined):
        await nodes.resume(client, node)
    assert Deletion.DELETED is await nodes.delete(client, node)
    assert Creation.CREATED is await nodes.create(client, SPEC)
    assert "NOT_RESPONDING" not in (await nodes.node(client, node)).states


async def test_a_list_that_would_repeat_the_last_one_is_not_sent(
    client: SlurmClient, node: SlurmNode
) -> None:
    listed, sliced = (
        await nodes.refresh(client, None),
        await nodes.refresh_in_slices(client, None),
    )
    assert listed.nodes == sliced.nodes  # their times may differ: a list is as of its own second
    assert listed.as_of <= sliced.as_of
    async with asyncio.timeout(30):  # the node was created in the second of the first list
        while (again := await nodes.refresh(client, listed)) is not listed:
            listed = again
            await asyncio.sleep(0.1)
    assert await nodes.refresh_in_slices(client, listed) is listed

    for number in range(20):
        reason = f"look {number}"
        await nodes.drain(client, node, reason)
        listed = await nodes.refresh(client, listed)
        reasons = {facts.name: facts.reason for facts in listed.nodes}
        assert reason == reasons[node]
