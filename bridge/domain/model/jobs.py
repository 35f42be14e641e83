"""A Slurm job as slurmrestd reports it, reduced to what decisions need."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.model.allocation import Component
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
class SlurmJob(Component):
    """One job that carries our mark; `tasks` is the number of pods that it has room for."""

    id: JobId
    sluid: Sluid | None
    """None between our submit and the first full read."""
    phase: JobPhase
    states: frozenset[str] = frozenset()
    """Base state and flags as Slurm reports them: RUNNING, CONFIGURING …"""
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
    nodes: tuple[SlurmNode, ...] = ()
    """In the order of Slurm's table of nodes, which need not follow its topology."""
    cpus: int = 0
    """For a running job: its CPUs on all of its nodes together."""
    devices: Mapping[SlurmNode, Mapping[str, tuple[int, ...]]] | None = None
    """For a running job: the indexes of its devices, by node and GRES. None if they were not asked for."""
    parts: tuple[Component, ...] = ()
    """For a heterogeneous job: its components with their tasks and shares; () for all others."""
    remains: bool = False
    """For a heterogeneous job that has ended: one of its components has not."""
    required_nodes: tuple[SlurmNode, ...] = ()
    """As requested, not as allocated. Once one of these or of `excluded_nodes` is deleted, Slurm
    refuses every update of the job."""
    excluded_nodes: tuple[SlurmNode, ...] = ()
    identity: Identity
    held: bool = False
    """Priority 0: an administrator or the user holds it."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ends_at: datetime | None = None
    """When running: when its time limit ends it. When waiting: never set."""
    expected_start: datetime | None = None
    """When waiting: the backfill scheduler's estimate."""
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
        return self.parts or (self,)

    @property
    def ids(self) -> tuple[JobId, ...]:
        """Its own id and those of its further components."""
        return tuple(JobId(self.id + offset) for offset in range(len(self.components)))

    def is_named(self, job_id: JobId | None, sluid: Sluid | None) -> bool:
        """Check whether these ids name this job.

        Job ids are reused, so a SLUID decides where both sides have one.
        """
        return self.id == job_id and (None in (sluid, self.sluid) or sluid == self.sluid)
