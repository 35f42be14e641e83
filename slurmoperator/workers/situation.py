"""What one decision about a worker depends on."""

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slurmruntime.model.nodes import SlurmNodeFacts

REASON_PREFIX: Final = "slurm-operator: "
"""The beginning of a drain's reason if the drain is ours; SchedMD's operator has the same."""

BUSY: Final = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
"""States of a node that has jobs; it may have some without them, as they may be a second old."""


class PodStage(enum.Enum):
    """How far a worker's pod is."""

    UNSTARTED = "unstarted"
    """None of its containers has ever started: no slurmd of it can have a job."""
    STARTING = "starting"
    READY = "ready"
    OVER = "over"
    """Failed or Succeeded: its containers are gone for good."""
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPod:
    """A worker's pod."""

    uid: str
    resource_version: str
    stage: PodStage
    is_protected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorker:
    """What is known of a worker's Slurm node."""

    is_sure: bool
    """Slurm was read, its list is whole, and the reading began after our own last write took effect."""
    node: SlurmNodeFacts | None = None
    """None if Slurm has no such node; says nothing unless `is_sure`."""
    has_jobs: bool = True
    """A job that has not ended names the node."""
    quiet_readings: int = 0
    """How many sure readings in a row, this one included, show it drained and without jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """Everything that one decision depends on."""

    name: str
    """Of pod and Slurm node."""
    pod: WorkerPod | None
    seen: SeenWorker
    goes: str = ""
    """Why there is to be no such worker, such as `scaled in`; "" if there is to be one."""
    cordoned: str = ""
    """Why Kubernetes wants no jobs there; "" if it does not mind."""
    is_guarded: bool = True
    """Evictions are to be refused while it may have jobs."""

    @property
    def drain_reason(self) -> str:
        """Our reason for a drain; "" if nothing speaks for one."""
        why = self.goes or self.cordoned
        return f"{REASON_PREFIX}{why}" if why else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicy:
    """The settings that decisions depend on."""

    look_again: timedelta = timedelta(seconds=5)
    quiet_readings: int = 2
    """How many readings in a row have to show a node without jobs before its pod is deleted."""
