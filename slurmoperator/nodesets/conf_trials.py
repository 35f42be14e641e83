"""Whether slurmctld accepts the `extraConf` of NodeSets; the controller of daemons has it tried.

A slurmd that its slurmctld refuses exits again and again, so workers get only what would be accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass

from slurmoperator.objects.nodeset import NodeSetObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfTrial:
    """The result of trying a NodeSet's `extraConf`."""

    extra_conf: str
    is_known: bool
    words: str = ""
    """Why slurmctld would refuse it, or "" if it would not; or why that is unknown."""


class ConfTrials:
    """The trials of all NodeSets, by their uids."""

    def __init__(self) -> None:
        self._trials: dict[str, ConfTrial] = {}
        self._wake: Callable[[str], None] = lambda _: None

    def follow(self, wake: Callable[[str], None]) -> None:
        """Call this with the uid of each NodeSet whose result changes."""
        self._wake = wake

    def put(self, uid: str, trial: ConfTrial) -> None:
        """Store a result."""
        if self._trials.get(uid) != trial:
            self._trials[uid] = trial
            self._wake(uid)

    def of(self, node_set: NodeSetObject) -> ConfTrial | None:
        """Return the result for a NodeSet's present `extraConf`; None if it has not been tried."""
        trial = self._trials.get(node_set.metadata.uid)
        return trial if trial and trial.extra_conf == node_set.spec.extra_conf else None

    def forget(self, uid: str) -> None:
        """Drop a NodeSet that is gone."""
        self._trials.pop(uid, None)
