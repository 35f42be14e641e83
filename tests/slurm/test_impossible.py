"""Jobs that Slurm takes and ends as impossible, and that we see as much before they are submitted."""

from dataclasses import replace

import pytest

from bridge.domain.lifecycle import reasons
from bridge.domain.model.devices import room
from bridge.domain.model.devices.room import Task
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import nodes
from slurmclient.errors import Declined
from slurmruntime.slurm.client import SlurmClient
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import identity, in_phase, spec

PARTITION = "slurm-bridge"


@pytest.mark.parametrize(
    ("task", "is_possible"),
    [
        (Task(cpus=1, memory_mib=100, gres="gres/gpu:1"), True),
        (Task(cpus=1, memory_mib=100, gres="gres/gpu:99"), False),
        (Task(cpus=1, memory_mib=100, gres="gres/gpu:nosuch:1"), False),
        (Task(cpus=1, memory_mib=10**7), False),
        (Task(cpus=8, memory_mib=100), True),
        (Task(cpus=9, memory_mib=100), False),
    ],
    ids=["few GPUs", "too many GPUs", "a type that no node has", "memory", "all CPUs", "CPUs"],
)
async def test_we_judge_by_the_largest_node_as_slurm_does(
    client: SlurmClient, submit: Submit, task: Task, *, is_possible: bool
) -> None:
    task = replace(task, partitions=(PARTITION,))
    shapes = {room.shape(each) for each in await nodes.listing(client)}
    judged = len(room.too_small(task, shapes)) < len(shapes)
    asked = spec(
        identity(),
        cpus_per_task=task.cpus,
        memory_mib_per_node=task.memory_mib,
        gres_per_node=task.gres,
        constraints="",
        partition=PARTITION,
    )
    try:
        job_id = await submit(asked)
    except Declined:
        assert (False, False) == (is_possible, judged)
        return
    phase = JobPhase.RUNNING if is_possible else JobPhase.ENDED
    job = await in_phase(client, job_id, phase)

    assert (is_possible, is_possible) == (judged, not job.is_impossible)
    if not is_possible:
        assert (JobEnd.FAILED, "BadConstraints") == (job.end, job.reason)
        assert "no node can ever satisfy" in reasons.why_impossible(job)
