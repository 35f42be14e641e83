"""What is surely known of Slurm's nodes: readings of the whole list, and when each node was last written to.

A list began before it arrived: what was written in between may be missing in it. And one list that lacks nodes (Slurm
was starting, the answer was cut short) is no reason to do anything: absent is what two lists in a row do not have.
All moments are seconds of one monotonic clock.
"""

import enum
from collections.abc import Iterable, Iterator

from bridge.domain.ids import SlurmNode
from bridge.domain.model.nodes import SlurmNodeFacts


class Unknown(enum.Enum):
    """Nothing is to be concluded yet: the next list will tell."""

    UNKNOWN = enum.auto()


UNKNOWN = Unknown.UNKNOWN


class NodeBook:
    """One process's picture of Slurm's nodes."""

    def __init__(self) -> None:
        self._nodes: dict[SlurmNode, SlurmNodeFacts] = {}
        self._suspects: set[SlurmNode] = set()
        """Of those, the ones that the last list lacked."""
        self._written_at: dict[SlurmNode, float] = {}
        self._seen_at: dict[SlurmNode, float] = {}
        """By itself, later than the last list began."""
        self._asked: set[SlurmNode] = set()
        """What was asked for and not known: whoever asked waits to be told."""
        self._is_read = False

    def get(self, name: SlurmNode) -> SlurmNodeFacts | Unknown | None:
        """The node; None: Slurm has none of that name; unknown: the `read` that finds it out returns the name."""
        if not self._is_read or name in self._written_at or name in self._suspects:
            self._asked.add(name)
            return UNKNOWN
        return self._nodes.get(name)

    def values(self) -> Iterable[SlurmNodeFacts]:
        """Every node, as last read."""
        return self._nodes.values()

    @property
    def is_settled(self) -> bool:
        """No node waits for another list."""
        return self._is_read and not self._written_at and not self._suspects

    def wrote(self, name: SlurmNode, *, at: float) -> None:
        """Note the end of a write to a node, whatever came of it."""
        self._written_at[name] = at

    def saw(self, name: SlurmNode, node: SlurmNodeFacts | None, *, at: float) -> None:
        """Take in one node by itself: read by a request that began at that moment, or deleted then."""
        if self._written_at.get(name, -1.0) > at:
            return
        self._written_at.pop(name, None)
        self._seen_at[name] = at
        self._suspects.discard(name)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node

    def read(self, listed: Iterable[SlurmNodeFacts], *, began: float) -> frozenset[SlurmNode]:
        """Take in a list; return the names of which something else is known than before."""
        found = {node.name: node for node in listed}
        changed: set[SlurmNode] = set()
        for name in {*found, *self._nodes, *self._written_at}:
            if max(self._written_at.get(name, -1.0), self._seen_at.get(name, -1.0)) >= began:
                continue
            self._seen_at.pop(name, None)
            changed.update(self._take(name, found.get(name)))
        self._is_read = True
        answered = {
            name
            for name in self._asked
            if name not in self._written_at and name not in self._suspects
        }
        self._asked -= answered
        return frozenset(changed | answered)

    def _take(self, name: SlurmNode, node: SlurmNodeFacts | None) -> Iterator[SlurmNode]:
        was_written = self._written_at.pop(name, None) is not None
        old = self._nodes.get(name)
        if node is None and old is not None and not was_written and name not in self._suspects:
            self._suspects.add(name)
            return
        was_suspect = name in self._suspects
        self._suspects.discard(name)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        if was_written or was_suspect or old != node:
            yield name
