"""The placeholder: what we request from Slurm for a workload."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bridge.domain.model.identities import Identity
from slurmruntime.values.ids import SlurmNode

ROOT = frozenset({"root", "0"})
_NUMBER = re.compile(r"[+-]?(0[xX][0-9A-Fa-f]+|[0-9]+)")
"""What Slurm may read as a uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Whose a job is and what it is charged to. "" means Slurm's default or nothing."""

    name: str
    user: str
    """The Slurm user (name or uid) that the job runs as."""
    group: str
    """Always sent with the user: otherwise Slurm takes the submitter's group (root's)."""
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    wckey: str = ""
    licenses: str = ""
    mcs_label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderSpec(Terms):
    """A job submission, in Slurm's terms. Empty strings and None mean Slurm's defaults."""

    identity: Identity
    nodes_min: int | None = 1
    nodes_max: int | None = 1
    """None: as many as Slurm likes; tasks may share a node."""
    tasks: int = 1
    """One for each pod."""
    cpus_per_task: int
    memory_mib_per_node: int | None = None
    """Either this field or the next one is set, and never to 0: Slurm reads 0 as the whole node.
    This one suits a single task."""
    memory_mib_per_cpu: int | None = None
    """With several tasks: each has its memory, however many of them share a node."""
    gres_per_node: str = ""
    """`gres/gpu:a100:2,gres/shard:1`."""
    gres_per_task: str = ""
    """The same, with several tasks."""
    time_limit_min: int | None = None
    exclusive: bool = False
    constraints: str = ""
    """A feature expression; legal label characters go in verbatim."""
    required_nodes: tuple[SlurmNode, ...] = ()
    is_laid_out: bool = False
    """True if `required_nodes` names each node once for every task that belongs there."""
    excluded_nodes: tuple[SlurmNode, ...] = ()
    priority: int | None = None
    nice: int | None = None
    hold: bool = False
    begin_at: datetime | None = None
    deadline_at: datetime | None = None
    dependency: str = ""
    switches: str = ""
    comment: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    also: tuple["PlaceholderSpec", ...] = ()
    """Further components, if tasks differ in size: together they are a heterogeneous job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a waiting placeholder should request instead; None leaves a field unchanged."""

    nodes: int | None = None
    tasks: int | None = None
    cpus: int | None = None
    """In total: Slurm does not derive it from a changed number of tasks."""
    cpus_per_task: int | None = None
    memory_mib_per_node: int | None = None
    memory_mib_per_cpu: int | None = None
    """Sent again when the number of tasks changes: otherwise Slurm keeps counting the memory of the
    old number."""
    time_limit_min: int | None = None
    qos: str | None = None


def may_be_root(user: str) -> bool:
    """Check whether Slurm may take a user for root, as it takes none for whoever submits: root."""
    return same_user(user.strip()) in {"", *ROOT}


def same_user(user: str) -> str:
    """Return the one spelling of a user to compare: `00` and `0x0` are uid 0, `Root` is root."""
    if _NUMBER.fullmatch(user) is None:
        return user.lower()
    return str(int(user, 16 if "x" in user.lower() else 10))
