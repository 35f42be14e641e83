"""How an array's tasks are counted and named, also once Slurm has forgotten some of them."""

import pytest

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.batch import ArrayTally
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmjobs.lifecycle import table
from slurmjobs.lifecycle.actions import JobDecision, Report
from slurmjobs.lifecycle.situation import Archive, ArchiveFinding
from slurmjobs.objects.status import ArrayTasks, SlurmJobStatus
from slurmjobs.reconcile import archive as archiving
from tests.slurmjobs.lifecycle.situations import POLICY, batch_job, facts, slurm_job


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
    later = told(ArrayTally(running=50, succeeded=39, failed=(60,)), first)

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


def test_a_failure_among_those_that_are_named_is_a_new_one() -> None:
    first = told(ArrayTally(running=10, failed=tuple(range(10, 2_000, 2))))

    later = told(ArrayTally(running=9, failed=(3,)), first)

    assert first.failed + 1 == later.failed


class TestVanished:
    """Tasks that Slurm forgot while nobody looked."""

    FIRST = told(ArrayTally(running=60, waiting=20, succeeded=18, failed=(3, 17)))

    def test_they_are_neither_failed_nor_succeeded(self) -> None:
        later = told(ArrayTally(running=10, succeeded=30), self.FIRST)

        assert (100, 10, 0) == (later.total, later.running, later.pending)
        assert (48, 2, "3,17", 40) == (
            later.succeeded,
            later.failed,
            later.failed_tasks,
            later.unknown,
        )

    def test_they_stay_so_once_more_is_forgotten(self) -> None:
        later = told(ArrayTally(running=10, succeeded=30), self.FIRST)
        last = told(ArrayTally(succeeded=10), later)

        assert (58, 2, 40) == (last.succeeded, last.failed, last.unknown)

    def test_those_that_the_reader_knows_of_are_counted_once(self) -> None:
        tally = ArrayTally(running=10, succeeded=48, failed=(3, 17), unknown=40, is_sure=False)
        later = told(tally, told(tally, self.FIRST))

        assert (48, 2, 40) == (later.succeeded, later.failed, later.unknown)


def ended(tally: ArrayTally, archive: Archive | None, before: ArrayTasks | None) -> JobDecision:
    status = SlurmJobStatus(phase="Running", job_id=7, sluid="s7", attempt=1, array=before)
    job = slurm_job(status=status, options={"array": "0-99"})
    found = facts(job, batch_job(JobPhase.ENDED, array=tally), archive=archive)
    assert table.needs_archive(found) == (archive is not None)
    return table.decide(found, POLICY)


def status_of(decision: JobDecision) -> SlurmJobStatus:
    (action,) = decision.actions
    assert isinstance(action, Report)
    return action.status


class TestTheEndOfOneThatLacksTasks:
    """Slurm knows 30 of its tasks; 20 had been told of before."""

    BEFORE = ArrayTasks(total=100, running=80, succeeded=18, failed=2, failed_tasks="3,17")
    TALLY = ArrayTally(succeeded=30)

    def test_it_waits_for_slurmdbd(self) -> None:
        assert (Wait(),) == ended(self.TALLY, archiving.ASKING, self.BEFORE).actions

    def test_slurmdbd_says_how_they_ended_and_the_rest_never_began(self) -> None:
        tally = ArrayTally(succeeded=90, failed=(3, 17, 40), is_record=True)
        record = batch_job(JobPhase.ENDED, end=JobEnd.FAILED, exit_code=4, array=tally)
        found = Archive(finding=ArchiveFinding.ENDED, job=record)

        status = status_of(ended(self.TALLY, found, self.BEFORE))

        assert ("Failed", "NonZeroExit", 4) == (status.phase, status.reason, status.exit_code)
        tasks = ArrayTasks(total=100, succeeded=90, failed=10, failed_tasks="3,17,40,…")
        assert tasks == status.array
        assert "10 of its tasks did not end well" in status.message

    @pytest.mark.parametrize(
        "finding", [ArchiveFinding.NOTHING, ArchiveFinding.UNFINISHED, ArchiveFinding.UNKNOWN]
    )
    def test_what_nobody_knows_is_told(self, finding: ArchiveFinding) -> None:
        before = ArrayTasks(total=100, running=82, succeeded=18)

        status = status_of(ended(self.TALLY, Archive(finding=finding), before))

        assert ("Failed", "TasksUnknown") == (status.phase, status.reason)
        assert "how 52 of its tasks ended is unknown" in status.message

    def test_one_that_knows_all_asks_nobody(self) -> None:
        status = status_of(ended(ArrayTally(succeeded=82), None, self.BEFORE))

        assert ("Failed", "NonZeroExit") == (status.phase, status.reason)
        assert "2 of its tasks did not end well" in status.message

    def test_a_reader_that_is_not_sure_is_not_believed(self) -> None:
        tally = ArrayTally(succeeded=99, failed=(5,), is_sure=False)

        assert (Wait(),) == ended(tally, archiving.ASKING, None).actions
