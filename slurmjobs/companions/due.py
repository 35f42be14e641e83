"""Which companion is due: decided from the SlurmJob's status and the companion that is there.

Pure and level-triggered, as `slurmjobs.lifecycle.table`. A companion is made when the job starts, told when it has ended, and then stays
for its log: it goes with its SlurmJob, to which it belongs.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from slurmjobs.companions import volume
from slurmjobs.objects.slurmjob import SlurmJobObject

LATE: Final = timedelta(minutes=5)
"""How long after its end a job still gets a companion: a short one may have ended before anybody could make it."""
LONGEST_NAME: Final = 253 - len("-job")


class LogRow(enum.Enum):
    """How the SlurmJob stands."""

    SILENT = "no log to be had"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "has just ended"
    PAST = "ended some time ago"


class LogColumn(enum.Enum):
    """Which companion is there."""

    NONE = "none"
    FOLLOWING = "following"
    DONE = "told of the end, or ended itself"
    OUTDATED = "an earlier job's"


class LogStep(enum.Enum):
    """What is to be done."""

    REST = "nothing"
    MAKE = "make it"
    TELL = "tell it how the job has ended"
    REMOVE = "remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whose a job is, as Slurm has it: numbers, because a name may mean somebody else here."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCompanion:
    """A companion as the API server has it."""

    job_id: str
    """The Slurm job that it follows."""
    ended: str = ""
    """The exit code that it was told; "" so far."""
    is_over: bool = False
    """It has ended, or is being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """Everything that the decision depends on."""

    job: SlurmJobObject
    companion: LogCompanion | None
    now: datetime


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


def step(facts: LogFacts) -> LogStep:
    """Return what is to be done now."""
    return TABLE[row_of(facts.job, facts.now), column_of(facts.job, facts.companion)]


def row_of(job: SlurmJobObject, now: datetime) -> LogRow:
    """Derive how the SlurmJob stands."""
    if not files(job) or job.metadata.deletion_timestamp is not None or not job.is_ours:
        return LogRow.SILENT
    status = job.status
    is_collecting = status.phase == "Running" and status.results is not None
    if status.phase in ("Succeeded", "Failed") or is_collecting:
        is_late = status.end_time is None or now - status.end_time > LATE
        return LogRow.PAST if is_late else LogRow.ENDED
    return LogRow.RUNNING if status.phase == "Running" else LogRow.WAITING


def column_of(job: SlurmJobObject, companion: LogCompanion | None) -> LogColumn:
    """Derive which companion is there."""
    if companion is None:
        return LogColumn.NONE
    if job.status.job_id is not None and companion.job_id != str(job.status.job_id):
        return LogColumn.OUTDATED
    return LogColumn.DONE if companion.is_over or companion.ended else LogColumn.FOLLOWING


def files(job: SlurmJobObject) -> Mapping[str, str]:
    """Return what there is to follow: a container's name and the file's path on the volume.

    Nothing for an array, whose tasks have a file each, and for a job that writes elsewhere.
    """
    output, said = job.spec.output, job.status.outputs
    too_long = len(job.metadata.name) > LONGEST_NAME
    if output is None or said is None or job.status.array is not None or too_long:
        return {}
    found = {
        "stdout": volume.within(said.stdout, output.cluster_path),
        "stderr": volume.within(said.stderr, output.cluster_path)
        if said.stderr != said.stdout
        else None,
    }
    return {name: path for name, path in found.items() if path is not None}


def exit_code(job: SlurmJobObject) -> int:
    """Return the exit code of a companion whose job has ended: the script's, or 128 and the signal as shells have it.

    A job that failed otherwise, at its time limit for instance, has none of its own: 1.
    """
    status = job.status
    if status.signal:
        return min(128 + status.signal, 255)
    phase = status.results.ended.phase if status.results else status.phase
    return status.exit_code or (0 if phase == "Succeeded" else 1)
