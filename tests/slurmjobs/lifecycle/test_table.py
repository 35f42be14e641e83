"""What is decided for a SlurmJob in each situation."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmjobs.lifecycle import table
from slurmjobs.lifecycle.actions import (
    AddFinalizer,
    CancelBatch,
    Expire,
    JobAction,
    JobDecision,
    RemoveFinalizer,
    Report,
    SubmitBatch,
)
from slurmjobs.lifecycle.situation import Archive, ArchiveFinding, JobFacts, SubmissionFailure
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.values.ids import JobId, Sluid
from tests.slurmjobs.lifecycle.situations import (
    NOW,
    POLICY,
    batch_job,
    facts,
    mark,
    slurm_job,
    told,
)

SUBMITTED = SlurmJobStatus(phase="Pending", job_id=7, sluid="s7", attempt=1)
ENDED = SlurmJobStatus(phase="Succeeded", job_id=7, sluid="s7", attempt=1, end_time=NOW)


def decide(given: JobFacts) -> JobDecision:
    return table.decide(given, POLICY)


def acted(given: JobFacts) -> tuple[JobAction, ...]:
    return decide(given).actions


def status(given: JobFacts) -> SlurmJobStatus:
    (action,) = acted(given)
    assert isinstance(action, Report)
    return action.status


def conditions(told: SlurmJobStatus) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in told.conditions}


def test_a_new_one_gets_the_finalizer_before_anything_is_submitted() -> None:
    assert (AddFinalizer(),) == acted(facts(slurm_job(is_ours=False), is_untried=True))


def test_one_that_was_never_tried_is_submitted_at_once() -> None:
    assert (SubmitBatch(attempt=1),) == acted(facts(slurm_job(), is_untried=True))


def test_one_that_may_have_been_tried_is_looked_up_first() -> None:
    given = facts(slurm_job())

    assert table.needs_archive(given)
    assert (Wait(),) == acted(given)
    nothing = replace(given, archive=Archive(finding=ArchiveFinding.NOTHING))
    assert (SubmitBatch(attempt=1),) == acted(nothing)
    ended = Archive(finding=ArchiveFinding.ENDED, job=batch_job(JobPhase.ENDED))
    assert "Succeeded" == status(replace(given, archive=ended)).phase


def test_nothing_is_submitted_before_it_is_sure_that_there_is_none() -> None:
    assert (Wait(),) == acted(facts(slurm_job(), surely=False, is_untried=True))


def test_nothing_is_done_while_slurm_cannot_be_read_or_the_view_is_old() -> None:
    for job in (slurm_job(), slurm_job(is_ours=False), slurm_job(deleted=True)):
        given = facts(job, is_untried=True)
        assert (Wait(),) == acted(replace(given, seen=replace(given.seen, reachable=False)))
        assert (Wait(),) == acted(replace(given, seen=replace(given.seen, fresh=False)))


def test_without_accounting_only_a_young_one_is_submitted() -> None:
    archive = Archive(finding=ArchiveFinding.UNKNOWN)
    old = facts(slurm_job(), archive=archive)

    assert ("Pending", "Unknown") == (status(old).phase, status(old).reason)
    assert "slurm-bridge.dev/when-lost" in status(old).message
    created_at = NOW - timedelta(hours=1)
    older = replace(old, now=created_at + timedelta(seconds=60))
    assert isinstance(acted(older)[0], Report), "Slurm may have forgotten its job by now"
    young = replace(old, now=created_at + timedelta(seconds=40))
    assert (SubmitBatch(attempt=1),) == acted(young)


def test_a_waiting_job_is_told_with_its_id_and_reason_once() -> None:
    job = slurm_job()
    given = facts(job, batch_job(reason="Priority"), is_untried=True)

    said = status(given)

    assert ("Pending", 7, "s7", "WAITING", "Priority", 1) == (
        said.phase,
        said.job_id,
        said.sluid,
        said.state,
        said.reason,
        said.attempt,
    )
    assert ("True", "Submitted") == conditions(said)["Submitted"]
    assert (Wait(),) == acted(replace(given, job=told(job, said)))


def test_an_expected_start_that_moves_a_little_is_no_news() -> None:
    job = slurm_job()
    far = NOW + timedelta(hours=3)
    given = facts(job, batch_job(expected_start=far), is_untried=True)
    after = told(job, status(given))

    later = batch_job(expected_start=far + timedelta(minutes=1))
    assert (Wait(),) == acted(facts(after, later))


def test_a_running_job_says_where() -> None:
    said = status(facts(slurm_job(status=SUBMITTED), batch_job(JobPhase.RUNNING)))

    assert ("Running", "n1") == (said.phase, said.nodes)
    assert ("True", "Running") == conditions(said)["Running"]


@pytest.mark.parametrize(
    ("end", "code", "signal", "phase", "reason"),
    [
        (JobEnd.COMPLETED, 0, 0, "Succeeded", "Succeeded"),
        (JobEnd.FAILED, 3, 0, "Failed", "NonZeroExit"),
        (JobEnd.FAILED, 0, 9, "Failed", "Signalled"),
        (JobEnd.FAILED, 0, 53, "Failed", "OutputFailed"),
        (JobEnd.CANCELLED, 0, 15, "Failed", "Cancelled"),
        (JobEnd.TIMEOUT, 0, 0, "Failed", "TimeLimit"),
        (JobEnd.NODE_FAIL, 0, 0, "Failed", "NodeFail"),
        (JobEnd.OUT_OF_MEMORY, 0, 125, "Failed", "OutOfMemory"),
        (JobEnd.PREEMPTED, 0, 0, "Failed", "Preempted"),
        (JobEnd.DEADLINE, 0, 0, "Failed", "Deadline"),
        (JobEnd.BOOT_FAIL, 0, 0, "Failed", "BootFail"),
    ],
)
def test_the_end_is_told_as_it_was(
    end: JobEnd, code: int, signal: int, phase: str, reason: str
) -> None:
    ended = batch_job(JobPhase.ENDED, end=end, exit_code=code, signal=signal)

    said = status(facts(slurm_job(status=SUBMITTED), ended))

    assert (phase, reason, code) == (said.phase, said.reason, said.exit_code)
    assert ("True", reason) == conditions(said)["Complete" if phase == "Succeeded" else "Failed"]


def test_a_job_that_slurm_ended_as_impossible_was_neither_signalled_nor_wrote_anything() -> None:
    """Slurm gives it a start, an end, and a status that reads like SIGHUP."""
    ended = batch_job(
        JobPhase.ENDED,
        end=JobEnd.FAILED,
        nodes="",
        signal=1,
        reason="BadConstraints",
        started_at=NOW,
        stdout="/home/alice/slurm-7.out",
        stderr="/home/alice/slurm-7.out",
    )

    said = status(facts(slurm_job(status=SUBMITTED, results=()), ended))

    assert ("Failed", "NeverRunnable") == (said.phase, said.reason)
    assert (
        "Slurm job 7 could never run, and Slurm ended it: no node can ever satisfy what it asks for"
        " (BadConstraints)"
    ) in said.message
    assert "slurm-7.out" not in said.message
    assert (None, None, None, None) == (
        said.exit_code,
        said.signal,
        said.start_time,
        said.outputs,
    )
    assert ("True", "NeverRunnable") == conditions(said)["Failed"]


def test_the_end_waits_until_slurm_is_done() -> None:
    settling = batch_job(JobPhase.ENDED, remains=True)

    assert (Wait(),) == acted(facts(slurm_job(status=SUBMITTED), settling))


@pytest.mark.parametrize("surely", [True, False])
def test_a_known_job_that_is_gone_is_never_submitted_again(*, surely: bool) -> None:
    given = facts(slurm_job(status=SUBMITTED), surely=surely)

    for finding in ArchiveFinding:
        job = batch_job(JobPhase.ENDED) if finding is ArchiveFinding.ENDED else None
        archive = Archive(finding=finding, job=job)
        for since in (NOW, NOW - timedelta(hours=1)):
            (action,) = acted(replace(given, archive=archive, since=since))
            assert isinstance(action, Wait | Report), finding


def test_a_lost_job_is_given_up_after_a_while() -> None:
    lost = facts(slurm_job(status=SUBMITTED), archive=Archive(finding=ArchiveFinding.UNFINISHED))

    assert (Wait(),) == acted(lost)
    said = status(replace(lost, since=NOW - timedelta(minutes=5)))
    assert ("Failed", "JobLost") == (said.phase, said.reason)


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.PAUSED])
def test_a_job_that_comes_back_after_it_was_given_up_is_left_alone(phase: JobPhase) -> None:
    given_up = SlurmJobStatus(
        phase="Failed", reason="JobLost", job_id=7, sluid="s7", attempt=1, end_time=None
    )
    job = slurm_job(status=given_up, ttl_seconds_after_finished=0)

    said = status(facts(job, batch_job(phase)))

    assert ("Failed", "JobLost") == (said.phase, said.reason)
    assert "Slurm job 7 was reported as lost and is back" in said.message
    assert (Wait(),) == acted(facts(told(job, said), batch_job(phase)))
    failed = SlurmJobStatus(phase="Failed", reason="NonZeroExit", job_id=7, sluid="s7", attempt=1)
    cancel = CancelBatch(job_id=JobId(7), sluid=Sluid("s7"))
    assert (cancel,) == acted(facts(told(job, failed), batch_job(phase)))


def refused(attempts: int = 1, *, is_final: bool = False) -> SubmissionFailure:
    return SubmissionFailure(
        reason="SubmitRefused", text="no such account", attempts=attempts, at=NOW, is_final=is_final
    )


def test_a_refusal_is_told_and_tried_again_later() -> None:
    job = slurm_job()
    given = facts(job, is_untried=True, refusal=refused(attempts=3))

    said = status(given)

    assert ("Pending", "SubmitRefused", "no such account") == (
        said.phase,
        said.reason,
        said.message,
    )
    assert ("False", "SubmitRefused") == conditions(said)["Submitted"]
    waits = decide(replace(given, job=told(job, said)))
    assert ((Wait(),), timedelta(seconds=4)) == (waits.actions, waits.retry_after)
    again = replace(given, now=NOW + timedelta(seconds=4))
    assert (SubmitBatch(attempt=1),) == acted(again)


def test_a_final_refusal_fails_it() -> None:
    said = status(facts(slurm_job(), is_untried=True, refusal=refused(is_final=True)))

    assert ("Failed", "SubmitRefused") == (said.phase, said.reason)


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.PAUSED])
def test_suspending_begins_another_attempt_and_then_cancels_the_job(phase: JobPhase) -> None:
    job = slurm_job(status=SUBMITTED, suspend=True)

    said = status(facts(job, batch_job(phase)))

    assert ("Pending", "Suspended", 2, None) == (said.phase, said.reason, said.attempt, said.job_id)
    after = told(job, said)
    cancel = CancelBatch(job_id=JobId(7), sluid=Sluid("s7"))
    assert (cancel,) == acted(facts(after, batch_job(phase)))
    cancelled = batch_job(JobPhase.ENDED, end=JobEnd.CANCELLED)
    assert not isinstance(acted(facts(after, cancelled, is_untried=True))[0], SubmitBatch)
    resumed = told(slurm_job(), said)
    assert (SubmitBatch(attempt=2),) == acted(facts(resumed, cancelled, is_untried=True))


def test_a_suspended_one_that_had_ended_by_itself_has_ended() -> None:
    job = slurm_job(status=SUBMITTED, suspend=True)

    assert "Succeeded" == status(facts(job, batch_job(JobPhase.ENDED))).phase


def test_a_suspended_new_one_is_told_and_not_taken_on() -> None:
    said = status(facts(slurm_job(is_ours=False, suspend=True)))

    assert ("Pending", "Suspended") == (said.phase, said.reason)
    assert ("True", "Suspended") == conditions(said)["Suspended"]


def test_a_job_is_cancelled_at_the_deadline_and_the_end_says_so() -> None:
    job = slurm_job(status=SUBMITTED, active_deadline_seconds=1800)

    assert (CancelBatch(job_id=JobId(7), sluid=Sluid("s7")),) == acted(
        facts(job, batch_job(JobPhase.RUNNING))
    )
    early = decide(facts(job, batch_job(JobPhase.RUNNING), now=NOW - timedelta(seconds=60)))
    assert timedelta(seconds=60) == early.retry_after
    cancelled = batch_job(JobPhase.ENDED, end=JobEnd.CANCELLED)
    assert "DeadlineExceeded" == status(facts(job, cancelled)).reason


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING, JobPhase.PAUSED])
def test_deleting_cancels_first_and_lets_go_last(phase: JobPhase) -> None:
    job = slurm_job(status=SUBMITTED, deleted=True)

    assert (CancelBatch(job_id=JobId(7), sluid=Sluid("s7")),) == acted(facts(job, batch_job(phase)))
    assert (Wait(),) == acted(facts(job, batch_job(JobPhase.ENDED, remains=True)))
    assert (RemoveFinalizer(),) == acted(facts(job, batch_job(JobPhase.ENDED)))
    assert (RemoveFinalizer(),) == acted(facts(job))
    assert (Wait(),) == acted(facts(job, surely=False))
    assert (Wait(),) == acted(facts(slurm_job(is_ours=False, deleted=True)))


def test_what_has_ended_stays_ended() -> None:
    job = slurm_job(status=ENDED)

    assert (Wait(),) == acted(facts(job))
    assert (Wait(),) == acted(facts(job, batch_job(JobPhase.ENDED, end=JobEnd.FAILED)))
    assert (CancelBatch(job_id=JobId(7), sluid=Sluid("s7")),) == acted(facts(job, batch_job()))


def test_a_time_to_live_ends_when_it_ends() -> None:
    job = slurm_job(status=ENDED, ttl_seconds_after_finished=60)

    assert timedelta(seconds=60) == decide(facts(job)).retry_after
    assert (Expire(),) == acted(facts(job, now=NOW + timedelta(seconds=60)))


def test_another_controllers_is_left_alone_whatever_slurm_has() -> None:
    for job in (
        slurm_job(managed_by="kueue.x-k8s.io/multikueue"),
        slurm_job(managed_by="kueue.x-k8s.io/multikueue", deleted=True),
    ):
        assert (Wait(),) == acted(facts(job, batch_job(), batch_job(id=JobId(8))))


def test_of_two_jobs_the_one_that_was_told_stays() -> None:
    second = batch_job(JobPhase.RUNNING, id=JobId(8), sluid=Sluid("s8"))
    cancel_first = CancelBatch(job_id=JobId(7), sluid=Sluid("s7"))
    cancel_second = CancelBatch(job_id=JobId(8), sluid=Sluid("s8"))

    assert (cancel_second,) == acted(facts(slurm_job(status=SUBMITTED), batch_job(), second))
    assert (cancel_first,) == acted(facts(slurm_job(), batch_job(), second))
    ended = batch_job(JobPhase.ENDED)
    assert (cancel_second,) == acted(facts(slurm_job(status=SUBMITTED), ended, second))


def test_a_later_attempt_that_slurm_knows_of_counts_more_than_an_older_status() -> None:
    later = batch_job(JobPhase.RUNNING, id=JobId(9), mark=mark(3))

    said = status(facts(slurm_job(status=SUBMITTED), later))

    assert (9, 3) == (said.job_id, said.attempt)


def test_everything_that_is_told_has_a_bound() -> None:
    huge = "x" * 100_000
    job: SlurmJobObject = slurm_job()
    ended = batch_job(
        JobPhase.ENDED, end=JobEnd.FAILED, nodes=huge, stderr=huge, stdout=huge, user=huge
    )

    said = status(facts(job, ended))

    assert 1024 >= len(said.nodes)
    assert 4096 >= len(said.message)
    assert all(512 >= len(condition.message) for condition in said.conditions)
