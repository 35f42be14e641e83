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
from bridge.domain.model.jobs import JobEnd, OwnJob
from slurmruntime.values.ids import ClusterId, JobId, WorkloadKey

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
class BatchJob(OwnJob):
    """One Slurm job that carries a SlurmJob's mark."""

    mark: BatchMark
    state: str = ""
    """Its states for people: `RUNNING`, `COMPLETED,COMPLETING`."""
    step_exit_code: int = 0
    """The highest of its steps'."""
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
    ended_at: datetime | None = None
    array_id: JobId | None = None
    """The array that it is, or that it is a record of."""
    array: ArrayTally | None = None
    """Set for an array as a whole."""

    @property
    def is_impossible(self) -> bool:
        """True if Slurm ended it because none of its nodes could ever run it: it never had any."""
        has_run = self.array is not None and self.array.succeeded > 0
        return self.end is JobEnd.FAILED and not (self.nodes or self.batch_host or has_run)


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
