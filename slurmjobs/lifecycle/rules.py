"""The cells of the table; the first line of each docstring is the cell's text in docs/slurmjob-lifecycle.md."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from bridge.domain.lifecycle import reasons
from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.batch import BatchJob
from slurmjobs.lifecycle import outcome, report
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
from slurmjobs.lifecycle.report import NewStatus
from slurmjobs.lifecycle.situation import BatchCase, CopyState, ObjectCase
from slurmjobs.objects.results import JobEnding, JobResults
from slurmjobs.objects.status import JobPhase
from slurmruntime.values import backoff, names

_SUBMITTED: Mapping[str, str] = {"Submitted": "Submitted"}

RESULTS_NOT_COLLECTED = "ResultsNotCollected"
"""The reason of a SlurmJob that failed although its job completed."""

_RECHECK = timedelta(seconds=30)
"""While results are being copied; changes also wake the SlurmJob."""

JOB_LOST = "JobLost"
"""The reason of a SlurmJob that failed because nothing is known about its job's end."""

RESTORE, LET_GO = "restore", "let-go"
"""The annotation's values, by which an administrator decides what slurm-bridge cannot find out."""


def wait(reason: str, *, retry: timedelta | None = None) -> JobDecision:
    """Wait."""
    return JobDecision(actions=(Wait(),), reason=reason, retry_after=retry)


def leave(_case: ObjectCase) -> JobDecision:
    """Leave it alone."""
    return wait("spec.managedBy names another controller")


def add_finalizer(case: ObjectCase) -> JobDecision:
    """Add the finalizer."""
    return _act(f"{case.object.full_name} is new: add our finalizer", AddFinalizer())


def submit(case: ObjectCase) -> JobDecision:
    """Submit, or report the last refusal until its back-off expires."""
    if not case.facts.seen.surely_none:
        return wait("not certain yet that Slurm has no job of it", retry=case.policy.poll_interval)
    refusal = case.facts.refusal
    if refusal is None:
        return _act("Slurm has no job of it: submit", SubmitBatch(attempt=case.attempt))
    if refusal.is_final:
        return _report_without_job(
            case, "Failed", refusal.reason, refusal.text, {"Failed": refusal.reason}
        )
    left = backoff.left(
        refusal.attempts,
        refusal.at,
        case.facts.now,
        first=case.policy.backoff_first,
        cap=case.policy.backoff_cap,
    )
    if left > timedelta(0):
        return _report_without_job(case, "Pending", refusal.reason, refusal.text, {}, retry=left)
    return _act("the last submit was refused: retry", SubmitBatch(attempt=case.attempt))


def submit_if_remembered(case: ObjectCase) -> JobDecision:
    """Submit if it is so young that Slurm would still know its job; else wait for an administrator's decision."""
    created_at = case.object.metadata.creation_timestamp
    is_young = created_at is not None and case.facts.now - created_at < case.policy.min_job_age
    if is_young or _administrators_choice(case) == RESTORE:
        return submit(case)
    text = (
        "slurm-bridge was interrupted and cannot tell whether the job was submitted: Slurm does not know it,"
        " and there is no accounting to ask. An administrator must set the annotation"
        f" {names.WHEN_LOST_ANNOTATION} by break-glass: {RESTORE} submits the job, {LET_GO} gives it up"
    )
    if _administrators_choice(case) == LET_GO:
        return _report_without_job(case, "Failed", JOB_LOST, text, {"Failed": JOB_LOST})
    return _report_without_job(case, "Pending", "Unknown", text, {})


def report_waiting(case: BatchCase) -> JobDecision:
    """Report why it waits and when it may start."""
    job, now = case.job, case.facts.now
    # Without the expected start, which has a field of its own and moves with each of Slurm's passes.
    words = reasons.why_it_waits(replace(job, expected_start=None), now)
    words = words.replace("delete the pod", "delete the SlurmJob")
    if job.restarts:
        words = f"{words}; it was requeued and will start for the {_ordinal(job.restarts + 1)} time"
    return _report_job(case, "Pending", reasons.condition_reason(job.reason), words, _SUBMITTED)


def report_running(case: BatchCase) -> JobDecision:
    """Report where it runs."""
    return _runs(case, "Running", f"Slurm job {case.job.id} is running on {case.job.nodes}")


def report_paused(case: BatchCase) -> JobDecision:
    """Report that it is suspended in Slurm."""
    text = (
        f"Slurm job {case.job.id} is suspended in Slurm; scontrol resume {case.job.id} resumes it"
    )
    return _runs(case, "SuspendedInSlurm", text)


def settle(case: BatchCase) -> JobDecision:
    """Wait until Slurm has cleaned up after it."""
    return wait(f"Slurm is cleaning up after job {case.job.id}")


def finish(case: BatchCase) -> JobDecision:
    """Report how it ended."""
    tally, reported = case.job.array, case.object.status.array
    tasks = None if tally is None else report.array_tasks(tally, reported)
    result = outcome.of(case.job, deadline_at=case.deadline_at, tasks=tasks)
    has_run = case.job.started_at is not None and not case.job.is_impossible
    if case.object.spec.results and has_run:
        return _collect(case, result)
    kind = "Complete" if result.phase == "Succeeded" else "Failed"
    conditions = {**_SUBMITTED, kind: result.reason}
    return _report_job(case, result.phase, result.reason, result.message, conditions)


def collect(case: ObjectCase) -> JobDecision:
    """Report the progress of copying its results; once that succeeded or failed, how it ended."""
    collection, results_before = case.facts.collection, case.object.status.results
    if results_before is None:  # cannot happen in this row
        return wait("its results are being copied")
    if collection.state is CopyState.NOT_YET:
        text = collection.text or results_before.message
        results = msgspec.structs.replace(results_before, message=text)
        return _report(case, _collecting(case, results), retry=_RECHECK)
    ended, conditions = results_before.ended, dict(_SUBMITTED)
    phase, reason, text = ended.phase, ended.reason, ended.message
    if collection.state is CopyState.DONE:
        results = JobResults(phase="Collected", ended=ended, message=collection.text)
        conditions["ResultsCollected"] = "Collected"
    else:
        results = JobResults(phase="Failed", ended=ended, message=collection.text)
        text = f"{text}; its results were not copied: {collection.text}"
        if phase == "Succeeded":
            phase, reason = "Failed", RESULTS_NOT_COLLECTED
    conditions["Complete" if phase == "Succeeded" else "Failed"] = reason
    new = NewStatus(
        phase=phase,
        reason=reason,
        message=text,
        attempt=case.attempt,
        conditions=conditions,
        results=results,
    )
    return _report(case, new, retry=None)


def report_lost(case: ObjectCase) -> JobDecision:
    """Wait; report Failed, JobLost once it has been missing for a while."""
    left = case.policy.lost_after - case.time_in_cell
    if left > timedelta(0) and _administrators_choice(case) != LET_GO:
        return wait("Slurm knows neither its job nor how it ended", retry=left)
    text = (
        "Slurm no longer knows the job and has no record of its end: slurmctld lost it, or it ended"
        " without accounting"
    )
    return _report_without_job(case, "Failed", JOB_LOST, text, {**_SUBMITTED, "Failed": JOB_LOST})


def report_suspended(case: ObjectCase) -> JobDecision:
    """Report that it is suspended."""
    text = "spec.suspend is true: its job is submitted once it is false"
    return _report_without_job(case, "Pending", "Suspended", text, {"Suspended": "Suspended"})


def supersede(case: BatchCase) -> JobDecision:
    """Begin another attempt, without a job so far; the present job is then surplus and gets cancelled."""
    text = f"spec.suspend is true: Slurm job {case.job.id} is being cancelled"
    new = NewStatus(
        phase="Pending",
        reason="Suspended",
        message=text,
        attempt=case.attempt + 1,
        conditions={"Suspended": "Suspended"},
    )
    return _act(text, Report(status=report.status(case.facts, case.policy, new)))


def expire(case: ObjectCase) -> JobDecision:
    """Delete it when its time to live is over."""
    seconds, ended_at = case.object.spec.ttl_seconds_after_finished, _finished_at(case)
    if seconds is None or ended_at is None:
        return wait("it has ended")
    left = timedelta(seconds=seconds) - (case.facts.now - ended_at)
    if left > timedelta(0):
        return wait("it has ended; ttlSecondsAfterFinished has not passed", retry=left)
    return _act(f"it ended at least {seconds} s ago: ttlSecondsAfterFinished has passed", Expire())


def cancel(case: BatchCase) -> JobDecision:
    """Cancel it."""
    return _act(f"Slurm job {case.job.id} is not needed any more", cancel_of(case.job))


def cancel_unless_lost(case: BatchCase) -> JobDecision:
    """Cancel it; if it had been reported as lost, leave it running and report that."""
    if case.object.status.reason != JOB_LOST:
        return cancel(case)
    text = (
        f"Slurm job {case.job.id} was reported as lost and is back. slurm-bridge leaves it alone:"
        " delete the SlurmJob to cancel it"
    )
    return _report_without_job(case, "Failed", JOB_LOST, text, {**_SUBMITTED, "Failed": JOB_LOST})


def remove_finalizer(case: ObjectCase) -> JobDecision:
    """Remove the finalizer."""
    if names.SLURM_JOB_FINALIZER not in (case.object.metadata.finalizers or ()):
        return wait("it is being deleted and does not have our finalizer")
    return _act("Slurm has no live job of it", RemoveFinalizer())


def cancel_of(job: BatchJob) -> CancelBatch:
    """Return the action that cancels exactly this job."""
    return CancelBatch(job_id=job.id, sluid=job.sluid)


def cancel_several(jobs: tuple[BatchJob, ...], why: str) -> JobDecision:
    """Return the decision to cancel these jobs."""
    return JobDecision(actions=tuple(map(cancel_of, jobs)), reason=why)


def _collect(case: BatchCase, ended: JobEnding) -> JobDecision:
    results = JobResults(phase="Collecting", ended=ended)
    return _report(case, replace(_collecting(case, results), job=case.job), retry=None)


def _collecting(case: ObjectCase, results: JobResults) -> NewStatus:
    detail = f": {results.message}" if results.message else ""
    return NewStatus(
        phase="Running",
        reason="Collecting",
        message=f"{results.ended.message}; its results are being copied{detail}",
        attempt=case.attempt,
        conditions=_SUBMITTED,
        results=results,
    )


def _act(reason: str, *actions: JobAction) -> JobDecision:
    return JobDecision(actions=actions, reason=reason)


def _runs(case: BatchCase, reason: str, text: str) -> JobDecision:
    since = case.job.started_at
    words = f"{text} (started {since:%Y-%m-%d %H:%M} UTC)" if since else text
    return _report_job(case, "Running", reason, words, {**_SUBMITTED, "Running": reason})


def _report_job(
    case: BatchCase, phase: JobPhase, reason: str, text: str, conditions: Mapping[str, str]
) -> JobDecision:
    deadline_at = case.deadline_at
    retry = None if deadline_at is None else max(deadline_at - case.facts.now, timedelta(0))
    return _report(
        case,
        NewStatus(
            phase=phase,
            reason=reason,
            message=text,
            job=case.job,
            attempt=case.attempt,
            conditions=conditions,
        ),
        retry=retry if phase in ("Pending", "Running") else None,
    )


def _report_without_job(
    case: ObjectCase,
    phase: JobPhase,
    reason: str,
    text: str,
    conditions: Mapping[str, str],
    *,
    retry: timedelta | None = None,
) -> JobDecision:
    new = NewStatus(
        phase=phase, reason=reason, message=text, attempt=case.attempt, conditions=conditions
    )
    return _report(case, new, retry=retry)


def _report(case: ObjectCase, new: NewStatus, *, retry: timedelta | None) -> JobDecision:
    """Write the status unless it is there already: waiting must not cost repeated writes."""
    status = report.status(case.facts, case.policy, new)
    if status == case.object.status:
        return wait(new.message, retry=retry)
    return JobDecision(actions=(Report(status=status),), reason=new.message, retry_after=retry)


def _administrators_choice(case: ObjectCase) -> str:
    return case.object.metadata.annotations.get(names.WHEN_LOST_ANNOTATION, "")


def _finished_at(case: ObjectCase) -> datetime | None:
    status = case.object.status
    ends = [
        condition.last_transition_time
        for condition in status.conditions
        if condition.type in ("Complete", "Failed") and condition.status == "True"
    ]
    return max([*ends, *filter(None, [status.end_time])], default=None)


def _ordinal(number: int) -> str:
    teens = {11, 12, 13}
    suffix = "th" if number % 100 in teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
