"""What Slurm says of its own configuration, as values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """How a partition's or a QOS's jobs give way to others."""

    grace_s: int = 0
    modes: Sequence[str] = ()
    """CANCEL, SUSPEND, GANG …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition."""

    name: str
    state: str
    """UP, DOWN, DRAIN or INACTIVE."""
    nodes: int
    is_default: bool = False
    preemption: Preemption = Preemption()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """What slurm.conf says, as slurmctld uses it."""

    scheduler_parameters: Sequence[str] = ()
    """`bf_interval=1` …"""
    gres_types: Sequence[str] = ()
    enforce_part_limits: str = ""
    max_node_count: int = 0
    min_job_age_s: int = 0
    select_type: str = ""
    preempt_modes: Sequence[str] = ()
    prologs: Sequence[str] = ()
    """Paths of PrologSlurmctld."""
