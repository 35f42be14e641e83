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
    CancelBatch,
    Expire,
    GiveBack,
    JobAction,
    JobDecision,
    Report,
    SubmitBatch,
    TakeOn,
)
from slurmjobs.lifecycle.cases import BatchCase, ObjectCase
from slurmjobs.lifecycle.outcome import JobOutcome
from slurmjobs.lifecycle.report import NewStatus
from slurmjobs.lifecycle.situation import Collected
from slurmjobs.objects.results import JobEnding, JobResults
from slurmjobs.objects.status import JobPhase
from slurmruntime.values import backoff, names

_SUBMITTED: Mapping[str, str] = {"Submitted": "Submitted"}

RESULTS_NOT_COLLECTED = "ResultsNotCollected"
"""The reason of a SlurmJob that failed although its job completed."""

_LOOK_AGAIN = timedelta(seconds=30)
"""While results are copied; news of that comes by itself."""

JOB_LOST = "JobLost"
"""The reason of a SlurmJob that failed because nobody knows what became of its job."""

RESTORE, LET_GO = "restore", "let-go"
"""The values of the annotation by which an administrator decides where nobody can know."""


def wait(reason: str, *, retry: timedelta | None = None) -> JobDecision:
    """Wait."""
    return JobDecision(actions=(Wait(),), reason=reason, retry_after=retry)


def leave(_case: ObjectCase) -> JobDecision:
    """Leave it alone."""
    return wait("another controller is responsible for it")


def take_on(case: ObjectCase) -> JobDecision:
    """Put the finalizer on it."""
    return _do(f"{case.object.full_name} is new here: it gets our finalizer", TakeOn())


def submit(case: ObjectCase) -> JobDecision:
    """Submit; while the last refusal is fresh, tell it."""
    if not case.facts.seen.surely_none:
        return wait("not sure yet that Slurm has no job of it", retry=case.policy.poll_interval)
    refusal = case.facts.refusal
    if refusal is None:
        return _do("Slurm has no job of it: submit", SubmitBatch(attempt=case.attempt))
    if refusal.is_final:
        return _tell(case, "Failed", refusal.reason, refusal.text, {"Failed": refusal.reason})
    left = backoff.left(
        refusal.attempts,
        refusal.at,
        case.facts.now,
        first=case.policy.backoff_first,
        cap=case.policy.backoff_cap,
    )
    if left > timedelta(0):
        return _tell(case, "Pending", refusal.reason, refusal.text, {}, retry=left)
    return _do("the last submit was refused: try again", SubmitBatch(attempt=case.attempt))


def submit_if_remembered(case: ObjectCase) -> JobDecision:
    """Submit if it is so young that Slurm would still know a job of it; else ask for an administrator's word."""
    created_at = case.object.metadata.creation_timestamp
    is_young = created_at is not None and case.facts.now - created_at < case.policy.remembered
    if is_young or _word(case) == RESTORE:
        return submit(case)
    text = (
        "nobody knows whether its job had been submitted before slurm-bridge was interrupted: Slurm has"
        " none, and there is no accounting to ask. An administrator decides, by break-glass: annotation"
        f" {names.WHEN_LOST_ANNOTATION}: {RESTORE} submits it, {LET_GO} gives it up"
    )
    if _word(case) == LET_GO:
        return _tell(case, "Failed", JOB_LOST, text, {"Failed": JOB_LOST})
    return _tell(case, "Pending", "Unknown", text, {})


def tell_waiting(case: BatchCase) -> JobDecision:
    """Tell why it waits, and when it may start."""
    job, now = case.job, case.facts.now
    # Without the expected start, which has a field of its own and moves with each of Slurm's passes.
    words = reasons.why_it_waits(replace(job, expected_start=None), now)
    words = words.replace("delete the pod", "delete the SlurmJob")
    if job.restarts:
        words = f"{words}; it was requeued and starts for the {_ordinal(job.restarts + 1)} time"
    return _tell_job(case, "Pending", reasons.condition_reason(job.reason), words, _SUBMITTED)


def tell_running(case: BatchCase) -> JobDecision:
    """Tell where it runs."""
    return _runs(case, "Running", f"Slurm job {case.job.id} runs on {case.job.nodes}")


def tell_paused(case: BatchCase) -> JobDecision:
    """Tell that it is suspended in Slurm."""
    text = f"Slurm job {case.job.id} is suspended in Slurm: scontrol resume {case.job.id}"
    return _runs(case, "SuspendedInSlurm", text)


def settle(case: BatchCase) -> JobDecision:
    """Wait until Slurm is done with it."""
    return wait(f"Slurm is cleaning up after job {case.job.id}")


def finish(case: BatchCase) -> JobDecision:
    """Tell how it ended."""
    tally, told = case.job.array, case.object.status.array
    tasks = None if tally is None else report.array_tasks(tally, told)
    how = outcome.of(case.job, deadline_at=case.deadline_at, tasks=tasks)
    has_run = case.job.started_at is not None and not case.job.is_impossible
    if case.object.spec.results and has_run:
        return _collect(case, how)
    kind = "Complete" if how.phase == "Succeeded" else "Failed"
    conditions = {**_SUBMITTED, kind: how.reason}
    return _tell_job(case, how.phase, how.reason, how.message, conditions)


def collect(case: ObjectCase) -> JobDecision:
    """Tell how its results are being copied; once they are, or cannot be, how it ended."""
    found, told = case.facts.collection, case.object.status.results
    if told is None:  # the row says otherwise
        return wait("its results are being copied")
    if found.state is Collected.NOT_YET:
        text = found.text or told.message
        results = msgspec.structs.replace(told, message=text)
        return _told(case, _collecting(case, results), retry=_LOOK_AGAIN)
    ended, conditions = told.ended, dict(_SUBMITTED)
    phase, reason, text = ended.phase, ended.reason, ended.message
    if found.state is Collected.DONE:
        results = JobResults(phase="Collected", ended=ended, message=found.text)
        conditions["ResultsCollected"] = "Collected"
    else:
        results = JobResults(phase="Failed", ended=ended, message=found.text)
        text = f"{text}; its results were not copied: {found.text}"
        if phase == "Succeeded":
            phase, reason = "Failed", RESULTS_NOT_COLLECTED
    conditions["Complete" if phase == "Succeeded" else "Failed"] = reason
    said = NewStatus(
        phase=phase,
        reason=reason,
        message=text,
        attempt=case.attempt,
        conditions=conditions,
        results=results,
    )
    return _told(case, said, retry=None)


def tell_lost(case: ObjectCase) -> JobDecision:
    """Once it has been missing for a while: Failed, JobLost."""
    left = case.policy.lost_after - case.dwelt
    if left > timedelta(0) and _word(case) != LET_GO:
        return wait("Slurm does not know its job any more, nor how it ended", retry=left)
    text = (
        "Slurm no longer knows the job, and has no record of its end: slurmctld has lost it, or it"
        " ended and nobody kept accounts"
    )
    return _tell(case, "Failed", JOB_LOST, text, {**_SUBMITTED, "Failed": JOB_LOST})


def tell_suspended(case: ObjectCase) -> JobDecision:
    """Tell that it is suspended."""
    text = "spec.suspend is true: its job is submitted when that is no longer so"
    return _tell(case, "Pending", "Suspended", text, {"Suspended": "Suspended"})


def supersede(case: BatchCase) -> JobDecision:
    """Begin another attempt, without a job so far: the present job is one too many from then on."""
    text = f"spec.suspend is true: Slurm job {case.job.id} is being cancelled"
    said = NewStatus(
        phase="Pending",
        reason="Suspended",
        message=text,
        attempt=case.attempt + 1,
        conditions={"Suspended": "Suspended"},
    )
    return _do(text, Report(status=report.status(case.facts, case.policy, said)))


def expire(case: ObjectCase) -> JobDecision:
    """Delete it when its time to live is over."""
    seconds, ended_at = case.object.spec.ttl_seconds_after_finished, _finished_at(case)
    if seconds is None or ended_at is None:
        return wait("it has ended")
    left = timedelta(seconds=seconds) - (case.facts.now - ended_at)
    if left > timedelta(0):
        return wait("it has ended, and is kept for a while", retry=left)
    return _do(f"it ended {seconds} s ago or longer: ttlSecondsAfterFinished", Expire())


def cancel(case: BatchCase) -> JobDecision:
    """Cancel it."""
    return _do(f"nobody needs Slurm job {case.job.id}", cancel_of(case.job))


def cancel_unless_lost(case: BatchCase) -> JobDecision:
    """Cancel it; if it had been taken for lost, leave it alone and tell."""
    if case.object.status.reason != JOB_LOST:
        return cancel(case)
    text = (
        f"Slurm job {case.job.id} had been taken for lost, and is back. It is left alone:"
        " delete the SlurmJob to cancel it"
    )
    return _tell(case, "Failed", JOB_LOST, text, {**_SUBMITTED, "Failed": JOB_LOST})


def give_back(case: ObjectCase) -> JobDecision:
    """Remove the finalizer."""
    if names.SLURM_JOB_FINALIZER not in (case.object.metadata.finalizers or ()):
        return wait("it is being deleted, and has nothing of ours")
    return _do("nothing of it is left in Slurm", GiveBack())


def cancel_of(job: BatchJob) -> CancelBatch:
    """Cancel this very job."""
    return CancelBatch(job_id=job.id, sluid=job.sluid)


def cancel_several(jobs: tuple[BatchJob, ...], why: str) -> JobDecision:
    """Cancel jobs that should not be there."""
    return JobDecision(actions=tuple(map(cancel_of, jobs)), reason=why)


def _collect(case: BatchCase, how: JobOutcome) -> JobDecision:
    ended = JobEnding(phase=how.phase, reason=how.reason, message=how.message)
    results = JobResults(phase="Collecting", ended=ended)
    return _told(case, replace(_collecting(case, results), job=case.job), retry=None)


def _collecting(case: ObjectCase, results: JobResults) -> NewStatus:
    ended = results.ended.message
    return NewStatus(
        phase="Running",
        reason="Collecting",
        message=f"{ended}; its results are being copied{_after(results.message)}",
        attempt=case.attempt,
        conditions=_SUBMITTED,
        results=results,
    )


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _do(reason: str, *actions: JobAction) -> JobDecision:
    return JobDecision(actions=actions, reason=reason)


def _runs(case: BatchCase, reason: str, text: str) -> JobDecision:
    since = case.job.started_at
    words = f"{text} since {since:%Y-%m-%d %H:%M} UTC" if since else text
    return _tell_job(case, "Running", reason, words, {**_SUBMITTED, "Running": reason})


def _tell_job(
    case: BatchCase, phase: JobPhase, reason: str, text: str, conditions: Mapping[str, str]
) -> JobDecision:
    deadline_at = case.deadline_at
    retry = None if deadline_at is None else max(deadline_at - case.facts.now, timedelta(0))
    return _told(
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


def _tell(
    case: ObjectCase,
    phase: JobPhase,
    reason: str,
    text: str,
    conditions: Mapping[str, str],
    *,
    retry: timedelta | None = None,
) -> JobDecision:
    said = NewStatus(
        phase=phase, reason=reason, message=text, attempt=case.attempt, conditions=conditions
    )
    return _told(case, said, retry=retry)


def _told(case: ObjectCase, said: NewStatus, *, retry: timedelta | None) -> JobDecision:
    """Report it unless the object says so already: waiting must not cost repeated writes."""
    status = report.status(case.facts, case.policy, said)
    if status == case.object.status:
        return wait(said.message, retry=retry)
    return JobDecision(actions=(Report(status=status),), reason=said.message, retry_after=retry)


def _word(case: ObjectCase) -> str:
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
