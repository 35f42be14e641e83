"""Say how a SlurmJob ended: Slurm's end states as a phase, a reason, and a sentence."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from bridge.domain.lifecycle import reasons
from bridge.domain.model.batch import BatchJob
from bridge.domain.model.jobs import JobEnd
from slurmjobs.objects.results import JobEnding
from slurmjobs.objects.status import ArrayTasks

DEADLINE_EXCEEDED: Final = "DeadlineExceeded"

NEVER_RUNNABLE: Final = "NeverRunnable"
"""The reason if Slurm accepted the job and found at its next scheduling pass that no node could ever run it."""

TASKS_UNKNOWN: Final = "TasksUnknown"
"""The reason if it is unknown how some tasks of an array ended, and the others ended well."""


ENDS: Mapping[JobEnd, tuple[str, str]] = MappingProxyType(
    {
        JobEnd.COMPLETED: ("Succeeded", "completed"),
        JobEnd.FAILED: ("NonZeroExit", "failed"),
        JobEnd.CANCELLED: ("Cancelled", "was cancelled in Slurm"),
        JobEnd.TIMEOUT: (
            "TimeLimit",
            "reached its time limit: ask for more with --time, as far as the partition allows",
        ),
        JobEnd.PREEMPTED: ("Preempted", "was preempted by a job with a higher priority"),
        JobEnd.NODE_FAIL: (
            "NodeFail",
            "ended as NODE_FAIL: one of its nodes failed or was set DOWN, or its partition or a node of --nodelist was removed from Slurm",
        ),
        JobEnd.OUT_OF_MEMORY: ("OutOfMemory", "ran out of memory: ask for more with --mem"),
        JobEnd.DEADLINE: ("Deadline", "could not end before its --deadline"),
        JobEnd.BOOT_FAIL: ("BootFail", "ended because one of its nodes did not boot"),
    }
)

_NOT_OPENED: Final = 53
"""Slurm's "signal" if slurmstepd could not open the job's output or enter its directory: no line of the script ran."""

_SIGNALS: Final = {1: "HUP", 2: "INT", 6: "ABRT", 9: "KILL", 11: "SEGV", 13: "PIPE", 15: "TERM"}


def of(
    job: BatchJob, *, deadline_at: datetime | None, tasks: ArrayTasks | None = None
) -> JobEnding:
    """Return the outcome of a job that has ended.

    Args:
        deadline_at: when `activeDeadlineSeconds` pass; a cancel from then on is ours.
        tasks: all tasks of an array: Slurm may have forgotten those that failed, and their exit codes.
    """
    if job.end is None:
        raise ValueError(f"job {job.id} has not ended: {job.state}")
    if job.is_impossible:
        why = reasons.why_impossible(job).replace("delete the pod", "delete the SlurmJob")
        text = f"{why}{_particulars(job, tasks)}"
        return JobEnding(phase="Failed", reason=NEVER_RUNNABLE, message=text)
    return _run_outcome(job, job.end, deadline_at=deadline_at, tasks=tasks)


def _run_outcome(
    job: BatchJob, end: JobEnd, *, deadline_at: datetime | None, tasks: ArrayTasks | None
) -> JobEnding:
    particulars = _particulars(job, tasks)
    if end is JobEnd.COMPLETED and tasks is not None and tasks.failed:
        end = JobEnd.FAILED
    if end is JobEnd.COMPLETED and tasks is not None and tasks.unknown:
        text = f"Slurm job {job.id} has ended{particulars}"
        return JobEnding(phase="Failed", reason=TASKS_UNKNOWN, message=text)
    reason, words = ENDS[end]
    if end is JobEnd.CANCELLED:
        if deadline_at is not None and job.ended_at is not None and job.ended_at >= deadline_at:
            reason, words = DEADLINE_EXCEEDED, "was cancelled: its activeDeadlineSeconds had passed"
        elif job.reason == "DependencyNeverSatisfied":
            reason, words = (
                job.reason,
                "was cancelled: a job that it depends on ended so that it can never start",
            )
    elif end is JobEnd.FAILED and job.signal == _NOT_OPENED:
        reason, words = (
            "OutputFailed",
            "failed before its script started: Slurm could not open its output file or directory as its user",
        )
    elif end is JobEnd.FAILED and job.signal:
        reason, words = "Signalled", f"was ended by signal {_signal(job.signal)}"
    elif end is JobEnd.FAILED:
        words = f"failed with exit code {job.exit_code}" if job.exit_code else "failed"
    return JobEnding(
        phase="Succeeded" if end is JobEnd.COMPLETED else "Failed",
        reason=reason,
        message=f"Slurm job {job.id} {words}{particulars}",
    )


def _particulars(job: BatchJob, tasks: ArrayTasks | None) -> str:
    parts: list[str] = []
    if tasks is not None and tasks.failed:
        parts.append(f"{tasks.failed} of its tasks did not end well")
    if tasks is not None and tasks.unknown:
        parts.append(
            f"how {tasks.unknown} of its tasks ended is unknown: Slurm forgot them before"
            " slurm-bridge could read it, and Slurm's accounting has no record of them"
        )
    if job.end is JobEnd.COMPLETED and job.step_exit_code:
        parts.append(f"one of its steps failed with exit code {job.step_exit_code}")
    if job.is_impossible:
        return "".join(f"; {part}" for part in parts)
    if job.started_at is not None and job.ended_at is not None:
        parts.append(f"it ran for {_span(job.ended_at - job.started_at)}")
    if job.end is not JobEnd.COMPLETED and job.stderr:
        parts.append(f"its errors are in {job.stderr}")
    return "".join(f"; {part}" for part in parts)


def _signal(number: int) -> str:
    return f"{number} (SIG{_SIGNALS[number]})" if number in _SIGNALS else str(number)


def _span(span: timedelta) -> str:
    seconds = max(int(span.total_seconds()), 0)
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
