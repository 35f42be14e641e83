"""Groups of cells of jobs and of nodes, by partition, account and user, within the budget of label values."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurmexporter.families.chapter import Limits
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.text.budget import OTHER, largest

Groups = Mapping[str, Sequence[Cell]]


def cells_of(picture: Picture) -> Sequence[Cell]:
    """Return the cells of all jobs."""
    return picture.jobs.cells if picture.jobs else ()


def by_partition(picture: Picture, cells: Iterable[Cell]) -> Groups:
    """Group cells by partition: all that pending jobs may run in, or the one that jobs run in.

    Partitions without jobs have an empty group.
    """
    names = [partition.name for partition in picture.partitions or ()]
    return _groups(cells, lambda cell: cell.traits.partitions, names)


def by_account(cells: Iterable[Cell], limits: Limits) -> Groups:
    """Group cells by account; accounts beyond the budget are `(other)`."""
    return _within_budget(cells, lambda cell: cell.traits.account, limits.top_accounts)


def by_user(cells: Iterable[Cell], limits: Limits) -> Groups:
    """Group cells by user; users beyond the budget are `(other)`. None without a budget."""
    if not limits.top_users:
        return {}
    return _within_budget(cells, lambda cell: cell.traits.user, limits.top_users)


def by_qos(cells: Iterable[Cell]) -> Groups:
    """Group cells by QOS."""
    return _groups(cells, lambda cell: (cell.traits.qos,))


def nodes_by_partition(picture: Picture) -> Mapping[str, Sequence[SlurmNode]]:
    """Group nodes by partition, also by one that was removed since; partitions without nodes are empty."""
    members: dict[str, list[SlurmNode]] = {
        partition.name: [] for partition in picture.partitions or ()
    }
    for node in picture.nodes or ():
        for name in node.partitions:
            members.setdefault(name, []).append(node)
    return members


def tasks(cells: Iterable[Cell], key: Callable[[Cell], str]) -> Mapping[str, float]:
    """Count jobs by key; each task of an array is one."""
    totals: dict[str, float] = defaultdict(int)
    for cell in cells:
        totals[key(cell)] += cell.tasks
    return totals


def _groups(
    cells: Iterable[Cell], names: Callable[[Cell], Iterable[str]], always: Iterable[str] = ()
) -> Groups:
    grouped: dict[str, list[Cell]] = {label: [] for label in always}
    for cell in cells:
        for label in names(cell):
            grouped.setdefault(label, []).append(cell)
    return grouped


def _within_budget(cells: Iterable[Cell], name: Callable[[Cell], str], most: int) -> Groups:
    shown = largest(tasks(cells, name), most)
    return _groups(cells, lambda cell: (name(cell) if name(cell) in shown else OTHER,))
