"""The placeholder: what we ask of Slurm for a workload, and the identity it carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bridge.domain.ids import ClusterId, PodUid, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose placeholder it is: stored in the job's `admin_comment`, which only root and SlurmUser can write."""

    cluster: ClusterId
    kind: str
    """The workload's kind: `Pod`, later Job, JobSet …"""
    namespace: str
    name: str
    uid: str
    pods: tuple[PodUid, ...]
    cause: str = ""
    """Why we cancelled it ourselves, written before the cancel; "" otherwise. Such an end is ours to answer: submit again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderSpec:
    """A job submission, in Slurm's terms. Empty strings and None leave the field to Slurm's defaults."""

    identity: Identity
    name: str
    user: str
    """Slurm user (name or uid) the job runs as."""
    group: str
    """Always sent with the user: otherwise Slurm takes the submitter's group (root's)."""
    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    wckey: str = ""
    nodes_min: int = 1
    nodes_max: int = 1
    tasks: int = 1
    cpus_per_task: int
    memory_mib_per_node: int
    """Never 0: Slurm reads 0 as the whole node."""
    gres_per_node: str = ""
    """`gres/gpu:a100:2,gres/shard:1`."""
    time_limit_min: int | None = None
    exclusive: bool = False
    constraints: str = ""
    """A feature expression; legal label characters go in verbatim."""
    required_nodes: tuple[SlurmNode, ...] = ()
    excluded_nodes: tuple[SlurmNode, ...] = ()
    licenses: str = ""
    priority: int | None = None
    nice: int | None = None
    hold: bool = False
    begin_at: datetime | None = None
    deadline_at: datetime | None = None
    dependency: str = ""
    switches: str = ""
    comment: str = ""
    mcs_label: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
