"""Rules at the time limit: the pod ends before its job, and Slurm accounts the true limit."""

from datetime import timedelta

from bridge.domain.lifecycle.actions import Cause, Evict, Outcome, SetTimeLimit
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules import graces, time_limits
from bridge.domain.lifecycle.rules.answers import cancel_of, complete_with, do, wait
from bridge.domain.lifecycle.rules.cases import JobCase
from bridge.domain.lifecycle.rules.time_limits import TimeLimit
from bridge.domain.model.jobs import SlurmJob


def at_its_limit(case: JobCase, limit: TimeLimit) -> Decision | None:
    """Extend the job in time, then evict the pod at its true limit; None while neither is due."""
    if case.facts.now >= limit.extension_due_at:
        return extend(case, limit)
    if case.facts.now < limit.runs_out_at:
        return None
    text = f"Slurm job {case.job.id} reached its time limit"
    return do(text, Evict(cause=Cause.TIME_LIMIT, message=text, if_unchanged=True))


def extend(case: JobCase, limit: TimeLimit) -> Decision:
    """Keep the job for as long as its containers may take to stop."""
    minutes = limit.extended_min(case.facts.now, graces.usable(case))
    text = f"Slurm would end job {case.job.id} before its containers: extend it to {minutes} min"
    return do(text, _set_time_limit(case.job, limit, minutes))


def time_out(case: JobCase) -> Decision:
    """Reset the job's true limit; once that is over for Slurm too, completing means TIMEOUT."""
    limit = limit_of(case)
    if limit is not None and limit.is_extended:
        text = "pod was evicted at its time limit: reset the limit"
        return do(text, _set_time_limit(case.job, limit, limit.true_min))
    if limit is None or limit.runs_out_at > case.facts.now + time_limits.LEAD:
        return do("the limit its pod was evicted for has been lifted", cancel_of(case.job))
    remaining = limit.runs_out_at + time_limits.SETTLED - case.facts.now
    if remaining > timedelta(0):
        return wait("its time limit is over in a moment", retry=remaining)
    return complete_with(case, Outcome(timed_out=True))


def limit_of(case: JobCase) -> TimeLimit | None:
    """Return the job's limit; None if it has none."""
    return time_limits.of(case.job, case.policy.overtime)


def _set_time_limit(job: SlurmJob, limit: TimeLimit, minutes: int) -> SetTimeLimit:
    return SetTimeLimit(
        job_id=job.id,
        sluid=job.sluid,
        minutes=minutes,
        true_min=limit.true_min,
        expected_min=limit.shown_min,
    )
