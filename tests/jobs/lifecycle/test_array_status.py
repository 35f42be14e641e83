"""How an array's tasks are counted and named, also once Slurm has forgotten some of them."""

import pytest

from bridge.domain.model.batch import ArrayTally
from bridge.domain.model.jobs import JobPhase
from jobs.lifecycle import table
from jobs.lifecycle.actions import Report
from jobs.objects.status import ArrayTasks, SlurmJobStatus
from tests.jobs.lifecycle.situations import POLICY, batch_job, facts, slurm_job


def told(tally: ArrayTally, before: ArrayTasks | None = None) -> ArrayTasks:
    """What the status says of a running array, after it said `before`."""
    status = SlurmJobStatus(phase="Running", job_id=7, sluid="s7", attempt=1, array=before)
    job = slurm_job(status=status, options={"array": "0-1"})
    found = facts(job, batch_job(JobPhase.RUNNING, array=tally))
    (action,) = table.decide(found, POLICY).actions
    assert isinstance(action, Report)
    assert action.status.array is not None
    return action.status.array


def test_a_failed_task_that_slurm_has_forgotten_stays_named() -> None:
    first = told(ArrayTally(running=90, succeeded=8, failed=(3, 17)))
    later = told(ArrayTally(running=50, succeeded=10, failed=(60,)), first)

    assert (100, 2, "3,17") == (first.total, first.failed, first.failed_tasks)
    assert (100, 3, "3,17,60") == (later.total, later.failed, later.failed_tasks)
    assert (50, 47) == (later.running, later.succeeded)


@pytest.mark.parametrize("failed", [range(0, 4_000_000, 9_973), range(1, 2_000, 2)])
def test_names_that_are_cut_off_are_no_names_and_the_count_stays(failed: range) -> None:
    first = told(ArrayTally(running=1, failed=tuple(failed)))

    later = told(ArrayTally(running=1), first)

    assert (len(failed), len(failed)) == (first.failed, later.failed)
    assert (0, 0) == (first.succeeded, later.succeeded)
    *named, cut = later.failed_tasks.split(",")
    assert "…" in cut
    assert set(map(int, named)) < set(failed)
