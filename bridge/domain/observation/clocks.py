"""Which clock counts: this machine's may be wrong, and jump.

Time limits are Slurm's, and so are the moments when jobs were submitted and started. Each reading of
Slurm that includes its time is a reference; from there on our monotonic clock counts, which never
jumps. While both clocks agree, our own is used, as it is finer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

AGREE_S = 5.0
"""How far the clocks may differ. Slurm reports whole seconds, and time limits are minutes."""

_RESOLUTION = timedelta(seconds=1)
"""Both systems report whole seconds."""


def skew_s(reported: datetime, *, asked: datetime, answered: datetime) -> float:
    """Return their clock minus ours, beyond what the response time can explain."""
    if reported > answered:
        return (reported - answered).total_seconds()
    return min((reported + _RESOLUTION - asked).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The time that a peer reported, and when it was asked by our monotonic clock."""

    reported: datetime
    asked_s: float
    answered_s: float

    def skew_s(self, ours: datetime, monotonic_s: float) -> float:
        """Return their clock minus ours, now: ours may have jumped since they were asked."""
        began = ours - timedelta(seconds=monotonic_s)
        return skew_s(
            self.reported,
            asked=began + timedelta(seconds=self.asked_s),
            answered=began + timedelta(seconds=self.answered_s),
        )

    def now(self, monotonic_s: float) -> datetime:
        """Return the time by their clock, late by a second and the response time at most."""
        return self.reported + timedelta(seconds=monotonic_s - self.answered_s)


def trusted(ours: datetime, monotonic_s: float, slurms: ClockReading | None) -> datetime:
    """Return the time to decide by: ours if the clocks agree, else Slurm's."""
    if slurms is None or abs(slurms.skew_s(ours, monotonic_s)) <= AGREE_S:
        return ours
    return slurms.now(monotonic_s)
