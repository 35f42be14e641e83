"""The 185 families of SchedMD's slurm-exporter: its names and labels, with right values.

What differs from slurm-exporter: `_bytes` are bytes and `_seconds` seconds (it has MiB and
microseconds), and the two `stageout` families, which it declares but never emits, exist.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from slurmexporter.families import counting, figures, scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import Figure, FigureSet
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.text.family import Metric, gauge

_JOB_STATES: Final = {
    "bootfail": "BOOT_FAIL",
    "cancelled": "CANCELLED",
    "completed": "COMPLETED",
    "deadline": "DEADLINE",
    "failed": "FAILED",
    "pending": "PENDING",
    "preempted": "PREEMPTED",
    "running": "RUNNING",
    "suspended": "SUSPENDED",
    "timeout": "TIMEOUT",
    "nodefail": "NODE_FAIL",
    "outofmemory": "OUT_OF_MEMORY",
}
_JOB_FLAGS: Final = {
    "completing": "COMPLETING",
    "configuring": "CONFIGURING",
    "powerupnode": "POWER_UP_NODE",
    "stageout": "STAGE_OUT",
}
_NODE_STATES: Final = ("allocated", "down", "error", "future", "idle", "mixed", "unknown")
_NODE_FLAGS: Final = {
    "completing": "COMPLETING",
    "drain": "DRAIN",
    "fail": "FAIL",
    "maintenance": "MAINTENANCE",
    "notresponding": "NOT_RESPONDING",
    "planned": "PLANNED",
    "rebootrequested": "REBOOT_REQUESTED",
    "reserved": "RESERVED",
}
_JOBS: Final[Mapping[str, Figure[Cell]]] = {
    "total": figures.jobs("Jobs", lambda _: True, "jobs"),
    "hold_total": figures.jobs("Jobs that are held", lambda cell: cell.traits.is_held, "jobs"),
    **{f"{short}_total": figures.in_state(state, "jobs") for short, state in _JOB_STATES.items()},
    **{f"{short}_total": figures.with_flag(flag, "jobs") for short, flag in _JOB_FLAGS.items()},
    "cpus_alloc_total": figures.allocated("CPUs allocated to jobs", lambda cell: cell.cpus),
    "memory_alloc_bytes": figures.allocated(
        "Memory allocated to jobs", lambda cell: cell.memory_bytes
    ),
}
"""As in slurm-exporter, the pending tasks of an array are one job."""
_NODES: Final[Mapping[str, Figure[SlurmNode]]] = {
    "total": figures.nodes("Nodes", lambda _: True),
    **{f"{state}_total": figures.nodes_in(state.upper()) for state in _NODE_STATES},
    **{f"{short}_total": figures.nodes_in(flag) for short, flag in _NODE_FLAGS.items()},
}
_SIZES: Final[Mapping[str, Figure[SlurmNode]]] = {
    "cpus_total": figures.size("CPUs", lambda node: node.cpus),
    "cpus_effective_total": figures.size("Usable CPUs", lambda node: node.effective_cpus),
    "cpus_alloc_total": figures.size("Allocated CPUs", lambda node: node.allocated_cpus),
    "cpus_idle_total": figures.size("Idle CPUs", lambda node: node.idle_cpus),
    "memory_bytes": figures.size("Memory", lambda node: node.memory_bytes),
    "memory_effective_bytes": figures.size(
        "Usable memory", lambda node: node.effective_memory_bytes
    ),
    "memory_alloc_bytes": figures.size(
        "Allocated memory", lambda node: node.allocated_memory_bytes
    ),
    "memory_free_bytes": figures.size("Unused memory", lambda node: node.free_memory_bytes or 0),
}

_PARTITION: Final = "partition"
_BY_PARTITION: Final = " by partition."
JOBS: Final = FigureSet("slurm_jobs", _JOBS)
ACCOUNT_JOBS: Final = FigureSet("slurm_account_jobs", _JOBS, "account", ends=" by account.")
USER_JOBS: Final = FigureSet(
    "slurm_user_jobs", _JOBS, "userid", "username", ends=" by userid and username."
)
PARTITION_JOBS: Final = FigureSet("slurm_partition_jobs", _JOBS, _PARTITION, ends=_BY_PARTITION)
MOST_NODES: Final = gauge(
    "slurm_partition_jobs_pending_maxnodecount_total",
    "Most nodes requested by a pending job that is not held.",
    _PARTITION,
)
NODES: Final = FigureSet("slurm_nodes", _NODES)
NODE_SIZES: Final = FigureSet("slurm_node", _SIZES, "node", ends=" of a node.")
PARTITION_NODES: Final = FigureSet("slurm_partition_nodes", _NODES, _PARTITION, ends=_BY_PARTITION)
PARTITION_SIZES: Final = FigureSet(
    "slurm_partition_nodes", _SIZES, _PARTITION, ends=" of the nodes of a partition."
)


def jobs(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs in all, by account, user and partition."""
    out, cells = MetricBuilder(), counting.cells_of(picture)
    JOBS.add(out, cells)
    ACCOUNT_JOBS.add_all(out, counting.by_account(cells, limits))
    ids = {cell.traits.user: str(cell.traits.user_id) for cell in cells}
    for name, group in counting.by_user(cells, limits).items():
        USER_JOBS.add(out, group, ids.get(name, ""), name)
    for name, group in counting.by_partition(picture, cells).items():
        PARTITION_JOBS.add(out, group, name)
        able = (cell.most_nodes for cell in group if cell.is_pending and not cell.traits.is_held)
        out.add(MOST_NODES, max(able, default=0), name)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return nodes in all and by partition, and what each has."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    NODES.add(out, slurm_nodes)
    if limits.node_series:
        NODE_SIZES.add_all(out, {node.name: [node] for node in slurm_nodes})
    for name, group in counting.nodes_by_partition(picture).items():
        PARTITION_NODES.add(out, group, name)
        PARTITION_SIZES.add(out, group, name)
    return out


CHAPTERS: Final = (
    Chapter(
        name="jobs",
        sources=("jobs", "partitions"),
        families=(
            *JOBS.families,
            *ACCOUNT_JOBS.families,
            *USER_JOBS.families,
            *PARTITION_JOBS.families,
            MOST_NODES,
        ),
        write=jobs,
    ),
    Chapter(
        name="nodes",
        sources=("nodes", "partitions"),
        families=(
            *NODES.families,
            *NODE_SIZES.families,
            *PARTITION_NODES.families,
            *PARTITION_SIZES.families,
        ),
        write=nodes,
    ),
    scheduler_figures.chapter(
        scheduler_figures.families(scheduler_figures.SLINKY, "under slurm-exporter's name")
    ),
)
