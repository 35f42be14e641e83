"""What Slurm makes of another number of tasks: a waiting job gets as much as if it had been submitted so."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from bridge.domain.model.identities import FirstSubmission
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import Changes, PlaceholderSpec
from bridge.domain.request import revision
from bridge.slurm import jobs
from sandbox.client import Sandbox
from slurmclient.errors import Declined
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import JOB_FINISHED, JOB_NOT_PENDING
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import USER, identity, in_phase, spec

FROZEN = FirstSubmission(requester="a", rule="r", user=USER, account="")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Jobs that wait until they are let go."""

    client: SlurmClient
    submit: Submit
    slurm: Sandbox

    async def resized(self, before: PlaceholderSpec, now: PlaceholderSpec) -> SlurmJob:
        """The job as it runs after the change."""
        job_id = await self.submit(before)
        waits = await in_phase(self.client, job_id, JobPhase.WAITING)
        changes = revision.changes(now, waits)
        assert changes is not None
        for component, change in changes.items():
            await jobs.update_as_user(self.client, waits, change, component=component)
        changed = await in_phase(self.client, job_id, JobPhase.WAITING)
        assert waits.submitted_at == changed.submitted_at
        self.slurm.run("scontrol", "release", *map(str, changed.ids))
        runs = await in_phase(self.client, job_id, JobPhase.RUNNING)
        await jobs.cancel(self.client, job_id)
        return runs


@pytest.fixture
def waiting(client: SlurmClient, submit: Submit, slurm: Sandbox) -> Waiting:
    return Waiting(client, submit, slurm)


def gang(tasks: int, **changes: Any) -> PlaceholderSpec:
    """Two CPUs and a GPU each, on as many nodes as Slurm likes; held until somebody lets it go."""
    own = spec(replace(identity(), frozen=FROZEN), hold=True)
    return replace(
        own,
        tasks=tasks,
        cpus_per_task=2,
        memory_mib_per_node=None,
        memory_mib_per_cpu=100,
        gres_per_task="gres/gpu:1",
        nodes_min=None,
        nodes_max=None,
        **changes,
    )


@pytest.mark.parametrize(("before", "now"), [(3, 5), (5, 2), (1, 9)])
async def test_it_gets_what_a_new_one_would(waiting: Waiting, before: int, now: int) -> None:
    fresh = await waiting.resized(gang(now), gang(now))

    changed = await waiting.resized(gang(before), gang(now))

    assert now == changed.tasks
    assert fresh.shares == changed.shares
    assert now <= sum(share.tasks for share in changed.shares)


async def test_a_component_grows_beside_the_others(waiting: Waiting) -> None:
    launcher = replace(gang(1), cpus_per_task=1, gres_per_task="")
    two, four = (replace(launcher, also=(gang(tasks),)) for tasks in (2, 4))

    runs = await waiting.resized(two, four)

    assert [1, 4] == [part.tasks for part in runs.parts]
    assert [[1], [4]] == [[share.tasks for share in part.shares] for part in runs.parts]


async def test_one_that_runs_or_is_over_is_refused_by_number(
    client: SlurmClient, submit: Submit
) -> None:
    job_id = await submit(replace(gang(2), hold=False))
    runs = await in_phase(client, job_id, JobPhase.RUNNING)
    with pytest.raises(Declined) as refusal:
        await jobs.update_as_user(client, runs, Changes(tasks=3, cpus=6, memory_mib_per_cpu=100))
    assert JOB_NOT_PENDING == refusal.value.error_number
    await jobs.cancel(client, job_id)
    with pytest.raises(Declined) as refusal:
        await jobs.update_as_user(client, runs, Changes(tasks=3, cpus=6, memory_mib_per_cpu=100))
    assert JOB_FINISHED == refusal.value.error_number
