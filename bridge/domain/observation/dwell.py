"""How long a situation has lasted, as far as one process has seen: the base of deadlines.

Neither Kubernetes nor Slurm reports since when a pod has waited to be bound or a placeholder to be
restored, and clocks differ. A restart forgets and so starts the deadlines again, which errs on the
side of waiting.
"""

from collections.abc import Hashable
from datetime import datetime


class TimeInState:
    """Remembers each workload's or pod's current situation and when it was first seen."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[Hashable, datetime]] = {}

    def since(self, uid: str, situation: Hashable, now: datetime) -> datetime:
        """Return when this situation was first seen, uninterrupted; now, if it is new."""
        known = self._since.get(uid)
        if known is None or known[0] != situation:
            self._since[uid] = known = (situation, now)
        return known[1]

    def forget(self, uid: str) -> None:
        """Drop a workload or pod that is gone."""
        self._since.pop(uid, None)
