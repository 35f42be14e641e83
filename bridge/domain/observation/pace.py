"""The polling intervals for our placeholders in Slurm."""

from dataclasses import dataclass

REASONS_AFTER_S = 2.0
"""Most pods are placed sooner: nobody reads why they wait, and nothing is written for them."""

_CALM_SHARE = 0.1
"""The share of a calm period that passes before the next reading: after 20 s of calm, news may be
2 s old."""
_LISTS_PER_REST = 19
"""A twentieth of the time is for lists, so extender and controllers keep slurmrestd busy for a tenth."""
_LONGEST_REST_S = 10.0
"""Well below the age at which our view of Slurm counts as stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to read from Slurm; everything in seconds except the rate."""

    busy_s: float
    """Between readings while something waits and something has just happened."""
    idle_s: float
    """Between readings while nothing waits."""
    shortest_s: float
    """Between readings on demand: requests within that time share the second reading."""
    quiet_s: float = 10.0
    """How long Slurm may still accept a submit that got no reply: as long as a request takes by default."""
    first_reasons_per_s: float = 20.0
    """How many jobs per second may be asked for their reason for the first time: many new pods must not keep slurmrestd busy."""
    reasons_after_s: float = REASONS_AFTER_S
    """Jobs that have waited for less than this are not asked at all."""
    limits: bool = False
    """Whether running jobs are re-read in turn: their limits change without a change of state."""

    def while_waiting_s(self, *, calm_s: float) -> float:
        """Return the interval while jobs wait; nothing is known to have happened for `calm_s`."""
        return min(max(self.busy_s, _CALM_SHARE * calm_s), self.idle_s)

    def rest_s(self, *, listed_s: float, calm_s: float) -> float:
        """Return the shortest interval if Slurm takes `listed_s` for a list.

        Lists take long with 100 000 jobs of others, for example. Nothing of ours is known to
        have happened for `calm_s`.
        """
        return min(_LISTS_PER_REST * listed_s, _CALM_SHARE * calm_s, _LONGEST_REST_S)
