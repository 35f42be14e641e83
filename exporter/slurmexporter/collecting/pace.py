"""How often to poll Slurm: less often while slurmctld is slow."""

from typing import Final

from msgspec import Struct

_SLOW_S: Final = 1.0
"""slurmctld is slow if `sdiag` takes longer; milliseconds are usual."""
_MANY_THREADS: Final = 128
"""Half of slurmctld's threads for RPCs."""
_CALM: Final = 3
"""Calm readings in a row after which to poll more often again."""


class Pace(Struct, frozen=True):
    """The factor by which intervals are stretched, and why."""

    factor: float = 1.0
    calm: int = 0
    reason: str = ""


def adapt(pace: Pace, *, seconds: float | None, threads: int, most: float) -> Pace:
    """Return the pace after reading slurmctld's statistics.

    Args:
        seconds: How long reading took; None if it failed.
        threads: slurmctld's threads that served RPCs.
        most: The greatest factor.
    """
    if seconds is None:
        reason = "slurmctld does not answer"
    elif seconds > _SLOW_S:
        reason = f"slurmctld took {seconds:.1f} s to answer"
    elif threads > _MANY_THREADS:
        reason = f"slurmctld serves {threads} RPCs at once"
    elif pace.calm + 1 < _CALM or pace.factor == 1.0:
        return Pace(pace.factor, pace.calm + 1, pace.reason)
    else:
        factor = max(1.0, pace.factor / 2)
        return Pace(factor, 0, pace.reason if factor > 1.0 else "")
    return Pace(min(most, pace.factor * 2), 0, reason)
