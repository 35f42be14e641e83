"""A Slurm job as slurmrestd reports it, reduced to what decisions need."""

import enum
from dataclasses import dataclass, field
from datetime import datetime

from bridge.domain.ids import JobId, Sluid, SlurmNode
from bridge.domain.model.allocation import Component, TaskShare, TaskSize
from bridge.domain.model.grant import Grant
from bridge.domain.model.placeholder import Identity


class JobPhase(enum.Enum):
    """What a job's base state and flags amount to for its pods."""

    WAITING = "waiting"
    """PENDING, for whatever reason; CONFIGURING too, as its nodes are not ready."""
    RUNNING = "running"
    PAUSED = "paused"
    """SUSPENDED or STOPPED: the allocation is still ours."""
    ENDED = "ended"
    """Any final state; also while COMPLETING."""


class JobEnd(enum.Enum):
    """Why a placeholder ended; what its pods are told."""

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
class SlurmJob:
    """One job that carries our mark."""

    id: JobId
    sluid: Sluid | None
    """None between our submit and the first full read."""
    phase: JobPhase
    states: frozenset[str] = frozenset()
    """Base state and flags as Slurm says them: RUNNING, CONFIGURING …"""
    end: JobEnd | None = None
    """Set when ENDED."""
    exit_code: int = 0
    """Of an ended job: FAILED 3:0 has 3."""
    signal: int = 0
    """Of an ended job: FAILED 0:9 has 9; OUT_OF_MEMORY has 125."""
    reason: str = ""
    """Slurm's state reason: Priority, Resources, QOSMaxGRESPerUser …; "" if it says None."""
    reason_text: str = ""
    """Slurm's own words (`state_description`), often empty."""
    nodes: tuple[SlurmNode, ...] = ()
    """In Slurm's order, which follows its topology."""
    tasks: int = 1
    """How many pods it has room for."""
    task: TaskSize = field(default_factory=TaskSize)
    """How large each is."""
    shares: tuple[TaskShare, ...] = ()
    """Of a running one: how many tasks find room on each node, in the same order."""
    parts: tuple[Component, ...] = ()
    """Of a heterogeneous one, its components with their tasks and shares; () of all others."""
    remains: bool = False
    """Of a heterogeneous one that has ended: a component of it has not."""
    required_nodes: tuple[SlurmNode, ...] = ()
    """As asked for, not what it got. Once one of these or of the next is deleted, Slurm refuses every update of the job."""
    excluded_nodes: tuple[SlurmNode, ...] = ()
    identity: Identity
    held: bool = False
    """Priority 0: an administrator or the user holds it."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ends_at: datetime | None = None
    """When running: when its time limit ends it. When waiting: never set."""
    expected_start: datetime | None = None
    """When waiting: the back-fill scheduler's estimate."""
    time_limit_min: int | None = None
    """None is unlimited."""
    grant: Grant | None = None
    """Of a running one: what Slurm granted."""

    @property
    def components(self) -> tuple[Component, ...]:
        """Its sizes of task, of which most jobs have one."""
        return self.parts or (Component(tasks=self.tasks, task=self.task, shares=self.shares),)

    @property
    def ids(self) -> tuple[JobId, ...]:
        """Its own id, and those of its further components."""
        return tuple(JobId(self.id + offset) for offset in range(len(self.components)))

    def is_named(self, job_id: JobId | None, sluid: Sluid | None) -> bool:
        """Whether it is the job that was called so: job ids are re-used, so a sluid decides where both sides have one."""
        return self.id == job_id and (None in (sluid, self.sluid) or sluid == self.sluid)
