"""Expectations about Slurm's nodes: what is certain, given full lists and our own writes.

A list starts before it arrives, so it may miss what was written in between. One list without some
nodes (Slurm was starting, the response was cut short) proves nothing: a node counts as absent when
two lists in a row lack it. All times are seconds of one monotonic clock.
"""

import enum
from collections.abc import Iterable, Iterator

from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode


class Unknown(enum.Enum):
    """Nothing can be concluded yet; a later list will settle it."""

    UNKNOWN = enum.auto()


UNKNOWN = Unknown.UNKNOWN


class NodeBook:
    """One process's view of Slurm's nodes."""

    def __init__(self) -> None:
        self._nodes: dict[SlurmNode, SlurmNodeFacts] = {}
        self._suspects: set[SlurmNode] = set()
        """The nodes among them that the last list lacked."""
        self._written_at: dict[SlurmNode, float] = {}
        self._seen_at: dict[SlurmNode, float] = {}
        """When a node was last read by itself, after the last list started."""
        self._asked: set[SlurmNode] = set()
        """Nodes that were requested while unknown; the next `read` reports them."""
        self._is_read = False

    def get(self, name: SlurmNode) -> SlurmNodeFacts | Unknown | None:
        """Return the node, None if Slurm has none of that name, or UNKNOWN.

        After UNKNOWN, the `read` that settles it returns the name.
        """
        if not self._is_read or name in self._written_at or name in self._suspects:
            self._asked.add(name)
            return UNKNOWN
        return self._nodes.get(name)

    @property
    def is_settled(self) -> bool:
        """Check that no node is waiting for another list."""
        return self._is_read and not self._written_at and not self._suspects

    def wrote(self, name: SlurmNode, *, at: float) -> None:
        """Record when a write to a node ended, whatever its outcome."""
        self._written_at[name] = at

    def saw(self, name: SlurmNode, node: SlurmNodeFacts | None, *, at: float) -> None:
        """Take in a single node: read by a request that started at that time, or deleted then."""
        if self._written_at.get(name, -1.0) > at:
            return
        self._written_at.pop(name, None)
        self._seen_at[name] = at
        self._put(name, node)

    def read(self, listed: Iterable[SlurmNodeFacts], *, began: float) -> frozenset[SlurmNode]:
        """Take in a list and return the names of the nodes whose known state has changed."""
        by_name = {node.name: node for node in listed}
        changed: set[SlurmNode] = set()
        for name in {*by_name, *self._nodes, *self._written_at}:
            if max(self._written_at.get(name, -1.0), self._seen_at.get(name, -1.0)) >= began:
                continue
            self._seen_at.pop(name, None)
            changed.update(self._take(name, by_name.get(name)))
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
        self._put(name, node)
        if was_written or was_suspect or old != node:
            yield name

    def _put(self, name: SlurmNode, node: SlurmNodeFacts | None) -> None:
        self._suspects.discard(name)
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
