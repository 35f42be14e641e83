"""Nodes to which kube-scheduler could not bind the pods of a controller, for the pods it makes next.

Their successors have other names and uids, so nothing on them or in Slurm shows that Slurm would
choose the same nodes again. Kept in memory only: a new leader starts without it.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurmruntime.values.ids import SlurmNode

LASTS = timedelta(hours=1)
_MOST_OWNERS = 4096
_MOST_PER_OWNER = 16


@dataclass(frozen=True, slots=True)
class BindFailure:
    """One pod that was evicted because it could not be bound."""

    node: SlurmNode
    at: datetime


class BindFailures:
    """What happened to the pods of each controller within the last hour."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[BindFailure, ...]] = OrderedDict()

    def note(self, owner: str, node: SlurmNode, at: datetime) -> None:
        """Note an eviction; owner: the uid of the pod's controller."""
        self._of[owner] = (*self._of.pop(owner, ()), BindFailure(node, at))[-_MOST_PER_OWNER:]
        while len(self._of) > _MOST_OWNERS:
            self._of.popitem(last=False)

    def lately(self, owner: str, now: datetime) -> tuple[BindFailure, ...]:
        """Return the evictions of the last hour, oldest first."""
        return tuple(failure for failure in self._of.get(owner, ()) if now - failure.at < LASTS)
