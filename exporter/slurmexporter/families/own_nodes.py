"""Own names: nodes and partitions."""

from collections.abc import Iterable, Sequence
from typing import Final

from slurmexporter.families import counting
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import Picture
from slurmexporter.readings.node import PartitionView, SlurmNode
from slurmexporter.readings.states import NODE_FLAGS, NODE_STATES
from slurmexporter.text.family import Family, Metric, gauge

_MINUTE_S: Final = 60


def _node(name: str, words: str, *labels: str) -> Family:
    return gauge(f"slurm_node_{name}", words, "node", *labels)


STATE: Final = gauge("slurm_nodes_by_state", "Nodes by base state.", "state")
FLAG: Final = gauge("slurm_nodes_by_flag", "Nodes by flag, besides their base state.", "flag")
AVAILABLE: Final = gauge(
    "slurm_nodes_available",
    "Nodes that respond and are neither drained, failing, in maintenance, rebooting nor powered down.",
)
CPU_SIZE: Final = _node("cpu_size", "CPUs of a node.")
CPU_ALLOCATED: Final = _node("cpu_allocated", "Allocated CPUs of a node.")
CPU_EFFECTIVE: Final = _node("cpu_effective", "CPUs of a node that jobs can use.")
LOAD: Final = _node("load", "Load of a node, as reported by its slurmd.")
MEMORY_SIZE: Final = _node("memory_size_bytes", "Memory of a node.")
MEMORY_ALLOCATED: Final = _node("memory_allocated_bytes", "Allocated memory of a node.")
MEMORY_EFFECTIVE: Final = _node(
    "memory_available_to_jobs_bytes", "Memory of a node that jobs can use."
)
MEMORY_FREE: Final = _node(
    "memory_unused_bytes", "Memory of a node that no process uses, as reported by its slurmd."
)
GRES: Final = _node("gres", "Generic resources of a node, such as GPUs.", "gres", "type")
GRES_ALLOCATED: Final = _node(
    "gres_allocated", "Allocated generic resources of a node.", "gres", "type"
)
UP: Final = _node(
    "available",
    "1 if a node responds and is neither drained, failing, in maintenance, rebooting nor powered down, else 0.",
)
REASON: Final = _node(
    "reason_info",
    "Why a node is down or drained, and who set the reason; always 1.",
    "reason",
    "user",
)
REASON_SINCE: Final = _node("reason_since_timestamp_seconds", "When the reason of a node was set.")
BOOT: Final = _node("boot_timestamp_seconds", "When a node booted.")
BUSY: Final = _node("last_busy_timestamp_seconds", "When a node was last busy.")
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
    versions: dict[str, int] = {}
    total: dict[tuple[str, str], float] = {}
    used: dict[tuple[str, str], float] = {}
    for node in slurm_nodes:
        if node.version:
            versions[node.version] = versions.get(node.version, 0) + 1
        for kind, amount in node.gres.items():
            total[kind] = total.get(kind, 0) + amount
        for kind, amount in node.gres_used.items():
            used[kind] = used.get(kind, 0) + amount
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
    busy = {"ALLOCATED", "MIXED"}
    for resource, has, allocated in (
        ("nodes", len(nodes), sum(node.state in busy for node in nodes)),
        ("cpus", sum(n.cpus for n in nodes), sum(n.allocated_cpus for n in nodes)),
        ("gpus", sum(n.gpus for n in nodes), sum(n.allocated_gpus for n in nodes)),
        (
            "memory_bytes",
            sum(n.memory_bytes for n in nodes),
            sum(n.allocated_memory_bytes for n in nodes),
        ),
    ):
        out.add(CAPACITY, has, name, resource)
        out.add(ALLOCATED, allocated, name, resource)


def _one(out: MetricBuilder, node: SlurmNode) -> None:
    name = node.name
    out.add(UP, node.is_available, name)
    out.add(CPU_SIZE, node.cpus, name)
    out.add(CPU_ALLOCATED, node.allocated_cpus, name)
    out.add(CPU_EFFECTIVE, node.effective_cpus, name)
    out.add(MEMORY_SIZE, node.memory_bytes, name)
    out.add(MEMORY_ALLOCATED, node.allocated_memory_bytes, name)
    out.add(MEMORY_EFFECTIVE, node.effective_memory_bytes, name)
    if node.load is not None:
        out.add(LOAD, node.load, name)
    if node.free_memory_bytes is not None:
        out.add(MEMORY_FREE, node.free_memory_bytes, name)
    for kind, amount in node.gres.items():
        out.add(GRES, amount, name, *kind)
        out.add(GRES_ALLOCATED, node.gres_used.get(kind, 0), name, *kind)
    if node.reason:
        out.add(REASON, 1, name, node.reason, node.reason_user)
        out.add(REASON_SINCE, node.reason_since_s, name)
    if node.boot_s:
        out.add(BOOT, node.boot_s, name)
    if node.last_busy_s:
        out.add(BUSY, node.last_busy_s, name)


def _states(
    out: MetricBuilder, family: Family, labels: tuple[str, ...], nodes: Iterable[SlurmNode]
) -> None:
    counts = dict.fromkeys(NODE_STATES, 0)
    for node in nodes:
        counts[node.state] = counts.get(node.state, 0) + 1
    for state, count in counts.items():
        out.add(family, count, *labels, state)


NODES: Final = Chapter(
    name="nodes",
    sources=("nodes",),
    families=(
        STATE, FLAG, AVAILABLE, VERSION, GRES_TOTAL, GRES_USED,
        UP, CPU_SIZE, CPU_ALLOCATED, CPU_EFFECTIVE, LOAD,
        MEMORY_SIZE, MEMORY_ALLOCATED, MEMORY_EFFECTIVE, MEMORY_FREE,
        GRES, GRES_ALLOCATED, REASON, REASON_SINCE, BOOT, BUSY,
    ),
    write=nodes,
)  # fmt: skip
PARTITIONS: Final = Chapter(
    name="partitions",
    sources=("nodes", "partitions"),
    families=(CAPACITY, ALLOCATED, PARTITION_NODES, PARTITION_AVAILABLE, PARTITION_UP, TIME_LIMIT),
    write=partitions,
)
