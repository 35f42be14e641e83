"""The 185 families of SchedMD's slurm-exporter: its names and labels, with right values.

What differs from slurm-exporter: `_bytes` are bytes and `_seconds` seconds (it has MiB and
microseconds), and the two `stageout` families, which it declares but never emits, exist.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from slurmexporter.families import counting, scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.text.family import Family, Metric, gauge

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
_SIZES: Final[Mapping[str, tuple[str, Callable[[SlurmNode], float]]]] = {
    "cpus_total": ("CPUs", lambda node: node.cpus),
    "cpus_effective_total": ("usable CPUs", lambda node: node.effective_cpus),
    "cpus_alloc_total": ("allocated CPUs", lambda node: node.allocated_cpus),
    "cpus_idle_total": ("idle CPUs", lambda node: node.idle_cpus),
    "memory_bytes": ("memory", lambda node: node.memory_bytes),
    "memory_effective_bytes": ("usable memory", lambda node: node.effective_memory_bytes),
    "memory_alloc_bytes": ("allocated memory", lambda node: node.allocated_memory_bytes),
    "memory_free_bytes": ("unused memory", lambda node: node.free_memory_bytes or 0),
}

_ACCOUNT: Final = ("account",)
_USER: Final = ("userid", "username")
_PARTITION: Final = ("partition",)


def _job_families(prefix: str, labels: tuple[str, ...]) -> Mapping[str, Family]:
    words = {"total": "Jobs", "hold_total": "Jobs that are held"}
    words |= {f"{short}_total": f"Jobs in state {state}" for short, state in _JOB_STATES.items()}
    words |= {f"{short}_total": f"Jobs with flag {flag}" for short, flag in _JOB_FLAGS.items()}
    words |= {
        "cpus_alloc_total": "CPUs allocated to jobs",
        "memory_alloc_bytes": "Memory allocated to jobs",
    }
    by = f" by {' and '.join(labels)}" if labels else ""
    return {
        suffix: gauge(f"{prefix}_{suffix}", f"{text}{by}.", *labels)
        for suffix, text in words.items()
    }


def _node_families(prefix: str, labels: tuple[str, ...]) -> Mapping[str, Family]:
    words = {"total": "Nodes"}
    words |= {f"{state}_total": f"Nodes in state {state.upper()}" for state in _NODE_STATES}
    words |= {f"{short}_total": f"Nodes with flag {flag}" for short, flag in _NODE_FLAGS.items()}
    by = f" by {' and '.join(labels)}" if labels else ""
    return {
        suffix: gauge(f"{prefix}_{suffix}", f"{text}{by}.", *labels)
        for suffix, text in words.items()
    }


def _size_families(prefix: str, of: str, labels: tuple[str, ...]) -> Mapping[str, Family]:
    return {
        suffix: gauge(f"{prefix}_{suffix}", f"{text[0].upper()}{text[1:]} of {of}.", *labels)
        for suffix, (text, _) in _SIZES.items()
    }


JOBS: Final = _job_families("slurm_jobs", ())
ACCOUNT_JOBS: Final = _job_families("slurm_account_jobs", _ACCOUNT)
USER_JOBS: Final = _job_families("slurm_user_jobs", _USER)
PARTITION_JOBS: Final = _job_families("slurm_partition_jobs", _PARTITION)
MOST_NODES: Final = gauge(
    "slurm_partition_jobs_pending_maxnodecount_total",
    "Most nodes requested by a pending job that is not held.",
    *_PARTITION,
)
NODES: Final = _node_families("slurm_nodes", ())
NODE_SIZES: Final = _size_families("slurm_node", "a node", ("node",))
PARTITION_NODES: Final = _node_families("slurm_partition_nodes", _PARTITION)
PARTITION_SIZES: Final = _size_families(
    "slurm_partition_nodes", "the nodes of a partition", _PARTITION
)


def jobs(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs in all, by account, user and partition."""
    out = MetricBuilder()
    cells = picture.jobs.cells if picture.jobs else ()
    _jobs(out, JOBS, (), cells)
    for name, group in counting.groups(cells, counting.by_account(cells, limits)).items():
        _jobs(out, ACCOUNT_JOBS, (name,), group)
    ids = {cell.traits.user: str(cell.traits.user_id) for cell in cells}
    for name, group in counting.groups(cells, counting.by_user(cells, limits)).items():
        _jobs(out, USER_JOBS, (ids.get(name, ""), name), group)
    names = [partition.name for partition in picture.partitions or ()]
    for name, group in counting.groups(cells, counting.in_partitions, names).items():
        _jobs(out, PARTITION_JOBS, (name,), group)
        able = (cell.most_nodes for cell in group if cell.is_pending and not cell.traits.is_held)
        out.add(MOST_NODES, max(able, default=0), name)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return nodes in all and by partition, and what each has."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    _nodes(out, NODES, (), slurm_nodes)
    if limits.node_series:
        for node in slurm_nodes:
            _sizes(out, NODE_SIZES, node.name, [node])
    for name, group in counting.nodes_by_partition(picture).items():
        _nodes(out, PARTITION_NODES, (name,), group)
        _sizes(out, PARTITION_SIZES, name, group)
    return out


def _jobs(
    out: MetricBuilder,
    families: Mapping[str, Family],
    labels: tuple[str, ...],
    cells: Sequence[Cell],
) -> None:
    """Add the figures of jobs; as in slurm-exporter, the pending tasks of an array are one job."""
    counts = dict.fromkeys(families, 0.0)
    shorts = {state: short for short, state in _JOB_STATES.items()}
    for cell in cells:
        counts["total"] += cell.jobs
        if short := shorts.get(cell.traits.state):
            counts[f"{short}_total"] += cell.jobs
        for short, flag in _JOB_FLAGS.items():
            counts[f"{short}_total"] += cell.jobs * (flag in cell.traits.flags)
        counts["hold_total"] += cell.jobs * cell.traits.is_held
        if cell.holds:
            counts["cpus_alloc_total"] += cell.cpus
            counts["memory_alloc_bytes"] += cell.memory_bytes
    for suffix, family in families.items():
        out.add(family, counts[suffix], *labels)


def _nodes(
    out: MetricBuilder,
    families: Mapping[str, Family],
    labels: tuple[str, ...],
    nodes: Sequence[SlurmNode],
) -> None:
    out.add(families["total"], len(nodes), *labels)
    for state in _NODE_STATES:
        here = sum(node.state == state.upper() for node in nodes)
        out.add(families[f"{state}_total"], here, *labels)
    for short, flag in _NODE_FLAGS.items():
        out.add(families[f"{short}_total"], sum(flag in node.flags for node in nodes), *labels)


def _sizes(
    out: MetricBuilder, families: Mapping[str, Family], name: str, nodes: Sequence[SlurmNode]
) -> None:
    for suffix, (_, size) in _SIZES.items():
        out.add(families[suffix], sum(map(size, nodes)), name)


CHAPTERS: Final = (
    Chapter(
        name="jobs",
        sources=("jobs", "partitions"),
        families=(
            *JOBS.values(),
            *ACCOUNT_JOBS.values(),
            *USER_JOBS.values(),
            *PARTITION_JOBS.values(),
            MOST_NODES,
        ),
        write=jobs,
    ),
    Chapter(
        name="nodes",
        sources=("nodes", "partitions"),
        families=(
            *NODES.values(),
            *NODE_SIZES.values(),
            *PARTITION_NODES.values(),
            *PARTITION_SIZES.values(),
        ),
        write=nodes,
    ),
    scheduler_figures.chapter(
        scheduler_figures.families(scheduler_figures.SLINKY, "under slurm-exporter's name")
    ),
)
