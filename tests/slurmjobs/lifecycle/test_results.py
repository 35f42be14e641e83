"""A SlurmJob with results has ended when they are copied: what is decided and told on the way."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmjobs.lifecycle import status_events, table, why
from slurmjobs.lifecycle.actions import Expire, Report
from slurmjobs.lifecycle.situation import Archive, ArchiveFinding, Collection, CopyState, JobFacts
from slurmjobs.lifecycle.table import JobRow
from slurmjobs.objects.results import JobResult, ResultTarget
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import JobOutput
from slurmjobs.objects.status import SlurmJobStatus
from tests.slurmjobs.lifecycle.situations import NOW, POLICY, batch_job, facts, slurm_job

WANTED: dict[str, Any] = {
    "output": JobOutput(claim_name="scratch", cluster_path="/scratch"),
    "results": (JobResult(source="a", to=ResultTarget(claim_name="kept")),),
}
RUNNING = SlurmJobStatus(phase="Running", job_id=7, sluid="s7", attempt=1)
STARTED = NOW - timedelta(minutes=10)
DONE, GIVEN_UP = (
    Collection(state=CopyState.DONE),
    Collection(state=CopyState.GIVEN_UP, text="full"),
)


def written(given: JobFacts) -> SlurmJobStatus:
    (action,) = table.decide(given, POLICY).actions
    assert isinstance(action, Report)
    return action.status


def over(end: JobEnd = JobEnd.COMPLETED, **changes: Any) -> Any:
    return batch_job(JobPhase.ENDED, end=end, started_at=STARTED, **changes)


def collecting(end: JobEnd = JobEnd.COMPLETED, **spec: Any) -> SlurmJobObject:
    """One whose job has ended, as the status then says."""
    job = slurm_job(status=RUNNING, **WANTED, **spec)
    status = written(facts(job, over(end)))
    return slurm_job(status=status, **WANTED, **spec)


def holding(status: SlurmJobStatus) -> set[str]:
    return {condition.type for condition in status.conditions if condition.status == "True"}


@pytest.mark.parametrize("end", [JobEnd.COMPLETED, JobEnd.FAILED, JobEnd.TIMEOUT])
def test_the_end_of_the_job_is_not_that_of_the_slurm_job(end: JobEnd) -> None:
    status = collecting(end).status

    assert ("Running", "Collecting", NOW) == (status.phase, status.reason, status.end_time)
    assert status.results is not None
    assert ("Collecting", end is JobEnd.COMPLETED) == (
        status.results.phase,
        status.results.ended.phase == "Succeeded",
    )
    assert {"Submitted"} == holding(status)
    assert "its results are being copied" in status.message


def test_one_that_never_began_has_no_results() -> None:
    job = slurm_job(status=RUNNING, **WANTED)
    status = written(facts(job, batch_job(JobPhase.ENDED, end=JobEnd.CANCELLED)))

    assert ("Failed", "Cancelled", None) == (status.phase, status.reason, status.results)


def test_it_ends_as_its_job_did_once_they_are_copied() -> None:
    good = written(facts(collecting(), over(), collection=DONE))
    bad = written(facts(collecting(JobEnd.FAILED), over(JobEnd.FAILED), collection=DONE))

    assert ("Succeeded", "Succeeded") == (good.phase, good.reason)
    assert {"Submitted", "Complete", "ResultsCollected"} == holding(good)
    assert ("Failed", "NonZeroExit") == (bad.phase, bad.reason)
    assert {"Submitted", "Failed", "ResultsCollected"} == holding(bad)


def test_without_its_results_it_has_failed() -> None:
    good = written(facts(collecting(), over(), collection=GIVEN_UP))
    bad = written(facts(collecting(JobEnd.FAILED), over(JobEnd.FAILED), collection=GIVEN_UP))

    assert ("Failed", "ResultsNotCollected", 0) == (good.phase, good.reason, good.exit_code)
    assert good.message.endswith("; its results were not copied: full")
    assert ("Failed", "NonZeroExit") == (bad.phase, bad.reason)
    assert {"Submitted", "Failed"} == holding(good) == holding(bad)


@pytest.mark.parametrize(
    "archive",
    [None, *(Archive(finding=each) for each in ArchiveFinding if each is not ArchiveFinding.ENDED)],
)
def test_slurm_may_forget_the_job_while_they_are_copied(archive: Archive | None) -> None:
    """The status says all that is needed, so a copy that takes hours loses no job."""
    given = facts(collecting(), archive=archive, since=NOW - timedelta(hours=1))

    assert not table.needs_archive(given)
    assert (Wait(),) == table.decide(given, POLICY).actions
    assert "Succeeded" == written(replace(given, collection=DONE)).phase


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING])
def test_a_requeued_job_runs_again_and_what_was_copied_does_not_count(phase: JobPhase) -> None:
    status = written(facts(collecting(), batch_job(phase, restarts=1), collection=DONE))

    assert ("Pending" if phase is JobPhase.WAITING else "Running") == status.phase
    assert None is status.results
    assert None is status.end_time


def test_suspending_it_comes_too_late() -> None:
    job = collecting(suspend=True)

    assert JobRow.COLLECTING is table.row_of(job)
    assert "Succeeded" == written(facts(job, over(), collection=DONE)).phase


def test_deleting_it_does_not_wait_for_them() -> None:
    job = collecting()
    assert JobRow.DELETING is table.row_of(slurm_job(status=job.status, deleted=True, **WANTED))


def test_what_keeps_them_from_being_copied_is_told_once() -> None:
    job = collecting()
    stuck = Collection(state=CopyState.NOT_YET, text="quota exceeded")
    status = written(facts(job, over(), collection=stuck))
    after = slurm_job(status=status, **WANTED)

    assert status.message.endswith("its results are being copied: quota exceeded")
    assert (Wait(),) == table.decide(facts(after, over(), collection=stuck), POLICY).actions
    told = status_events.of(job.status, status)
    assert told is not None
    assert ("Collect", True) == (told.action, told.is_warning)
    assert None is status_events.of(RUNNING, job.status)
    diagnosis = why.answer(after, now=NOW)
    assert ("has ended", status.message) == (diagnosis.state, diagnosis.why)


def test_the_time_to_live_begins_when_they_are_copied() -> None:
    later = NOW + timedelta(hours=1)
    status = written(facts(collecting(), over(), collection=DONE, now=later))
    job = slurm_job(status=status, ttl_seconds_after_finished=60, **WANTED)

    assert (Wait(),) == table.decide(facts(job, over(), now=later), POLICY).actions
    at = later + timedelta(seconds=60)
    assert (Expire(),) == table.decide(facts(job, over(), now=at), POLICY).actions
