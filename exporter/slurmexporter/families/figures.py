"""Tables of families: what each shows, of groups of jobs or nodes, or of one object."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from slurmexporter.families.chapter import MetricBuilder
from slurmexporter.readings.cells import Cell
from slurmexporter.readings.node import SlurmNode
from slurmexporter.readings.states import NODE_STATES
from slurmexporter.text.family import gauge

T = TypeVar("T")

Figure: TypeAlias = tuple[str, Callable[[Sequence[T]], float | None]]
"""What a family shows, in words, and its value for a group; None for no sample."""
Weight: TypeAlias = Literal["jobs", "tasks"]
"""What counts: the pending tasks of an array are one job, and several tasks."""


class FigureSet(Generic[T]):
    """Families with a common prefix, one for each figure."""

    def __init__(
        self, prefix: str, figures: Mapping[str, Figure[T]], *labels: str, ends: str = "."
    ) -> None:
        """figures: by the ends of the families' names, "" for the prefix itself; ends: the end of the help texts."""
        self._values = {
            gauge(f"{prefix}_{suffix}" if suffix else prefix, f"{words}{ends}", *labels): value
            for suffix, (words, value) in figures.items()
        }
        self.families = tuple(self._values)

    def add(self, out: MetricBuilder, group: Sequence[T], *labels: str) -> None:
        """Add the figures of a group, which these labels name."""
        for family, value in self._values.items():
            if (figure := value(group)) is not None:
                out.add(family, figure, *labels)

    def add_all(self, out: MetricBuilder, groups: Mapping[str, Sequence[T]]) -> None:
        """Add the figures of several groups, each with its name as its label."""
        for name, group in groups.items():
            self.add(out, group, name)


def one(words: str, amount: Callable[[T], float | None]) -> Figure[T]:
    """Return a figure of the only object in a group."""
    return words, lambda group: amount(group[0])


def jobs(words: str, holds: Callable[[Cell], bool], weight: Weight = "tasks") -> Figure[Cell]:
    """Return how many jobs there are of which something holds."""
    return words, lambda cells: sum(getattr(cell, weight) for cell in cells if holds(cell))


def in_state(state: str, weight: Weight = "tasks") -> Figure[Cell]:
    """Return how many jobs are in a state."""
    return jobs(f"Jobs in state {state}", lambda cell: cell.traits.state == state, weight)


def with_flag(flag: str, weight: Weight = "tasks") -> Figure[Cell]:
    """Return how many jobs have a flag."""
    return jobs(f"Jobs with flag {flag}", lambda cell: flag in cell.traits.flags, weight)


def allocated(words: str, amount: Callable[[Cell], float]) -> Figure[Cell]:
    """Return what jobs have of a resource."""
    return words, lambda cells: sum(amount(cell) for cell in cells if cell.holds)


def nodes(words: str, holds: Callable[[SlurmNode], bool]) -> Figure[SlurmNode]:
    """Return how many nodes there are of which something holds."""
    return words, lambda group: sum(map(holds, group))


def nodes_in(state: str) -> Figure[SlurmNode]:
    """Return how many nodes are in a base state, or have a flag."""
    if state in NODE_STATES:
        return nodes(f"Nodes in state {state}", lambda node: node.state == state)
    return nodes(f"Nodes with flag {state}", lambda node: state in node.flags)


def size(words: str, amount: Callable[[SlurmNode], float]) -> Figure[SlurmNode]:
    """Return what nodes have of something."""
    return words, lambda group: sum(map(amount, group))
