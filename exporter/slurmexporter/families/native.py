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
from slurmexporter.text.family import Family, Metric, gauge

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


_PARTITION: Final = "partition"
JOBS: Final = FigureSet("slurm_jobs", _JOBS)
USER_JOBS: Final = FigureSet("slurm_user_jobs", _JOBS, "username")
ACCOUNT_JOBS: Final = FigureSet("slurm_account_jobs", _JOBS, "account")
PARTITION_JOBS: Final = FigureSet(
    "slurm_partition_jobs",
    {suffix: figure for suffix, figure in _JOBS.items() if suffix != "nodes_alloc"},
    _PARTITION,
)


def _of_partition(suffix: str, words: str) -> Family:
    return gauge(f"slurm_partition_{suffix}", words, _PARTITION)


MOST: Final = _of_partition("jobs_max_job_nodes", "Most nodes requested by a pending job.")
MOST_ABLE: Final = _of_partition(
    "jobs_max_job_nodes_nohold", "Most nodes requested by a pending job that is not held."
)
FEWEST: Final = _of_partition("jobs_min_job_nodes", "Fewest nodes requested by a pending job.")
FEWEST_ABLE: Final = _of_partition(
    "jobs_min_job_nodes_nohold", "Fewest nodes requested by a pending job that is not held."
)
NODE_LIMIT: Final = _of_partition(
    "jobs_wait_part_node_limit", "Pending jobs that exceed the partition's node limit."
)
PARTITIONS: Final = gauge("slurm_partitions", "Partitions.")
PARTITION_CPUS: Final = _of_partition("cpus", "CPUs of a partition.")
PARTITION_GPUS: Final = _of_partition("gpus", "GPUs of a partition.")
PARTITION_COUNT: Final = _of_partition("nodes", "Nodes of a partition.")
PARTITION_STATES: Final = FigureSet(
    "slurm_partition_nodes",
    {suffix: _nodes_in(state) for suffix, state in _PARTITION_SUFFIXES.items()},
    _PARTITION,
)
PARTITION_SIZES: Final = FigureSet(
    "slurm_partition_nodes",
    {suffix: _SIZES[size] for suffix, size in _PARTITION_SIZES.items()},
    _PARTITION,
    ends=", summed over the nodes of a partition.",
)
NODES: Final = gauge("slurm_nodes", "Nodes.")
NODE_STATES: Final = FigureSet(
    "slurm_nodes", {suffix: _nodes_in(state) for suffix, state in _NODE_SUFFIXES.items()}
)
NODE_SIZES: Final = FigureSet("slurm_node", _SIZES, "node", ends=" of a node.")


def jobs(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return all jobs, as `/metrics/jobs`."""
    out = MetricBuilder()
    JOBS.add(out, picture.jobs.cells if picture.jobs else ())
    return out


def users_and_accounts(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs by user and account, as `/metrics/jobs-users-accts`."""
    out = MetricBuilder()
    cells = picture.jobs.cells if picture.jobs else ()
    for name, group in counting.groups(cells, counting.by_user(cells, limits)).items():
        USER_JOBS.add(out, group, name)
    for name, group in counting.groups(cells, counting.by_account(cells, limits)).items():
        ACCOUNT_JOBS.add(out, group, name)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return all nodes and each one, as `/metrics/nodes`."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    out.add(NODES, len(slurm_nodes))
    NODE_STATES.add(out, slurm_nodes)
    if limits.node_series:
        for node in slurm_nodes:
            NODE_SIZES.add(out, [node], node.name)
    return out


def partitions(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return all partitions, as `/metrics/partitions`."""
    out = MetricBuilder()
    names = [partition.name for partition in picture.partitions or ()]
    out.add(PARTITIONS, len(names))
    members = counting.nodes_by_partition(picture)
    cells = picture.jobs.cells if picture.jobs else ()
    for name, group in counting.groups(cells, counting.in_partitions, names).items():
        here = members.get(name, [])
        PARTITION_JOBS.add(out, group, name)
        _asked_nodes(out, name, [cell for cell in group if cell.is_pending])
        out.add(PARTITION_COUNT, len(here), name)
        out.add(PARTITION_CPUS, sum(node.cpus for node in here), name)
        out.add(PARTITION_GPUS, sum(node.gpus for node in here), name)
        PARTITION_STATES.add(out, here, name)
        PARTITION_SIZES.add(out, here, name)
    return out


def _asked_nodes(out: MetricBuilder, name: str, pending: Sequence[Cell]) -> None:
    able = [cell for cell in pending if not cell.traits.is_held]
    out.add(MOST, max((cell.most_nodes for cell in pending), default=0), name)
    out.add(MOST_ABLE, max((cell.most_nodes for cell in able), default=0), name)
    out.add(FEWEST, min((cell.fewest_nodes for cell in pending), default=0), name)
    out.add(FEWEST_ABLE, min((cell.fewest_nodes for cell in able), default=0), name)
    limited = sum(cell.tasks for cell in pending if cell.traits.reason == "PartitionNodeLimit")
    out.add(NODE_LIMIT, limited, name)


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
    families=(NODES, *NODE_STATES.families, *NODE_SIZES.families),
    write=nodes,
)
PARTITIONS_PAGE: Final = Chapter(
    name="partitions",
    sources=("jobs", "nodes", "partitions"),
    families=(
        PARTITIONS, *PARTITION_JOBS.families, MOST, MOST_ABLE, FEWEST, FEWEST_ABLE, NODE_LIMIT,
        PARTITION_COUNT, PARTITION_CPUS, PARTITION_GPUS,
        *PARTITION_STATES.families, *PARTITION_SIZES.families,
    ),
    write=partitions,
)  # fmt: skip
SCHEDULER_PAGE: Final = scheduler_figures.chapter(
    scheduler_figures.families(scheduler_figures.NATIVE, "under slurmctld's name")
)
CHAPTERS: Final = (JOBS_PAGE, NODES_PAGE, PARTITIONS_PAGE, SCHEDULER_PAGE, USERS_PAGE)
