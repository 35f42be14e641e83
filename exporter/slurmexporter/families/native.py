"""The families of slurmctld's own metrics endpoint (25.11+): its names and labels, with right values.

What differs from slurmctld: sums of CPUs do not wrap at 65 536, memory is in bytes, powering_up and
powering_down are separate, draining nodes count as drain, too, and a pending job counts in each of
its partitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from slurmexporter.families import counting, figures, scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.figures import Figure, FigureSet
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.readings.states import ENDED
from slurmexporter.text.family import Metric, gauge

_JOBS: Final[Mapping[str, Figure[Cell]]] = {
    "": figures.jobs("Jobs", lambda _: True),
    "bootfail": figures.in_state("BOOT_FAIL"),
    "cancelled": figures.in_state("CANCELLED"),
    "completed": figures.in_state("COMPLETED"),
    "completing": figures.with_flag("COMPLETING"),
    "configuring": figures.with_flag("CONFIGURING"),
    "deadline": figures.in_state("DEADLINE"),
    "expediting": figures.with_flag("EXPEDITING"),
    "failed": figures.in_state("FAILED"),
    "fed_requeued": figures.with_flag("REQUEUE_FED"),
    "finished": figures.jobs("Jobs in a final state", lambda cell: cell.traits.state in ENDED),
    "hold": figures.jobs("Jobs that are held", lambda cell: cell.traits.is_held),
    "node_failed": figures.in_state("NODE_FAIL"),
    "outofmemory": figures.in_state("OUT_OF_MEMORY"),
    "pending": figures.in_state("PENDING"),
    "powerup_node": figures.with_flag("POWER_UP_NODE"),
    "preempted": figures.in_state("PREEMPTED"),
    "requeued": figures.with_flag("REQUEUED"),
    "resizing": figures.with_flag("RESIZING"),
    "revoked": figures.with_flag("REVOKED"),
    "running": figures.in_state("RUNNING"),
    "signaling": figures.with_flag("SIGNALING"),
    "stageout": figures.with_flag("STAGE_OUT"),
    "started": figures.jobs("Jobs not in state PENDING", lambda cell: not cell.is_pending),
    "suspended": figures.in_state("SUSPENDED"),
    "timeout": figures.in_state("TIMEOUT"),
    "cpus_alloc": figures.allocated("CPUs allocated to jobs", lambda cell: cell.cpus),
    "gpus_alloc": figures.allocated("GPUs allocated to jobs", lambda cell: cell.gpus),
    "memory_alloc": figures.allocated(
        "Memory allocated to jobs, in bytes", lambda cell: cell.memory_bytes
    ),
    "nodes_alloc": figures.allocated(
        "Nodes allocated to jobs, counted once per job", lambda cell: cell.nodes
    ),
}


def _nodes_in(state: str) -> Figure[SlurmNode]:
    busy = {"ALLOCATED", "MIXED"}
    if state == "DRAINED":
        return figures.nodes(
            "Nodes with flag DRAIN and without jobs",
            lambda node: "DRAIN" in node.flags and node.state not in busy,
        )
    if state == "DRAINING":
        return figures.nodes(
            "Nodes with flag DRAIN and with jobs",
            lambda node: "DRAIN" in node.flags and node.state in busy,
        )
    return figures.nodes_in(state)


_NODE_SUFFIXES: Final = {
    "alloc": "ALLOCATED", "blocked": "BLOCKED", "completing": "COMPLETING", "cloud": "CLOUD", "down": "DOWN",
    "drain": "DRAIN", "drained": "DRAINED", "draining": "DRAINING", "dyn_future": "DYNAMIC_FUTURE",
    "dyn_normal": "DYNAMIC_NORM", "external": "EXTERNAL", "fail": "FAIL", "future": "FUTURE", "idle": "IDLE",
    "invalid_reg": "INVALID_REG", "maint": "MAINTENANCE", "mixed": "MIXED", "noresp": "NOT_RESPONDING",
    "planned": "PLANNED", "power_down": "POWER_DOWN", "power_up": "POWER_UP", "powered_down": "POWERED_DOWN",
    "powering_down": "POWERING_DOWN", "powering_up": "POWERING_UP", "reboot_issued": "REBOOT_ISSUED",
    "reboot_req": "REBOOT_REQUESTED", "resv": "RESERVED", "unknown": "UNKNOWN",
}  # fmt: skip
"""Of `slurm_nodes_`; slurmctld has no powering_down there, and shows it as powering_up."""
_PARTITION_SUFFIXES: Final = {
    **{short: state for short, state in _NODE_SUFFIXES.items() if short not in {"completing", "noresp", "reboot_req"}},
    "cg": "COMPLETING", "no_resp": "NOT_RESPONDING", "reboot_requested": "REBOOT_REQUESTED",
}  # fmt: skip
"""Of `slurm_partition_nodes_`."""

_SIZES: Final[Mapping[str, Figure[SlurmNode]]] = {
    "cpus": figures.size("CPUs", lambda node: node.cpus),
    "cpus_alloc": figures.size("Allocated CPUs", lambda node: node.allocated_cpus),
    "cpus_effective": figures.size("Usable CPUs", lambda node: node.effective_cpus),
    "cpus_idle": figures.size("Idle CPUs", lambda node: node.idle_cpus),
    "gpus": figures.size("GPUs", lambda node: node.gpus),
    "gpus_alloc": figures.size("Allocated GPUs", lambda node: node.allocated_gpus),
    "memory_bytes": figures.size("Memory in bytes", lambda node: node.memory_bytes),
    "memory_alloc_bytes": figures.size(
        "Allocated memory in bytes", lambda node: node.allocated_memory_bytes
    ),
    "memory_effective_bytes": figures.size(
        "Usable memory in bytes", lambda node: node.effective_memory_bytes
    ),
    "memory_free_bytes": figures.size(
        "Unused memory in bytes", lambda node: node.free_memory_bytes or 0
    ),
}
_PARTITION_SIZES: Final = {
    "cpus_alloc": "cpus_alloc",
    "cpus_efctv": "cpus_effective",
    "cpus_idle": "cpus_idle",
    "mem_alloc": "memory_alloc_bytes",
    "mem_avail": "memory_effective_bytes",
    "mem_free": "memory_free_bytes",
    "mem_tot": "memory_bytes",
}

JOBS: Final = FigureSet("slurm_jobs", _JOBS)
USER_JOBS: Final = FigureSet("slurm_user_jobs", _JOBS, "username")
ACCOUNT_JOBS: Final = FigureSet("slurm_account_jobs", _JOBS, "account")
NODES: Final[FigureSet[SlurmNode]] = FigureSet("slurm_nodes", {"": ("Nodes", len)})
NODE_STATES: Final = FigureSet(
    "slurm_nodes", {suffix: _nodes_in(state) for suffix, state in _NODE_SUFFIXES.items()}
)
NODE_SIZES: Final = FigureSet("slurm_node", _SIZES, "node", ends=" of a node.")


def _able(cells: Sequence[Cell]) -> Sequence[Cell]:
    return [cell for cell in cells if not cell.traits.is_held]


def _most(cells: Sequence[Cell]) -> float:
    return max((cell.most_nodes for cell in cells if cell.is_pending), default=0)


def _fewest(cells: Sequence[Cell]) -> float:
    return min((cell.fewest_nodes for cell in cells if cell.is_pending), default=0)


PARTITIONS: Final = gauge("slurm_partitions", "Partitions.")
PARTITION_JOBS: Final = FigureSet(
    "slurm_partition_jobs",
    {
        **{suffix: figure for suffix, figure in _JOBS.items() if suffix != "nodes_alloc"},
        "max_job_nodes": ("Most nodes requested by a pending job", _most),
        "max_job_nodes_nohold": (
            "Most nodes requested by a pending job that is not held",
            lambda cells: _most(_able(cells)),
        ),
        "min_job_nodes": ("Fewest nodes requested by a pending job", _fewest),
        "min_job_nodes_nohold": (
            "Fewest nodes requested by a pending job that is not held",
            lambda cells: _fewest(_able(cells)),
        ),
        "wait_part_node_limit": figures.jobs(
            "Pending jobs that exceed the partition's node limit",
            lambda cell: cell.is_pending and cell.traits.reason == "PartitionNodeLimit",
        ),
    },
    "partition",
)
_PARTITION_NODES: Final = (
    FigureSet(
        "slurm_partition",
        {
            "nodes": ("Nodes", len),
            "cpus": figures.size("CPUs", lambda node: node.cpus),
            "gpus": figures.size("GPUs", lambda node: node.gpus),
        },
        "partition",
        ends=" of a partition.",
    ),
    FigureSet(
        "slurm_partition_nodes",
        {suffix: _nodes_in(state) for suffix, state in _PARTITION_SUFFIXES.items()},
        "partition",
    ),
    FigureSet(
        "slurm_partition_nodes",
        {suffix: _SIZES[size] for suffix, size in _PARTITION_SIZES.items()},
        "partition",
        ends=", summed over the nodes of a partition.",
    ),
)


def jobs(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return all jobs, as `/metrics/jobs`."""
    out = MetricBuilder()
    JOBS.add(out, counting.cells_of(picture))
    return out


def users_and_accounts(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs by user and account, as `/metrics/jobs-users-accts`."""
    out, cells = MetricBuilder(), counting.cells_of(picture)
    USER_JOBS.add_all(out, counting.by_user(cells, limits))
    ACCOUNT_JOBS.add_all(out, counting.by_account(cells, limits))
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return all nodes and each one, as `/metrics/nodes`."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    NODES.add(out, slurm_nodes)
    NODE_STATES.add(out, slurm_nodes)
    if limits.node_series:
        NODE_SIZES.add_all(out, {node.name: [node] for node in slurm_nodes})
    return out


def partitions(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return all partitions, as `/metrics/partitions`."""
    out = MetricBuilder()
    out.add(PARTITIONS, len(picture.partitions or ()))
    members = counting.nodes_by_partition(picture)
    for name, group in counting.by_partition(picture, counting.cells_of(picture)).items():
        PARTITION_JOBS.add(out, group, name)
        for families in _PARTITION_NODES:
            families.add(out, members.get(name, []), name)
    return out


JOBS_PAGE: Final = Chapter(name="jobs", sources=("jobs",), families=JOBS.families, write=jobs)
USERS_PAGE: Final = Chapter(
    name="jobs-users-accts",
    sources=("jobs",),
    families=(*USER_JOBS.families, *ACCOUNT_JOBS.families),
    write=users_and_accounts,
)
NODES_PAGE: Final = Chapter(
    name="nodes",
    sources=("nodes",),
    families=(*NODES.families, *NODE_STATES.families, *NODE_SIZES.families),
    write=nodes,
)
PARTITIONS_PAGE: Final = Chapter(
    name="partitions",
    sources=("jobs", "nodes", "partitions"),
    families=(
        PARTITIONS,
        *PARTITION_JOBS.families,
        *(family for families in _PARTITION_NODES for family in families.families),
    ),
    write=partitions,
)
SCHEDULER_PAGE: Final = scheduler_figures.chapter(
    scheduler_figures.families(scheduler_figures.NATIVE, "under slurmctld's name")
)
CHAPTERS: Final = (JOBS_PAGE, NODES_PAGE, PARTITIONS_PAGE, SCHEDULER_PAGE, USERS_PAGE)
