"""Own names: nodes and partitions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from slurmexporter.families import counting
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import FigureSet, one
from slurmexporter.families.picture import Picture
from slurmexporter.readings.node import PartitionView, SlurmNode
from slurmexporter.readings.states import NODE_FLAGS, NODE_STATES
from slurmexporter.text.family import Family, Metric, gauge

_MINUTE_S: Final = 60

STATE: Final = gauge("slurm_nodes_by_state", "Nodes by base state.", "state")
FLAG: Final = gauge("slurm_nodes_by_flag", "Nodes by flag, besides their base state.", "flag")
AVAILABLE: Final = gauge(
    "slurm_nodes_available",
    "Nodes that respond and are neither drained, failing, in maintenance, rebooting nor powered down.",
)
_KINDS: Final = ("node", "gres", "type")
ONE: Final[FigureSet[SlurmNode]] = FigureSet(
    "slurm_node",
    {
        "available": one(
            "1 if a node responds and is neither drained, failing, in maintenance, rebooting nor powered down, else 0",
            lambda node: node.is_available,
        ),
        "cpu_size": one("CPUs of a node", lambda node: node.cpus),
        "cpu_allocated": one("Allocated CPUs of a node", lambda node: node.allocated_cpus),
        "cpu_effective": one("CPUs of a node that jobs can use", lambda node: node.effective_cpus),
        "memory_size_bytes": one("Memory of a node", lambda node: node.memory_bytes),
        "memory_allocated_bytes": one(
            "Allocated memory of a node", lambda node: node.allocated_memory_bytes
        ),
        "memory_available_to_jobs_bytes": one(
            "Memory of a node that jobs can use", lambda node: node.effective_memory_bytes
        ),
        "load": one("Load of a node, as reported by its slurmd", lambda node: node.load),
        "memory_unused_bytes": one(
            "Memory of a node that no process uses, as reported by its slurmd",
            lambda node: node.free_memory_bytes,
        ),
    },
    "node",
)
GRES: Final = gauge("slurm_node_gres", "Generic resources of a node, such as GPUs.", *_KINDS)
GRES_ALLOCATED: Final = gauge(
    "slurm_node_gres_allocated", "Allocated generic resources of a node.", *_KINDS
)
REASON: Final = gauge(
    "slurm_node_reason_info",
    "Why a node is down or drained, and who set the reason; always 1.",
    "node",
    "reason",
    "user",
)
TIMES: Final[FigureSet[SlurmNode]] = FigureSet(
    "slurm_node",
    {
        "reason_since_timestamp_seconds": one(
            "When the reason of a node was set",
            lambda node: node.reason_since_s if node.reason else None,
        ),
        "boot_timestamp_seconds": one("When a node booted", lambda node: node.boot_s or None),
        "last_busy_timestamp_seconds": one(
            "When a node was last busy", lambda node: node.last_busy_s or None
        ),
    },
    "node",
)
GRES_TOTAL: Final = gauge("slurm_gres", "Generic resources of all nodes.", "gres", "type")
GRES_USED: Final = gauge(
    "slurm_gres_allocated", "Allocated generic resources of all nodes.", "gres", "type"
)
VERSION: Final = gauge("slurm_nodes_by_version", "Nodes by slurmd version.", "version")

CAPACITY: Final = gauge(
    "slurm_partition_capacity",
    "Capacity of the nodes of a partition: nodes, cpus, gpus, memory_bytes.",
    "partition",
    "resource",
)
ALLOCATED: Final = gauge(
    "slurm_partition_allocated",
    "Allocated resources of the nodes of a partition, to jobs of any partition: nodes, cpus, gpus, memory_bytes.",
    "partition",
    "resource",
)
PARTITION_NODES: Final = gauge(
    "slurm_partition_nodes_by_state", "Nodes by partition and base state.", "partition", "state"
)
PARTITION_AVAILABLE: Final = gauge(
    "slurm_partition_nodes_available",
    "Nodes of a partition that respond and are neither drained, failing, in maintenance, rebooting nor powered down.",
    "partition",
)
PARTITION_UP: Final = gauge(
    "slurm_partition_up", "1 if a partition accepts jobs and starts them, else 0.", "partition"
)
TIME_LIMIT: Final = gauge(
    "slurm_partition_time_limit_seconds",
    "Maximum time limit of a partition; +Inf if there is none.",
    "partition",
)


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return nodes by state, and the resources of each."""
    slurm_nodes, out = picture.nodes or (), MetricBuilder()
    _states(out, STATE, (), slurm_nodes)
    for flag in NODE_FLAGS:
        out.add(FLAG, sum(flag in node.flags for node in slurm_nodes), flag)
    out.add(AVAILABLE, sum(node.is_available for node in slurm_nodes))
    versions = Counter(node.version for node in slurm_nodes if node.version)
    total: dict[tuple[str, str], float] = defaultdict(float)
    used: dict[tuple[str, str], float] = defaultdict(float)
    for node in slurm_nodes:
        for kind, amount in node.gres.items():
            total[kind] += amount
        for kind, amount in node.gres_used.items():
            used[kind] += amount
        if limits.node_series:
            _one(out, node)
    for version, count in versions.items():
        out.add(VERSION, count, version)
    for kind, amount in total.items():
        out.add(GRES_TOTAL, amount, *kind)
        out.add(GRES_USED, used.get(kind, 0), *kind)
    return out


def partitions(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return partitions, and the resources of their nodes."""
    out = MetricBuilder()
    members = counting.nodes_by_partition(picture)
    for partition in picture.partitions or ():
        _partition(out, partition, members[partition.name])
    return out


def _partition(out: MetricBuilder, partition: PartitionView, nodes: Sequence[SlurmNode]) -> None:
    name = partition.name
    out.add(PARTITION_UP, partition.is_up, name)
    limit = partition.maximums.time
    out.add(TIME_LIMIT, float("inf") if limit is None else limit * _MINUTE_S, name)
    _states(out, PARTITION_NODES, (name,), nodes)
    out.add(PARTITION_AVAILABLE, sum(node.is_available for node in nodes), name)
    out.add(CAPACITY, len(nodes), name, "nodes")
    busy = sum(node.state in {"ALLOCATED", "MIXED"} for node in nodes)
    out.add(ALLOCATED, busy, name, "nodes")
    for resource in ("cpus", "gpus", "memory_bytes"):
        out.add(CAPACITY, sum(getattr(node, resource) for node in nodes), name, resource)
        allocated = sum(getattr(node, f"allocated_{resource}") for node in nodes)
        out.add(ALLOCATED, allocated, name, resource)


def _one(out: MetricBuilder, node: SlurmNode) -> None:
    ONE.add(out, [node], node.name)
    for kind, amount in node.gres.items():
        out.add(GRES, amount, node.name, *kind)
        out.add(GRES_ALLOCATED, node.gres_used.get(kind, 0), node.name, *kind)
    if node.reason:
        out.add(REASON, 1, node.name, node.reason, node.reason_user)
    TIMES.add(out, [node], node.name)


def _states(
    out: MetricBuilder, family: Family, labels: tuple[str, ...], nodes: Iterable[SlurmNode]
) -> None:
    counts = {**dict.fromkeys(NODE_STATES, 0), **Counter(node.state for node in nodes)}
    for state, count in counts.items():
        out.add(family, count, *labels, state)


NODES: Final = Chapter(
    name="nodes",
    sources=("nodes",),
    families=(
        STATE, FLAG, AVAILABLE, VERSION, GRES_TOTAL, GRES_USED,
        *ONE.families, GRES, GRES_ALLOCATED, REASON, *TIMES.families,
    ),
    write=nodes,
)  # fmt: skip
PARTITIONS: Final = Chapter(
    name="partitions",
    sources=("nodes", "partitions"),
    families=(CAPACITY, ALLOCATED, PARTITION_NODES, PARTITION_AVAILABLE, PARTITION_UP, TIME_LIMIT),
    write=partitions,
)
