"""What Slurm granted a placeholder is read, and brings a lost one back where it was, by a real slurmctld."""

from dataclasses import replace

from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.request import restoration
from bridge.slurm import jobs
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import USER, in_phase, spec


async def test_what_slurm_granted_is_read_of_a_running_job(
    client: SlurmClient, submit: Submit
) -> None:
    asked = spec(cpus_per_task=2, memory_mib_per_node=200, gres_per_node="gres/gpu:1")
    waiting = await jobs.job(client, await submit(replace(asked, hold=True)))
    running = await in_phase(client, await submit(asked), JobPhase.RUNNING)

    assert isinstance(waiting, SlurmJob)
    assert waiting.grant is None
    assert running.started_at is not None
    assert (
        Grant(
            name="train",
            user=USER,
            group=USER,
            partition="slurm-bridge",
            cpus_per_task=2,
            memory_mib_per_node=200,
            gres_per_node="gres/gpu:1",
            started_s=int(running.started_at.timestamp()),
            time_limit_min=60,
        )
        == running.grant
    )


def restored(lost: SlurmJob) -> PlaceholderSpec:
    """What is asked for in the place of one that has just started."""
    assert lost.grant is not None
    assert lost.started_at is not None
    return restoration.placeholder(
        lost.identity,
        lost.grant,
        lost="lost",
        pods=lost.identity.pods,
        nodes=lost.nodes,
        record=None,
        now=lost.started_at,
    )


async def test_what_a_gang_was_granted_says_where_its_tasks_are_and_brings_them_back_there(
    client: SlurmClient, submit: Submit
) -> None:
    """One CPU on the first node is somebody else's at first: so the tasks are spread in no even way."""
    other = await submit(spec(cpus_per_task=3, required_nodes=(SlurmNode("node-0"),)))
    await in_phase(client, other, JobPhase.RUNNING)
    asked = replace(
        spec(tasks=5, cpus_per_task=2),
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
        required_nodes=(SlurmNode("node-0"), SlurmNode("node-2")),
        nodes_min=2,
        nodes_max=2,
    )
    first = await submit(asked)
    before = await in_phase(client, first, JobPhase.RUNNING)
    assert before.grant is not None
    assert {"node-0": 2, "node-2": 3} == dict(before.grant.tasks_on)
    for job_id in (first, other):
        await jobs.cancel(client, job_id)

    after = await in_phase(client, await submit(restored(before)), JobPhase.RUNNING)

    assert before.shares == after.shares
    assert before.nodes == after.nodes
    assert after.grant is not None
    assert before.grant.tasks_on == after.grant.tasks_on


async def test_both_sizes_of_a_lost_gang_run_where_they_ran(
    client: SlurmClient, submit: Submit
) -> None:
    launcher = spec(memory_mib_per_node=100, required_nodes=(SlurmNode("node-3"),))
    workers = replace(
        launcher,
        tasks=3,
        nodes_min=2,
        nodes_max=2,
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
        required_nodes=(SlurmNode("node-2"), SlurmNode("node-0")),
    )
    first = await submit(replace(launcher, also=(workers,)))
    before = await in_phase(client, first, JobPhase.RUNNING)
    assert before.grant is not None
    await jobs.cancel(client, first)

    after = await in_phase(client, await submit(restored(before)), JobPhase.RUNNING)

    assert before.parts == after.parts
    assert after.grant is not None
    assert before.grant.tasks_on == after.grant.tasks_on == {"node-3": 1}
    (was,), (now,) = before.grant.also, after.grant.also
    assert was.tasks_on == now.tasks_on == {"node-0": 2, "node-2": 1}


async def test_a_whole_node_was_granted_with_all_its_cpus(
    client: SlurmClient, submit: Submit
) -> None:
    running = await in_phase(client, await submit(spec(exclusive=True)), JobPhase.RUNNING)

    assert running.grant is not None
    assert 8 == running.grant.cpus_per_task
