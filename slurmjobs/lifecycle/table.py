"""The state machine of a SlurmJob: decides from the object and from what Slurm certainly knows about its job.

Pure and level-triggered, as `bridge.domain.lifecycle.table` is for pods. Rows are the object's
situation, columns the job's; the cells are the functions of `rules` (`docs/slurmjob-lifecycle.md` is
generated from here). Two things hold in every cell: if Slurm cannot be read, nothing is done; and
every action but waiting requires a view that is younger than our last write.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import assert_never

from bridge.domain.lifecycle.actions import Wait
from bridge.domain.model.batch import BatchJob
from bridge.domain.model.jobs import JobPhase
from slurmjobs.lifecycle import report, rules
from slurmjobs.lifecycle.actions import JobDecision
from slurmjobs.lifecycle.situation import ArchiveFinding, BatchCase, JobFacts, JobPolicy, ObjectCase
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, Sluid

_UNREACHABLE_RETRY = timedelta(seconds=5)


class JobRow(enum.Enum):
    """The object's situation."""

    FOREIGN = "another controller's"
    NEW = "new"
    READY = "to submit"
    SUBMITTED = "submitted"
    COLLECTING = "collecting its results"
    SUSPENDED = "suspended"
    DONE = "ended"
    DELETING = "deleting"


class JobColumn(enum.Enum):
    """What Slurm certainly knows about the job of the present attempt."""

    NONE = "surely none"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    SETTLING = "settling"
    ENDED = "ended"
    PURGED = "purged"
    LOST = "lost"
    UNRECORDED = "unrecorded"
    UNKNOWN = "unknown"


ObjectRule = Callable[[ObjectCase], JobDecision]
BatchRule = Callable[[BatchCase], JobDecision]

_BY_ARCHIVE: Mapping[ArchiveFinding, JobColumn] = MappingProxyType(
    {
        ArchiveFinding.ASKING: JobColumn.UNKNOWN,
        ArchiveFinding.NOTHING: JobColumn.NONE,
        ArchiveFinding.ENDED: JobColumn.PURGED,
        ArchiveFinding.UNFINISHED: JobColumn.LOST,
        ArchiveFinding.UNKNOWN: JobColumn.UNRECORDED,
    }
)

_BY_ARCHIVE_OF_TASKS: Mapping[ArchiveFinding, JobColumn] = MappingProxyType(
    {ArchiveFinding.ASKING: JobColumn.UNKNOWN, ArchiveFinding.ENDED: JobColumn.PURGED}
)
"""If slurmctld has forgotten only some tasks of an array; any other answer adds nothing."""

_WITH_JOB = frozenset(
    {
        JobColumn.WAITING,
        JobColumn.RUNNING,
        JobColumn.PAUSED,
        JobColumn.SETTLING,
        JobColumn.ENDED,
        JobColumn.PURGED,
    }
)
"""The columns in which the job's state, or its end, is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCells:
    """One row of the table, without the column unknown, in which every SlurmJob waits."""

    without: Mapping[JobColumn, ObjectRule]
    """Rules of the columns without a known job."""
    with_job: Mapping[JobColumn, BatchRule]

    def rule(self, column: JobColumn) -> ObjectRule | BatchRule:
        """Return the rule of a column other than unknown."""
        return self.with_job[column] if column in _WITH_JOB else self.without[column]


def _cells(
    *,
    none: ObjectRule,
    live: tuple[BatchRule, BatchRule, BatchRule],
    settling: BatchRule,
    ended: BatchRule,
    lost: ObjectRule,
    unrecorded: ObjectRule,
) -> JobCells:
    """Build a row; each column is a parameter, so that none can be forgotten. live: waiting, running, paused."""
    waiting, running, paused = live
    without = {JobColumn.NONE: none, JobColumn.LOST: lost, JobColumn.UNRECORDED: unrecorded}
    with_job = {
        JobColumn.WAITING: waiting,
        JobColumn.RUNNING: running,
        JobColumn.PAUSED: paused,
        JobColumn.SETTLING: settling,
        JobColumn.ENDED: ended,
        JobColumn.PURGED: ended,
    }
    return JobCells(without=MappingProxyType(without), with_job=MappingProxyType(with_job))


def _all(rule: ObjectRule) -> JobCells:
    return _cells(
        none=rule, live=(rule, rule, rule), settling=rule, ended=rule, lost=rule, unrecorded=rule
    )


_REPORTING = (rules.report_waiting, rules.report_running, rules.report_paused)
_CANCELLING = (rules.cancel, rules.cancel, rules.cancel)
_CANCELLING_UNLESS_LOST = (rules.cancel_unless_lost,) * 3

TABLE: Mapping[JobRow, JobCells] = MappingProxyType(
    {
        JobRow.FOREIGN: _all(rules.leave),
        JobRow.NEW: _all(rules.add_finalizer),
        JobRow.READY: _cells(
            none=rules.submit,
            live=_REPORTING,
            settling=rules.settle,
            ended=rules.finish,
            lost=rules.report_lost,
            unrecorded=rules.submit_if_remembered,
        ),
        JobRow.SUBMITTED: _cells(
            none=rules.report_lost,
            live=_REPORTING,
            settling=rules.settle,
            ended=rules.finish,
            lost=rules.report_lost,
            unrecorded=rules.report_lost,
        ),
        JobRow.COLLECTING: _cells(
            none=rules.collect,
            live=_REPORTING,
            settling=rules.settle,
            ended=rules.collect,
            lost=rules.collect,
            unrecorded=rules.collect,
        ),
        JobRow.SUSPENDED: _cells(
            none=rules.report_suspended,
            live=(rules.supersede, rules.supersede, rules.supersede),
            settling=rules.settle,
            ended=rules.finish,
            lost=rules.report_lost,
            unrecorded=rules.report_suspended,
        ),
        JobRow.DONE: _cells(
            none=rules.expire,
            live=_CANCELLING_UNLESS_LOST,
            settling=rules.settle,
            ended=rules.expire,
            lost=rules.expire,
            unrecorded=rules.expire,
        ),
        JobRow.DELETING: _cells(
            none=rules.remove_finalizer,
            live=_CANCELLING,
            settling=rules.settle,
            ended=rules.remove_finalizer,
            lost=rules.remove_finalizer,
            unrecorded=rules.remove_finalizer,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPosition:
    """A SlurmJob's cell in the table, and what it was derived from."""

    case: ObjectCase
    job: BatchJob | None
    """The job that counts; if Slurm has purged it, slurmdbd's record."""
    row: JobRow
    column: JobColumn


def decide(facts: JobFacts, policy: JobPolicy) -> JobDecision:
    """Return what to do next for this SlurmJob."""
    decision = _decide(position(facts, policy), policy)
    if facts.seen.fresh or decision.actions == (Wait(),):
        return decision
    return rules.wait(
        f"waiting to see the effect of our last write ({decision.reason})",
        retry=policy.poll_interval,
    )


def _decide(place: JobPosition, policy: JobPolicy) -> JobDecision:
    for step in BEFORE:
        if (decision := step(place)) is not None:
            return decision
    cells, column, case = TABLE[place.row], place.column, place.case
    if column is JobColumn.UNKNOWN:
        return rules.wait("nothing is certain about its job yet", retry=policy.poll_interval)
    if place.job is None or column not in _WITH_JOB:
        return cells.without[column](case)
    return cells.with_job[column](
        BatchCase(facts=case.facts, policy=policy, attempt=case.attempt, job=place.job)
    )


def position(facts: JobFacts, policy: JobPolicy) -> JobPosition:
    """Return the SlurmJob's cell in the table."""
    attempt = attempt_of(facts)
    row = row_of(facts.job)
    job = _job(facts, attempt)
    column = _column(facts, row, job)
    if column is JobColumn.PURGED and facts.archive is not None:
        job = facts.archive.job
    case = ObjectCase(facts=facts, policy=policy, attempt=attempt)
    return JobPosition(case=case, job=job, row=row, column=column)


def leave_alone(place: JobPosition) -> JobDecision | None:
    """Leave another controller's SlurmJob alone, whatever Slurm has."""
    return rules.leave(place.case) if place.row is JobRow.FOREIGN else None


def wait_for_slurm(place: JobPosition) -> JobDecision | None:
    """Wait while Slurm cannot be read: silence proves nothing."""
    if place.case.facts.seen.reachable:
        return None
    return rules.wait("Slurm cannot be read", retry=_UNREACHABLE_RETRY)


def cancel_the_rest(place: JobPosition) -> JobDecision | None:
    """Cancel surplus jobs: those of earlier attempts, and a second one of the present attempt."""
    rest = tuple(
        job
        for job in place.case.facts.seen.jobs
        if job is not place.job and job.phase is not JobPhase.ENDED
    )
    if not rest:
        return None
    ids = ", ".join(str(job.id) for job in rest)
    return rules.cancel_several(rest, f"Slurm has surplus jobs of it: {ids}")


def cancel_overdue(place: JobPosition) -> JobDecision | None:
    """Cancel a job whose `activeDeadlineSeconds` have passed."""
    job, case = place.job, place.case
    if job is None or job.phase is JobPhase.ENDED:
        return None
    overdue = BatchCase(facts=case.facts, policy=case.policy, attempt=case.attempt, job=job)
    if overdue.deadline_at is None or case.facts.now < overdue.deadline_at:
        return None
    return rules.cancel_several((job,), f"activeDeadlineSeconds have passed for Slurm job {job.id}")


BEFORE: Sequence[Callable[[JobPosition], JobDecision | None]] = (
    leave_alone,
    wait_for_slurm,
    cancel_the_rest,
    cancel_overdue,
)
"""Steps before the table: the first one that returns a decision wins. Their docstrings are their text
in `docs/slurmjob-lifecycle.md`."""


def row_of(job: SlurmJobObject) -> JobRow:
    """Derive the object's situation."""
    if not job.is_ours:
        return JobRow.FOREIGN
    if job.metadata.deletion_timestamp is not None:
        return JobRow.DELETING
    if job.status.phase in ("Succeeded", "Failed"):
        return JobRow.DONE
    if job.status.results is not None and job.status.results.phase == "Collecting":
        return JobRow.COLLECTING
    if job.spec.suspend:
        return JobRow.SUSPENDED
    if names.SLURM_JOB_FINALIZER not in (job.metadata.finalizers or ()):
        return JobRow.NEW
    return JobRow.READY if job.status.job_id is None else JobRow.SUBMITTED


def attempt_of(facts: JobFacts) -> int:
    """Return the number of the present attempt: the status's, or a later one that Slurm has a job of."""
    marked = (job.mark.attempt for job in facts.seen.jobs)
    return max([1, facts.job.status.attempt, *marked])


def needs_archive(facts: JobFacts) -> bool:
    """Check whether slurmdbd must be asked, because slurmctld may have forgotten a job or tasks of one."""
    row = row_of(facts.job)
    if row not in (JobRow.READY, JobRow.SUBMITTED, JobRow.SUSPENDED):
        return False
    job = _job(facts, attempt_of(facts))
    if job is not None:
        return _lacks_tasks(facts, job)
    return facts.seen.surely_none and _may_have_been(facts, row)


def _lacks_tasks(facts: JobFacts, job: BatchJob) -> bool:
    """Check whether an array is over but the ends of some of its tasks are not certain."""
    if job.array is None or not job.is_over:
        return False
    tasks = report.array_tasks(job.array, facts.job.status.array)
    return not job.array.is_sure or tasks.unknown > 0


def _job(facts: JobFacts, attempt: int) -> BatchJob | None:
    """Pick the job that counts: the one that the status names, else a live one, else the oldest."""
    candidates = [job for job in facts.seen.jobs if job.mark.attempt == attempt]
    status = facts.job.status
    id_ = None if status.job_id is None or status.attempt != attempt else JobId(status.job_id)
    sluid = Sluid(status.sluid) if status.sluid else None
    return min(
        candidates,
        key=lambda job: (
            not job.is_named(id_, sluid),
            job.phase is JobPhase.ENDED,
            job.phase is JobPhase.WAITING,
            job.id,
        ),
        default=None,
    )


def _may_have_been(facts: JobFacts, row: JobRow) -> bool:
    if row is JobRow.SUSPENDED and names.SLURM_JOB_FINALIZER not in (
        facts.job.metadata.finalizers or ()
    ):
        return False  # no leader submits without it
    return facts.job.status.job_id is not None or not facts.is_untried


def _column(facts: JobFacts, row: JobRow, job: BatchJob | None) -> JobColumn:
    if not facts.seen.reachable:
        return JobColumn.UNKNOWN
    if job is not None and not needs_archive(facts):
        return _column_of_phase(job)
    if job is not None:
        return _BY_ARCHIVE_OF_TASKS.get(_archive_answer(facts), JobColumn.ENDED)
    if row is JobRow.NEW:
        return JobColumn.NONE
    if not facts.seen.surely_none:
        return JobColumn.UNKNOWN
    if not needs_archive(facts):
        return JobColumn.NONE
    answer = _archive_answer(facts)
    if answer is ArchiveFinding.NOTHING and facts.job.status.job_id is not None:
        return JobColumn.LOST
    return _BY_ARCHIVE[answer]


def _archive_answer(facts: JobFacts) -> ArchiveFinding:
    return facts.archive.finding if facts.archive else ArchiveFinding.ASKING


def _column_of_phase(job: BatchJob) -> JobColumn:
    match job.phase:
        case JobPhase.WAITING:
            return JobColumn.WAITING
        case JobPhase.RUNNING:
            return JobColumn.RUNNING
        case JobPhase.PAUSED:
            return JobColumn.PAUSED
        case JobPhase.ENDED:
            return JobColumn.ENDED if job.is_over else JobColumn.SETTLING
        case _:
            assert_never(job.phase)
