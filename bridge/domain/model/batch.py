"""Batch jobs of ours: the mark that a SlurmJob's Slurm job carries, and such a job as Slurm reports it.

The mark is of another kind than a placeholder's (`identities`): code that looks for placeholders
treats a batch job as foreign and leaves it alone, and the other way round.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.model import identities
from bridge.domain.model.identities import UnreadableIdentityError
from bridge.domain.model.jobs import JobEnd, JobPhase
from slurmruntime.values.ids import ClusterId, JobId, Sluid, WorkloadKey

BATCH_MARK = "slurm-job"
"""The JSON key that marks a batch job as ours; its value is the version."""

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMark:
    """Whose batch job it is: kept in `admin_comment`, which only root and SlurmUser can write."""

    cluster: ClusterId
    namespace: str
    name: str
    key: WorkloadKey
    """The SlurmJob's uid; called `uid` in the JSON."""
    attempt: int
    """Which of the SlurmJob's jobs it is, from 1. A suspended SlurmJob gets another one later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayTally:
    """How many tasks of an array are in which state."""

    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: tuple[int, ...] = ()
    """The numbers of the tasks that ended in any other way, in order."""
    unknown: int = 0
    """Tasks that Slurm forgot before their end was read."""
    is_sure: bool = True
    """False if tasks have vanished: then only slurmdbd knows how they ended, or that they never began."""
    is_record: bool = False
    """It is slurmdbd's: a task that is not in it was cancelled before it began."""

    @property
    def total(self) -> int:
        """All tasks."""
        return self.waiting + self.running + self.succeeded + len(self.failed) + self.unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """One Slurm job that carries a SlurmJob's mark."""

    id: JobId
    """Of an array, the array's."""
    sluid: Sluid | None
    """None between our submit and the first full read."""
    phase: JobPhase
    """A requeued job is WAITING, whatever its base state."""
    mark: BatchMark
    states: frozenset[str] = frozenset()
    """Base state and flags; of a record of an array, each task's after its number: `3:RUNNING`."""
    state: str = ""
    """The same for people: `RUNNING`, `COMPLETED,COMPLETING`."""
    remains: bool = False
    """It has ended, but slurmctld still waits for its nodes, or for other tasks of the array."""
    end: JobEnd | None = None
    """Set when ENDED."""
    exit_code: int = 0
    signal: int = 0
    step_exit_code: int = 0
    """The highest of its steps'."""
    reason: str = ""
    """Slurm's state reason; "" if Slurm gives None."""
    reason_text: str = ""
    held: bool = False
    """Priority 0: an administrator or the user holds it."""
    restarts: int = 0
    user: str = ""
    uid: int | None = None
    gid: int | None = None
    """The user's and group's numbers; None where Slurm has not said."""
    account: str = ""
    partition: str = ""
    qos: str = ""
    nodes: str = ""
    """In Slurm's form: `gpu[1-2]`."""
    batch_host: str = ""
    directory: str = ""
    """The job's working directory."""
    stdout: str = ""
    stderr: str = ""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    expected_start: datetime | None = None
    array_id: JobId | None = None
    """The array that it is, or that it is a record of."""
    array: ArrayTally | None = None
    """Set for an array as a whole."""

    @property
    def is_over(self) -> bool:
        """Check whether it has ended for good: no node is being cleaned up, no task is left."""
        return self.phase is JobPhase.ENDED and not self.remains

    @property
    def is_impossible(self) -> bool:
        """True if Slurm ended it because none of its nodes could ever run it: it never had any."""
        has_run = self.array is not None and self.array.succeeded > 0
        return self.end is JobEnd.FAILED and not (self.nodes or self.batch_host or has_run)

    def is_named(self, job_id: JobId | None, sluid: Sluid | None) -> bool:
        """Check whether these ids name this job; a sluid decides where both sides have one."""
        return self.id == job_id and (None in (sluid, self.sluid) or sluid == self.sluid)


def encode(mark: BatchMark) -> str:
    """Write a mark for `admin_comment`: compact ASCII JSON, about 200 bytes."""
    document = {
        BATCH_MARK: _VERSION,
        "cluster": mark.cluster,
        "namespace": mark.namespace,
        "name": mark.name,
        "uid": mark.key,
        "attempt": mark.attempt,
    }
    return json.dumps(document, separators=(",", ":"))


def decode(text: str) -> BatchMark | None:
    """Read an `admin_comment`; None for a foreign job's, and for a placeholder's.

    Raises UnreadableIdentityError if it has the mark, but is of a newer version, or damaged.
    """
    return identities.marked(text, BATCH_MARK, _VERSION, _read)


def _read(document: Mapping[str, object], cluster: ClusterId) -> BatchMark:
    texts = {key: document.get(key) for key in ("namespace", "name", "uid")}
    attempt = document.get("attempt")
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 1:
        wrong.append("attempt")
    if wrong or not isinstance(attempt, int):
        raise UnreadableIdentityError(
            f"the identity of a SlurmJob's job is damaged: see {', '.join(wrong)}", cluster=cluster
        )
    return BatchMark(
        cluster=cluster,
        namespace=str(texts["namespace"]),
        name=str(texts["name"]),
        key=WorkloadKey(str(texts["uid"])),
        attempt=attempt,
    )
