"""The families of vpenso's prometheus-slurm-exporter, for its dashboards (4323, 23350).

Its names have no units and its memory is in MB (MiB, as Slurm counts); both are kept for the dashboards.
"""

from collections.abc import Callable, Iterable, Mapping
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
PARTITION_PENDING: Final = _gauge("partition_jobs_pending", "Pending jobs.", "partition")


def _idle_cpus(node: SlurmNode) -> int:
    return node.effective_cpus - node.allocated_cpus if _is_usable(node) else 0


def _other_cpus(node: SlurmNode) -> int:
    return 0 if _is_usable(node) else node.effective_cpus - node.allocated_cpus


def _cpus(allocated: str) -> Mapping[str, Figure[SlurmNode]]:
    """Return the figures that `sinfo -o %C` shows; vpenso has two names for the first."""
    return {
        allocated: figures.size("Allocated CPUs", lambda node: node.allocated_cpus),
        "idle": figures.size("Idle CPUs", _idle_cpus),
        "other": figures.size("CPUs of nodes that are down or drained", _other_cpus),
        "total": figures.size("CPUs", lambda node: node.effective_cpus),
    }


def _unallocated_gpus(node: SlurmNode) -> float:
    return node.gpus - node.allocated_gpus


def _share_of_gpus(nodes: Iterable[SlurmNode]) -> float:
    total = sum(node.gpus for node in nodes)
    return sum(node.allocated_gpus for node in nodes) / total if total else 0


CPUS: Final = FigureSet("slurm_cpus", _cpus("alloc"))
GPUS: Final = FigureSet(
    "slurm_gpus",
    {
        "total": figures.size("GPUs", lambda node: node.gpus),
        "alloc": figures.size("Allocated GPUs", lambda node: node.allocated_gpus),
        "other": figures.size(
            "Unallocated GPUs of nodes that are down or drained",
            lambda node: 0 if _is_usable(node) else _unallocated_gpus(node),
        ),
        "idle": figures.size(
            "Idle GPUs", lambda node: _unallocated_gpus(node) if _is_usable(node) else 0
        ),
        "utilization": ("Fraction of GPUs that is allocated", _share_of_gpus),
    },
)
NODE: Final = FigureSet(
    "slurm_node",
    {
        "cpu_alloc": figures.size("Allocated CPUs of a node", lambda node: node.allocated_cpus),
        "cpu_idle": figures.size("Idle CPUs of a node", _idle_cpus),
        "cpu_other": figures.size("CPUs of a node that is down or drained", _other_cpus),
        "cpu_total": figures.size("CPUs of a node", lambda node: node.effective_cpus),
        "mem_alloc": figures.size(
            "Allocated memory of a node, in MiB", lambda node: node.allocated_memory_bytes // MIB
        ),
        "mem_total": figures.size(
            "Memory of a node, in MiB", lambda node: node.memory_bytes // MIB
        ),
    },
    "node",
    "status",
)
PARTITION: Final = FigureSet("slurm_partition_cpus", _cpus("allocated"), "partition")


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
    out, cells = MetricBuilder(), counting.cells_of(picture)
    QUEUE.add(out, cells)
    ACCOUNTS.add_all(out, counting.by_account(cells, limits))
    USERS.add_all(out, counting.by_user(cells, limits))
    for name, group in counting.by_partition(picture, cells).items():
        out.add(PARTITION_PENDING, sum(c.tasks for c in group if c.is_pending), name)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return nodes, CPUs and GPUs in all, by node and by partition."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    for families in (NODES, CPUS, GPUS):
        families.add(out, slurm_nodes)
    if limits.node_series:
        for node in slurm_nodes:
            NODE.add(out, [node], node.name, _status(node))
    PARTITION.add_all(out, counting.nodes_by_partition(picture))
    return out


def fairshare(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return the fair-share of accounts."""
    out = MetricBuilder()
    for share in picture.shares or ():
        if "USER" not in share.type and share.fairshare.factor is not None:
            out.add(FAIRSHARE, share.fairshare.factor, share.name)
    return out


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
        families=(*QUEUE.families, *ACCOUNTS.families, *USERS.families, PARTITION_PENDING),
        write=jobs,
    ),
    Chapter(
        name="nodes",
        sources=("nodes", "partitions"),
        families=(
            *NODES.families, *CPUS.families, *GPUS.families, *NODE.families, *PARTITION.families,
        ),
        write=nodes,
    ),
    scheduler_figures.chapter(_SCHEDULER),
    Chapter(name="fairshare", sources=("shares",), families=(FAIRSHARE,), write=fairshare),
)  # fmt: skip
