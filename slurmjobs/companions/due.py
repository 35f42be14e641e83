"""Decide what to do about a job's log companion, from the SlurmJob's status and the existing companion.

Pure and level-triggered, like `slurmjobs.lifecycle.table`. A companion is created when the job starts and gets the exit code when
the job has ended. Then it stays for its log until its SlurmJob, which owns it, is deleted.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from bridge.domain.model.batch import BatchJob
from slurmjobs.companions import volume
from slurmjobs.objects.slurmjob import SlurmJobObject

LATE: Final = timedelta(minutes=5)
"""How long after its end a job still gets a companion: a short job may end before one could be created."""
LONGEST_NAME: Final = 253 - len("-job")


class LogRow(enum.Enum):
    """The SlurmJob's state, as far as its log is concerned."""

    SILENT = "has no log"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "has just ended"
    PAST = "ended some time ago"


class LogColumn(enum.Enum):
    """The existing companion's state."""

    NONE = "none"
    FOLLOWING = "following"
    DONE = "has the exit code, or ended itself"
    OUTDATED = "an earlier job's"


class LogStep(enum.Enum):
    """What to do."""

    REST = "nothing"
    MAKE = "create it"
    TELL = "give it the job's exit code"
    REMOVE = "remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A job's user and group in Slurm: numbers, because a name may mean another user in this cluster."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCompanion:
    """A companion as the API server has it."""

    job_id: str
    ended: str = ""
    """The exit code that it was given; "" before that."""
    is_over: bool = False
    """It has ended, or is being deleted."""


_STEPS: Mapping[LogColumn, Mapping[LogRow, LogStep]] = {
    LogColumn.NONE: {LogRow.RUNNING: LogStep.MAKE, LogRow.ENDED: LogStep.MAKE},
    LogColumn.FOLLOWING: {LogRow.ENDED: LogStep.TELL, LogRow.PAST: LogStep.TELL},
    LogColumn.DONE: {},
    LogColumn.OUTDATED: {
        LogRow.WAITING: LogStep.REMOVE,
        LogRow.RUNNING: LogStep.REMOVE,
        LogRow.ENDED: LogStep.REMOVE,
    },
}
TABLE: Mapping[tuple[LogRow, LogColumn], LogStep] = MappingProxyType(
    {(row, column): _STEPS[column].get(row, LogStep.REST) for row in LogRow for column in LogColumn}
)


def step(job: SlurmJobObject, companion: LogCompanion | None, now: datetime) -> LogStep:
    """Return what to do now."""
    return TABLE[row_of(job, now), column_of(job, companion)]


def row_of(job: SlurmJobObject, now: datetime) -> LogRow:
    """Derive the SlurmJob's row."""
    if not files(job) or job.metadata.deletion_timestamp is not None or not job.is_ours:
        return LogRow.SILENT
    status = job.status
    is_collecting = status.phase == "Running" and status.results is not None
    if status.phase in ("Succeeded", "Failed") or is_collecting:
        is_late = status.end_time is None or now - status.end_time > LATE
        return LogRow.PAST if is_late else LogRow.ENDED
    return LogRow.RUNNING if status.phase == "Running" else LogRow.WAITING


def column_of(job: SlurmJobObject, companion: LogCompanion | None) -> LogColumn:
    """Derive the existing companion's column."""
    if companion is None:
        return LogColumn.NONE
    if job.status.job_id is not None and companion.job_id != str(job.status.job_id):
        return LogColumn.OUTDATED
    return LogColumn.DONE if companion.is_over or companion.ended else LogColumn.FOLLOWING


def files(job: SlurmJobObject) -> Mapping[str, str]:
    """Return the files to follow, as paths on the volume by the container's name.

    Empty for an array, whose tasks have a file each, and for a job that writes elsewhere.
    """
    output, outputs = job.spec.output, job.status.outputs
    too_long = len(job.metadata.name) > LONGEST_NAME
    if output is None or outputs is None or job.status.array is not None or too_long:
        return {}
    paths = {
        "stdout": volume.within(outputs.stdout, output.cluster_path),
        "stderr": volume.within(outputs.stderr, output.cluster_path)
        if outputs.stderr != outputs.stdout
        else None,
    }
    return {name: path for name, path in paths.items() if path is not None}


def exit_code(job: SlurmJobObject) -> int:
    """Return the exit code for the companion of an ended job: the script's, or 128 plus the signal as in shells.

    A job that failed otherwise, for instance at its time limit, has no exit code of its own: 1.
    """
    status = job.status
    if status.signal:
        return min(128 + status.signal, 255)
    phase = status.results.ended.phase if status.results else status.phase
    return status.exit_code or (0 if phase == "Succeeded" else 1)


def account_of(job: SlurmJobObject, jobs: Iterable[BatchJob]) -> Account | None:
    """Return the user of the SlurmJob's present job according to Slurm; None if Slurm has not said yet."""
    for batch_job in jobs:
        uid, gid = batch_job.uid, batch_job.gid
        if batch_job.id == job.status.job_id and uid is not None and gid is not None:
            return Account(uid=uid, gid=gid)
    return None
