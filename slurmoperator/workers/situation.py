"""The input of one decision about a worker."""

import enum
from dataclasses import dataclass
from typing import Final

from slurmruntime.model.nodes import SlurmNodeFacts

REASON_PREFIX: Final = "slurm-operator: "
"""Prefix of the reason of our own drains; SchedMD's operator uses the same."""

BUSY: Final = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
"""States of a node with jobs. As states may be a second old, a node without them may have some."""


class PodStage(enum.Enum):
    """Progress of a worker's pod."""

    UNSTARTED = "unstarted"
    """None of its containers has ever started, so its slurmd cannot have a job."""
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
class WorkerObservation:
    """What is known of a worker's Slurm node."""

    is_sure: bool
    """Slurm's list is complete, and its reading began after our own last write took effect."""
    node: SlurmNodeFacts | None = None
    """None if Slurm has no such node; meaningless unless `is_sure`."""
    has_jobs: bool = True
    """A job that has not ended names the node."""
    quiet_readings: int = 0
    """Consecutive sure readings, this one included, that show it drained and without jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """Everything that one decision depends on."""

    name: str
    """Of its pod and of its Slurm node."""
    pod: WorkerPod | None
    seen: WorkerObservation
    goes: str = ""
    """Why the worker should be removed, such as `scaled in`; "" if it should stay."""
    cordoned: str = ""
    """Why Kubernetes keeps jobs off it; "" if it does not."""
    is_guarded: bool = True
    """Refuse evictions while it may have jobs."""

    @property
    def drain_reason(self) -> str:
        """Our reason to drain it; "" without one."""
        why = self.goes or self.cordoned
        return f"{REASON_PREFIX}{why}" if why else ""
