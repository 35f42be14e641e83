"""A Slurm job as slurmrestd reports it, reduced to what decisions need."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bridge.domain.model.allocation import Component, TaskGrant, TaskShare, TaskSize
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from slurmruntime.values.ids import JobId, Sluid, SlurmNode


class JobPhase(enum.Enum):
    """What a job's base state and flags mean for its pods."""

    WAITING = "waiting"
    """PENDING, for whatever reason; also CONFIGURING, as its nodes are not ready."""
    RUNNING = "running"
    PAUSED = "paused"
    """SUSPENDED or STOPPED: the allocation is still ours."""
    ENDED = "ended"
    """Any final state, also while COMPLETING."""


class JobEnd(enum.Enum):
    """Why a placeholder ended; reported to its pods."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    PREEMPTED = "PREEMPTED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    DEADLINE = "DEADLINE"
    BOOT_FAIL = "BOOT_FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnJob:
    """One Slurm job that carries a mark of ours: a placeholder, or a SlurmJob's batch job."""

    id: JobId
    """Of an array, the array's."""
    sluid: Sluid | None
    """None between our submit and the first full read."""
    phase: JobPhase
    """A requeued job is WAITING, whatever its base state."""
    states: frozenset[str] = frozenset()
    """Base state and flags as Slurm reports them: RUNNING, CONFIGURING …; of a record of an array,
    each task's after its number: `3:RUNNING`."""
    remains: bool = False
    """It has ended, but slurmctld still waits for its nodes, for other tasks of the array, or for
    another component of a heterogeneous job."""
    end: JobEnd | None = None
    """Set when ENDED."""
    exit_code: int = 0
    """For an ended job: FAILED 3:0 has 3."""
    signal: int = 0
    """For an ended job: FAILED 0:9 has 9; OUT_OF_MEMORY has 125."""
    reason: str = ""
    """Slurm's state reason: Priority, Resources, QOSMaxGRESPerUser …; "" if Slurm gives None."""
    reason_text: str = ""
    """Slurm's own message (`state_description`), often empty."""
    held: bool = False
    """Priority 0: an administrator or the user holds it."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    expected_start: datetime | None = None
    """When waiting: the backfill scheduler's estimate."""

    @property
    def is_over(self) -> bool:
        """Check whether it has ended for good: no node is being cleaned up, no task is left."""
        return self.phase is JobPhase.ENDED and not self.remains

    def is_named(self, job_id: JobId | None, sluid: Sluid | None) -> bool:
        """Check whether these ids name this job.

        Job ids are reused, so a SLUID decides where both sides have one.
        """
        return self.id == job_id and (None in (sluid, self.sluid) or sluid == self.sluid)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob(OwnJob):
    """A placeholder as Slurm reports it."""

    identity: Identity
    nodes: tuple[SlurmNode, ...] = ()
    """In the order of Slurm's table of nodes, which need not follow its topology."""
    tasks: int = 1
    """The number of pods that it has room for."""
    task: TaskSize = field(default_factory=TaskSize)
    """The size of each task."""
    shares: tuple[TaskShare, ...] = ()
    """For a running job: how many tasks fit on each node, in the same order."""
    cpus: int = 0
    """For a running job: its CPUs on all of its nodes together."""
    task_grant: TaskGrant | None = None
    """For a running job: what each task has. Compared with what its pod takes."""
    devices: Mapping[SlurmNode, Mapping[str, tuple[int, ...]]] | None = None
    """For a running job: the indexes of its devices, by node and GRES. None if they were not asked for."""
    parts: tuple[Component, ...] = ()
    """For a heterogeneous job: its components with their tasks and shares; () for all others."""
    required_nodes: tuple[SlurmNode, ...] = ()
    """As requested, not as allocated. Once one of these or of `excluded_nodes` is deleted, Slurm
    refuses every update of the job."""
    excluded_nodes: tuple[SlurmNode, ...] = ()
    ends_at: datetime | None = None
    """When running: when its time limit ends it. When waiting: never set."""
    time_limit_min: int | None = None
    """None means unlimited."""
    grant: Grant | None = None
    """For a running job: what Slurm granted."""

    @property
    def is_impossible(self) -> bool:
        """True if Slurm ended it because none of its nodes could ever run it: it never had any."""
        return self.end is JobEnd.FAILED and not self.nodes and not self.identity.cause

    @property
    def components(self) -> tuple[Component, ...]:
        """Its task sizes; most jobs have one."""
        return self.parts or (
            Component(
                tasks=self.tasks, task=self.task, shares=self.shares, task_grant=self.task_grant
            ),
        )

    @property
    def ids(self) -> tuple[JobId, ...]:
        """Its own id and those of its further components."""
        return tuple(JobId(self.id + offset) for offset in range(len(self.components)))
