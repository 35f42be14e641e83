"""Sums over cells of jobs by partition, account and user, within the budget of label values."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurmexporter.families.chapter import Limits
from slurmexporter.families.picture import Picture
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.text.budget import OTHER, largest

Namer = Callable[[Cell], Iterable[str]]
"""Returns the label values that a cell counts under; several for a job in several partitions."""


def in_partitions(cell: Cell) -> Iterable[str]:
    """Return the partitions of a cell: all that pending jobs may run in, or the one that jobs run in."""
    return cell.traits.partitions


def by_account(cells: Iterable[Cell], limits: Limits) -> Namer:
    """Return the account of a cell; accounts beyond the budget are `(other)`."""
    return _within_budget(cells, lambda cell: cell.traits.account, limits.top_accounts)


def by_user(cells: Iterable[Cell], limits: Limits) -> Namer:
    """Return the user of a cell; users beyond the budget are `(other)`. None without a budget."""
    if not limits.top_users:
        return lambda _: ()
    return _within_budget(cells, lambda cell: cell.traits.user, limits.top_users)


def groups(
    cells: Iterable[Cell], name: Namer, always: Iterable[str] = ()
) -> Mapping[str, Sequence[Cell]]:
    """Group cells by a label, with a group for every name in `always`, even if empty."""
    grouped: dict[str, list[Cell]] = {label: [] for label in always}
    for cell in cells:
        for label in name(cell):
            grouped.setdefault(label, []).append(cell)
    return grouped


def nodes_by_partition(picture: Picture) -> Mapping[str, Sequence[SlurmNode]]:
    """Group nodes by partition, also by one that was removed since; partitions without nodes are empty."""
    members: dict[str, list[SlurmNode]] = {
        partition.name: [] for partition in picture.partitions or ()
    }
    for node in picture.nodes or ():
        for name in node.partitions:
            members.setdefault(name, []).append(node)
    return members


def sums(
    cells: Iterable[Cell], key: Callable[[Cell], str], amount: Callable[[Cell], float]
) -> Iterator[tuple[str, float]]:
    """Yield the sum of an amount by key."""
    totals: dict[str, float] = defaultdict(float)
    for cell in cells:
        totals[key(cell)] += amount(cell)
    yield from totals.items()


def _within_budget(cells: Iterable[Cell], name: Callable[[Cell], str], most: int) -> Namer:
    weights = dict(sums(cells, name, lambda cell: cell.tasks))
    largest_names = largest(weights, most)
    return lambda cell: (name(cell) if name(cell) in largest_names else OTHER,)
