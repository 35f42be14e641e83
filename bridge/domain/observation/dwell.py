"""Since when something is as it is, as far as one process has seen: what deadlines are measured from.

Neither Kubernetes nor Slurm says since when a pod waits to be bound or a placeholder waits to be restored, and clocks
differ. Forgetting by a restart begins the deadlines anew, which errs on the side of waiting.
"""

from collections.abc import Hashable
from datetime import datetime


class Dwell:
    """Remembers, per workload or pod, its present situation and when that was first seen."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[Hashable, datetime]] = {}

    def since(self, uid: str, situation: Hashable, now: datetime) -> datetime:
        """Say when this situation was first seen without another one in between; now, if it is new."""
        known = self._since.get(uid)
        if known is None or known[0] != situation:
            self._since[uid] = known = (situation, now)
        return known[1]

    def forget(self, uid: str) -> None:
        """It is gone."""
        self._since.pop(uid, None)
