"""The families of slurmctld's own metrics endpoint (25.11+): its names and labels, with right values.

What differs from slurmctld: sums of CPUs do not wrap at 65 536, memory is in bytes, powering_up and
powering_down are separate, draining nodes count as drain, too, and a pending job counts in each of
its partitions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from slurmexporter.families import counting, scheduler_figures
from slurmexporter.families.chapter import Chapter, Limits, MetricBuilder
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.readings.states import ENDED
from slurmexporter.readings.states import NODE_STATES as BASE_STATES
from slurmexporter.text.family import Family, Metric, gauge

_JobTest = Callable[[Cell], bool]
_NodeTest = Callable[[SlurmNode], bool]


def _job_state(state: str) -> _JobTest:
    return lambda cell: cell.traits.state == state


def _job_flag(flag: str) -> _JobTest:
    return lambda cell: flag in cell.traits.flags


_JOBS: Final[Mapping[str, tuple[str, _JobTest]]] = {
    "bootfail": ("in state BOOT_FAIL", _job_state("BOOT_FAIL")),
    "cancelled": ("in state CANCELLED", _job_state("CANCELLED")),
    "completed": ("in state COMPLETED", _job_state("COMPLETED")),
    "completing": ("with flag COMPLETING", _job_flag("COMPLETING")),
    "configuring": ("with flag CONFIGURING", _job_flag("CONFIGURING")),
    "deadline": ("in state DEADLINE", _job_state("DEADLINE")),
    "expediting": ("with flag EXPEDITING", _job_flag("EXPEDITING")),
    "failed": ("in state FAILED", _job_state("FAILED")),
    "fed_requeued": ("with flag REQUEUE_FED", _job_flag("REQUEUE_FED")),
    "finished": ("in a final state", lambda cell: cell.traits.state in ENDED),
    "hold": ("that are held", lambda cell: cell.traits.is_held),
    "node_failed": ("in state NODE_FAIL", _job_state("NODE_FAIL")),
    "outofmemory": ("in state OUT_OF_MEMORY", _job_state("OUT_OF_MEMORY")),
    "pending": ("in state PENDING", _job_state("PENDING")),
    "powerup_node": ("with flag POWER_UP_NODE", _job_flag("POWER_UP_NODE")),
    "preempted": ("in state PREEMPTED", _job_state("PREEMPTED")),
    "requeued": ("with flag REQUEUED", _job_flag("REQUEUED")),
    "resizing": ("with flag RESIZING", _job_flag("RESIZING")),
    "revoked": ("with flag REVOKED", _job_flag("REVOKED")),
    "running": ("in state RUNNING", _job_state("RUNNING")),
    "signaling": ("with flag SIGNALING", _job_flag("SIGNALING")),
    "stageout": ("with flag STAGE_OUT", _job_flag("STAGE_OUT")),
    "started": ("not in state PENDING", lambda cell: not cell.is_pending),
    "suspended": ("in state SUSPENDED", _job_state("SUSPENDED")),
    "timeout": ("in state TIMEOUT", _job_state("TIMEOUT")),
}
_ALLOCATED: Final[Mapping[str, tuple[str, Callable[[Cell], float]]]] = {
    "cpus_alloc": ("CPUs allocated to jobs", lambda cell: cell.cpus),
    "gpus_alloc": ("GPUs allocated to jobs", lambda cell: cell.gpus),
    "memory_alloc": ("Memory allocated to jobs, in bytes", lambda cell: cell.memory_bytes),
    "nodes_alloc": ("Nodes allocated to jobs, counted once per job", lambda cell: cell.nodes),
}


def _node_test(state: str) -> tuple[str, _NodeTest]:
    """Return what a node must have to count under a state, in words and as a test."""
    busy = {"ALLOCATED", "MIXED"}
    if state == "DRAINED":
        words = "with flag DRAIN and without jobs"
        return words, lambda node: "DRAIN" in node.flags and node.state not in busy
    if state == "DRAINING":
        words = "with flag DRAIN and with jobs"
        return words, lambda node: "DRAIN" in node.flags and node.state in busy
    if state in BASE_STATES:
        return f"in state {state}", lambda node: node.state == state
    return f"with flag {state}", lambda node: state in node.flags


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
_TESTS: Final = {state: _node_test(state)[1] for state in _NODE_SUFFIXES.values()}

_SIZES: Final[Mapping[str, tuple[str, Callable[[SlurmNode], float]]]] = {
    "cpus": ("CPUs", lambda node: node.cpus),
    "cpus_alloc": ("Allocated CPUs", lambda node: node.allocated_cpus),
    "cpus_effective": ("Usable CPUs", lambda node: node.effective_cpus),
    "cpus_idle": ("Idle CPUs", lambda node: node.idle_cpus),
    "gpus": ("GPUs", lambda node: node.gpus),
    "gpus_alloc": ("Allocated GPUs", lambda node: node.allocated_gpus),
    "memory_bytes": ("Memory in bytes", lambda node: node.memory_bytes),
    "memory_alloc_bytes": ("Allocated memory in bytes", lambda node: node.allocated_memory_bytes),
    "memory_effective_bytes": ("Usable memory in bytes", lambda node: node.effective_memory_bytes),
    "memory_free_bytes": ("Unused memory in bytes", lambda node: node.free_memory_bytes or 0),
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


def _job_families(prefix: str, labels: tuple[str, ...]) -> Mapping[str, Family]:
    words = {"": "Jobs"}
    words |= {f"_{suffix}": f"Jobs {text}" for suffix, (text, _) in _JOBS.items()}
    words |= {f"_{suffix}": text for suffix, (text, _) in _ALLOCATED.items()}
    return {
        suffix.removeprefix("_"): gauge(f"{prefix}{suffix}", f"{text}.", *labels)
        for suffix, text in words.items()
    }


def _node_families(
    prefix: str, suffixes: Mapping[str, str], labels: tuple[str, ...]
) -> Mapping[str, Family]:
    return {
        suffix: gauge(f"{prefix}_{suffix}", f"Nodes {_node_test(state)[0]}.", *labels)
        for suffix, state in suffixes.items()
    }


_PARTITION: Final = ("partition",)
JOBS: Final = _job_families("slurm_jobs", ())
USER_JOBS: Final = _job_families("slurm_user_jobs", ("username",))
ACCOUNT_JOBS: Final = _job_families("slurm_account_jobs", ("account",))
PARTITION_JOBS: Final = {
    suffix: family
    for suffix, family in _job_families("slurm_partition_jobs", _PARTITION).items()
    if suffix != "nodes_alloc"
}


def _of_partition(suffix: str, words: str) -> Family:
    return gauge(f"slurm_partition_{suffix}", words, *_PARTITION)


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
PARTITION_STATES: Final = _node_families("slurm_partition_nodes", _PARTITION_SUFFIXES, _PARTITION)
PARTITION_SIZES: Final = {
    suffix: _of_partition(
        f"nodes_{suffix}", f"{_SIZES[size][0]}, summed over the nodes of a partition."
    )
    for suffix, size in _PARTITION_SIZES.items()
}
NODES: Final = gauge("slurm_nodes", "Nodes.")
NODE_STATES: Final = _node_families("slurm_nodes", _NODE_SUFFIXES, ())
NODE_SIZES: Final = {
    suffix: gauge(f"slurm_node_{suffix}", f"{words} of a node.", "node")
    for suffix, (words, _) in _SIZES.items()
}


def jobs(picture: Picture, _: Limits) -> Iterable[Metric]:
    """Return all jobs, as `/metrics/jobs`."""
    out = MetricBuilder()
    _jobs(out, JOBS, (), picture.jobs.cells if picture.jobs else ())
    return out


def users_and_accounts(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return jobs by user and account, as `/metrics/jobs-users-accts`."""
    out = MetricBuilder()
    cells = picture.jobs.cells if picture.jobs else ()
    for name, group in counting.groups(cells, counting.by_user(cells, limits)).items():
        _jobs(out, USER_JOBS, (name,), group)
    for name, group in counting.groups(cells, counting.by_account(cells, limits)).items():
        _jobs(out, ACCOUNT_JOBS, (name,), group)
    return out


def nodes(picture: Picture, limits: Limits) -> Iterable[Metric]:
    """Return all nodes and each one, as `/metrics/nodes`."""
    out, slurm_nodes = MetricBuilder(), picture.nodes or ()
    out.add(NODES, len(slurm_nodes))
    _states(out, NODE_STATES, _NODE_SUFFIXES, (), slurm_nodes)
    if limits.node_series:
        for node in slurm_nodes:
            for suffix, (_, size) in _SIZES.items():
                out.add(NODE_SIZES[suffix], size(node), node.name)
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
        _jobs(out, PARTITION_JOBS, (name,), group)
        _asked_nodes(out, name, [cell for cell in group if cell.is_pending])
        out.add(PARTITION_COUNT, len(here), name)
        out.add(PARTITION_CPUS, sum(node.cpus for node in here), name)
        out.add(PARTITION_GPUS, sum(node.gpus for node in here), name)
        _states(out, PARTITION_STATES, _PARTITION_SUFFIXES, (name,), here)
        for suffix, size in _PARTITION_SIZES.items():
            out.add(PARTITION_SIZES[suffix], sum(map(_SIZES[size][1], here)), name)
    return out


def _jobs(
    out: MetricBuilder,
    families: Mapping[str, Family],
    labels: tuple[str, ...],
    cells: Sequence[Cell],
) -> None:
    """Add the figures of jobs; each task of an array is a job."""
    out.add(families[""], sum(cell.tasks for cell in cells), *labels)
    for suffix, (_, holds) in _JOBS.items():
        out.add(families[suffix], sum(cell.tasks for cell in cells if holds(cell)), *labels)
    for suffix, (_, amount) in _ALLOCATED.items():
        if family := families.get(suffix):
            out.add(family, sum(amount(cell) for cell in cells if cell.holds), *labels)


def _asked_nodes(out: MetricBuilder, name: str, pending: Sequence[Cell]) -> None:
    able = [cell for cell in pending if not cell.traits.is_held]
    out.add(MOST, max((cell.most_nodes for cell in pending), default=0), name)
    out.add(MOST_ABLE, max((cell.most_nodes for cell in able), default=0), name)
    out.add(FEWEST, min((cell.fewest_nodes for cell in pending), default=0), name)
    out.add(FEWEST_ABLE, min((cell.fewest_nodes for cell in able), default=0), name)
    limited = sum(cell.tasks for cell in pending if cell.traits.reason == "PartitionNodeLimit")
    out.add(NODE_LIMIT, limited, name)


def _states(
    out: MetricBuilder,
    families: Mapping[str, Family],
    suffixes: Mapping[str, str],
    labels: tuple[str, ...],
    nodes: Sequence[SlurmNode],
) -> None:
    for suffix, state in suffixes.items():
        here = sum(map(_TESTS[state], nodes))
        out.add(families[suffix], here, *labels)


JOBS_PAGE: Final = Chapter(
    name="jobs", sources=("jobs",), families=tuple(JOBS.values()), write=jobs
)
USERS_PAGE: Final = Chapter(
    name="jobs-users-accts",
    sources=("jobs",),
    families=(*USER_JOBS.values(), *ACCOUNT_JOBS.values()),
    write=users_and_accounts,
)
NODES_PAGE: Final = Chapter(
    name="nodes",
    sources=("nodes",),
    families=(NODES, *NODE_STATES.values(), *NODE_SIZES.values()),
    write=nodes,
)
PARTITIONS_PAGE: Final = Chapter(
    name="partitions",
    sources=("jobs", "nodes", "partitions"),
    families=(
        PARTITIONS, *PARTITION_JOBS.values(), MOST, MOST_ABLE, FEWEST, FEWEST_ABLE, NODE_LIMIT,
        PARTITION_COUNT, PARTITION_CPUS, PARTITION_GPUS,
        *PARTITION_STATES.values(), *PARTITION_SIZES.values(),
    ),
    write=partitions,
)  # fmt: skip
SCHEDULER_PAGE: Final = scheduler_figures.chapter(
    scheduler_figures.families(scheduler_figures.NATIVE, "under slurmctld's name")
)
CHAPTERS: Final = (JOBS_PAGE, NODES_PAGE, PARTITIONS_PAGE, SCHEDULER_PAGE, USERS_PAGE)
