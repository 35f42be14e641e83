"""How often Slurm is asked how our placeholders are."""

from dataclasses import dataclass

_CALM_SHARE = 0.1
"""Of the time in which nothing has happened, to let pass before looking again: after 20 s of it, news may be 2 s old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often Slurm is asked; all in seconds but the rate."""

    busy_s: float
    """Between readings while something waits, and something has just happened."""
    idle_s: float
    """Between readings while nothing does."""
    shortest_s: float
    """Between readings that are asked for: what is asked in that time shares the second one."""
    quiet_s: float
    """For so long a submit without a reply may still be accepted."""
    first_reasons_per_s: float
    """How many jobs a second may be asked about that were never asked about."""
    reasons_after_s: float
    """Jobs that wait less than this are not asked about at all."""
    limits: bool = False
    """Whether running jobs are looked at in turn: their limits change without their states."""

    def while_waiting_s(self, *, calm_s: float) -> float:
        """Between readings while jobs wait and, as far as we know, nothing has happened for so long."""
        return min(max(self.busy_s, _CALM_SHARE * calm_s), self.idle_s)
