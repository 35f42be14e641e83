"""Jobs grouped by all that metrics count them by: a few hundred cells instead of all jobs."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct

from slurmexporter.readings.job import Job
from slurmexporter.readings.states import HOLDING


class Traits(NamedTuple):
    """The common properties of a cell's jobs."""

    user: str
    user_id: int
    account: str
    partitions: tuple[str, ...]
    qos: str
    state: str
    flags: frozenset[str]
    is_held: bool
    has_dependency: bool
    reason: str


_TRAITS: Final = attrgetter(*Traits._fields)
"""A job has attributes of the same names."""


class Cell(Struct):
    """Jobs with the same traits; resources are allocated or, for pending jobs, requested."""

    traits: Traits
    jobs: int = 0
    """Records: the pending tasks of an array are one."""
    tasks: int = 0
    """Jobs, where each task of an array counts."""
    cpus: float = 0
    gpus: float = 0
    memory_bytes: float = 0
    nodes: float = 0
    most_nodes: float = 0
    fewest_nodes: float = 0
    oldest_s: float = 0
    """When the first of them became eligible or was submitted."""

    @property
    def holds(self) -> bool:
        """Whether its jobs hold their resources."""
        return self.traits.state in HOLDING

    @property
    def is_pending(self) -> bool:
        """Whether its jobs are pending."""
        return self.traits.state == "PENDING"


def group_jobs(jobs: Iterable[Job]) -> Sequence[Cell]:
    """Return the cells of jobs. Ended jobs hold no resources, so theirs count as 0."""
    cells: dict[Traits, Cell] = {}
    for job in jobs:
        traits = Traits._make(_TRAITS(job))
        cell = cells.get(traits)
        if cell is None:
            cell = cells[traits] = Cell(traits, fewest_nodes=job.nodes, oldest_s=job.waits_since_s)
        _add(cell, job)
    return tuple(cells.values())


def _add(cell: Cell, job: Job) -> None:
    cell.jobs += 1
    cell.tasks += job.tasks
    cell.oldest_s = min(cell.oldest_s, job.waits_since_s)
    if job.has_ended:
        return
    cell.cpus += job.cpus * job.tasks
    cell.gpus += job.gpus * job.tasks
    cell.memory_bytes += job.memory_bytes * job.tasks
    cell.nodes += job.nodes * job.tasks
    cell.most_nodes = max(cell.most_nodes, job.nodes)
    cell.fewest_nodes = min(cell.fewest_nodes, job.nodes)
