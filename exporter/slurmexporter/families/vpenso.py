"""The families of vpenso's prometheus-slurm-exporter, for its dashboards (4323, 23350).

Its names have no units and its memory is in MB (MiB, as Slurm counts); both are kept for the dashboards.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from slurmexporter.families import counting, figures, scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import Figure, FigureSet
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.readings.tres import MIB
from slurmexporter.text.family import Family, Metric, gauge


def _gauge(name: str, words: str, *labels: str) -> Family:
    return gauge(f"slurm_{name}", words, *labels)


def _jobs_in(state: str) -> Figure[Cell]:
    return figures.jobs(f"{state.capitalize()} jobs", lambda cell: cell.traits.state == state)


_GROUP: Final[Mapping[str, Figure[Cell]]] = {
    "jobs_pending": _jobs_in("PENDING"),
    "jobs_running": _jobs_in("RUNNING"),
    "cpus_running": (
        "CPUs allocated to running jobs",
        lambda cells: sum(cell.cpus for cell in cells if cell.traits.state == "RUNNING"),
    ),
    "jobs_suspended": _jobs_in("SUSPENDED"),
}
ACCOUNTS: Final = FigureSet("slurm_account", _GROUP, "account")
USERS: Final = FigureSet("slurm_user", _GROUP, "user")
QUEUE: Final[FigureSet[Cell]] = FigureSet(
    "slurm_queue",
    {
        "pending": figures.in_state("PENDING"),
        "running": figures.in_state("RUNNING"),
        "suspended": figures.in_state("SUSPENDED"),
        "cancelled": figures.in_state("CANCELLED"),
        "completed": figures.in_state("COMPLETED"),
        "failed": figures.in_state("FAILED"),
        "timeout": figures.in_state("TIMEOUT"),
        "preempted": figures.in_state("PREEMPTED"),
        "node_fail": figures.in_state("NODE_FAIL"),
        "pending_dependency": figures.jobs(
            "Pending jobs with dependencies",
            lambda cell: cell.is_pending and cell.traits.has_dependency,
        ),
        "completing": figures.with_flag("COMPLETING"),
        "configuring": figures.with_flag("CONFIGURING"),
    },
)

CPUS: Final = {
    "alloc": _gauge("cpus_alloc", "Allocated CPUs."),
    "idle": _gauge("cpus_idle", "Idle CPUs."),
    "other": _gauge("cpus_other", "CPUs of nodes that are down or drained."),
    "total": _gauge("cpus_total", "CPUs."),
}
GPUS: Final = {
    "alloc": _gauge("gpus_alloc", "Allocated GPUs."),
    "idle": _gauge("gpus_idle", "Idle GPUs."),
    "other": _gauge("gpus_other", "Unallocated GPUs of nodes that are down or drained."),
    "total": _gauge("gpus_total", "GPUs."),
    "utilization": _gauge("gpus_utilization", "Fraction of GPUs that is allocated."),
}
PARTITION: Final = {
    "allocated": _gauge("partition_cpus_allocated", "Allocated CPUs.", "partition"),
    "idle": _gauge("partition_cpus_idle", "Idle CPUs.", "partition"),
    "other": _gauge("partition_cpus_other", "CPUs of nodes that are down or drained.", "partition"),
    "total": _gauge("partition_cpus_total", "CPUs.", "partition"),
}
PARTITION_PENDING: Final = _gauge("partition_jobs_pending", "Pending jobs.", "partition")
_NODE: Final = ("node", "status")
NODE: Final = {
    "cpu_alloc": _gauge("node_cpu_alloc", "Allocated CPUs of a node.", *_NODE),
    "cpu_idle": _gauge("node_cpu_idle", "Idle CPUs of a node.", *_NODE),
    "cpu_other": _gauge("node_cpu_other", "CPUs of a node that is down or drained.", *_NODE),
    "cpu_total": _gauge("node_cpu_total", "CPUs of a node.", *_NODE),
    "mem_alloc": _gauge("node_mem_alloc", "Allocated memory of a node, in MiB.", *_NODE),
    "mem_total": _gauge("node_mem_total", "Memory of a node, in MiB.", *_NODE),
}


def _without_flags(state: str) -> Callable[[SlurmNode], bool]:
    return lambda node: node.state == state and not _is_apart(node)


NODES: Final = FigureSet(
    "slurm_nodes",
    {
        "alloc": figures.nodes("Nodes that are allocated", _without_flags("ALLOCATED")),
        "comp": figures.nodes("Nodes that are completing", lambda node: "COMPLETING" in node.flags),
        "down": figures.nodes("Nodes that are down", lambda node: node.state == "DOWN"),
        "drain": figures.nodes(
            "Nodes that are drained or draining",
            lambda node: "DRAIN" in node.flags and node.state != "DOWN",
        ),
        "err": figures.nodes("Nodes that are in error", lambda node: node.state == "ERROR"),
        "fail": figures.nodes("Nodes that are failing", lambda node: "FAIL" in node.flags),
        "idle": figures.nodes("Nodes that are idle", _without_flags("IDLE")),
        "maint": figures.nodes(
            "Nodes that are in maintenance", lambda node: "MAINTENANCE" in node.flags
        ),
        "mix": figures.nodes("Nodes that are partly allocated", _without_flags("MIXED")),
        "resv": figures.nodes("Nodes that are reserved", lambda node: "RESERVED" in node.flags),
    },
)
FAIRSHARE: Final = _gauge("account_fairshare", "Fair-share factor of an account.", "account")

_SCHEDULER: Final = {
    _gauge("scheduler_threads", "Threads of slurmctld."): "server_thread_count",
    _gauge("scheduler_queue_size", "RPCs waiting to be sent by slurmctld."): "agent_queue_size",
    _gauge("scheduler_dbd_queue_size", "Messages waiting to be sent to slurmdbd."): "dbd_agent_queue_size",
    _gauge("scheduler_last_cycle", "Last cycle of the main scheduler in microseconds."): "schedule_cycle_last",
    _gauge("scheduler_mean_cycle", "Mean cycle of the main scheduler in microseconds."): "schedule_cycle_mean",
    _gauge("scheduler_cycle_per_minute", "Cycles of the main scheduler per minute."): "schedule_cycle_per_minute",
    _gauge("scheduler_backfill_last_cycle", "Last backfill cycle in microseconds."): "bf_cycle_last",
    _gauge("scheduler_backfill_mean_cycle", "Mean backfill cycle in microseconds."): "bf_cycle_mean",
    _gauge("scheduler_backfill_depth_mean", "Mean depth of backfill cycles."): "bf_depth_mean",
    _gauge("scheduler_backfilled_jobs_since_start_total", "Backfilled jobs since slurmctld started."): "bf_backfilled_jobs",
    _gauge("scheduler_backfilled_jobs_since_cycle_total", "Backfilled jobs since midnight."): "bf_last_backfilled_jobs",
    _gauge("scheduler_backfilled_heterogeneous_total", "Backfilled heterogeneous components."): "bf_backfilled_het_jobs",
}  # fmt: skip


def jobs(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs in all, by account, user and partition."""
    out = MetricBuilder()
    cells = picture.jobs.cells if picture.jobs else ()
    QUEUE.add(out, cells)
    for families, namer in (
        (ACCOUNTS, counting.by_account(cells, limits)),
        (USERS, counting.by_user(cells, limits)),
    ):
        for name, group in counting.groups(cells, namer).items():
            families.add(out, group, name)
    names = [partition.name for partition in picture.partitions or ()]
    for name, group in counting.groups(cells, counting.in_partitions, names).items():
        out.add(PARTITION_PENDING, sum(c.tasks for c in group if c.is_pending), name)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return nodes, CPUs and GPUs in all, by node and by partition."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    NODES.add(out, slurm_nodes)
    _cpus(out, CPUS, (), slurm_nodes)
    total = sum(node.gpus for node in slurm_nodes)
    used = sum(node.allocated_gpus for node in slurm_nodes)
    out.add(GPUS["total"], total)
    out.add(GPUS["alloc"], used)
    other = sum(node.gpus - node.allocated_gpus for node in slurm_nodes if not _is_usable(node))
    out.add(GPUS["other"], other)
    out.add(GPUS["idle"], total - used - other)
    out.add(GPUS["utilization"], used / total if total else 0)
    if limits.node_series:
        for node in slurm_nodes:
            _one(out, node)
    for name, group in counting.nodes_by_partition(picture).items():
        _cpus(out, PARTITION, (name,), group)
    return out


def fairshare(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the fair-share of accounts."""
    out = MetricBuilder()
    for share in picture.shares or ():
        if "USER" not in share.type and share.fairshare.factor is not None:
            out.add(FAIRSHARE, share.fairshare.factor, share.name)
    return out


def _cpus(
    out: MetricBuilder,
    families: Mapping[str, Family],
    labels: tuple[str, ...],
    nodes: Sequence[SlurmNode],
) -> None:
    sums = [sum(column) for column in zip(*map(_shares_of_cpus, nodes), strict=True)] or [0] * 4
    for family, amount in zip(families.values(), sums, strict=True):
        out.add(family, amount, *labels)


def _one(out: MetricBuilder, node: SlurmNode) -> None:
    labels = node.name, _status(node)
    for suffix, amount in zip(
        ("cpu_alloc", "cpu_idle", "cpu_other", "cpu_total"), _shares_of_cpus(node), strict=True
    ):
        out.add(NODE[suffix], amount, *labels)
    out.add(NODE["mem_alloc"], node.allocated_memory_bytes // MIB, *labels)
    out.add(NODE["mem_total"], node.memory_bytes // MIB, *labels)


def _shares_of_cpus(node: SlurmNode) -> tuple[int, int, int, int]:
    """Return allocated, idle, other and all CPUs, as `sinfo -o %C` shows them."""
    rest = node.effective_cpus - node.allocated_cpus
    idle, other = (rest, 0) if _is_usable(node) else (0, rest)
    return node.allocated_cpus, idle, other, node.effective_cpus


def _is_usable(node: SlurmNode) -> bool:
    return node.state not in {"DOWN", "ERROR", "FUTURE", "UNKNOWN"} and not _is_apart(node)


def _is_apart(node: SlurmNode) -> bool:
    return bool(node.flags & {"DRAIN", "MAINTENANCE", "RESERVED", "FAIL"})


def _status(node: SlurmNode) -> str:
    if "DRAIN" in node.flags:
        return "draining" if node.state in {"ALLOCATED", "MIXED"} else "drained"
    return node.state.lower()


CHAPTERS: Final = (
    Chapter(
        name="jobs",
        sources=("jobs", "partitions"),
        families=(
            *QUEUE.families,
            *ACCOUNTS.families, *USERS.families, PARTITION_PENDING,
        ),
        write=jobs,
    ),
    Chapter(
        name="nodes",
        sources=("nodes", "partitions"),
        families=(
            *NODES.families, *CPUS.values(), *GPUS.values(), *NODE.values(), *PARTITION.values(),
        ),
        write=nodes,
    ),
    scheduler_figures.chapter(_SCHEDULER),
    Chapter(name="fairshare", sources=("shares",), families=(FAIRSHARE,), write=fairshare),
)  # fmt: skip
