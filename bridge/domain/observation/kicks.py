"""When to kick Slurm's scheduler; moments are monotonic seconds."""

from dataclasses import dataclass, replace
from typing import Final

SHORTEST_PAUSE_S: Final = 0.05
"""At most twenty kicks a second."""

SHARE: Final = 0.02
"""The share of one core that kicks may cost slurmctld: the longer its scheduler runs, the fewer kicks."""

LONGEST_PAUSE_S: Final = 600.0
"""The longest pause between kicks, however long its scheduler runs."""

SETTLES_S: Final = 0.02
"""From a kick to the start of a job, when Slurm has little else to do: 7 ms."""

LONGEST_SETTLING_S: Final = 2.0
"""slurmctld's scheduler stops after this long by default (`max_sched_time`)."""

AFTER_AN_END_S: Final = 0.1
"""From the end of a pod's containers until the controllers have reported it to Slurm, with some margin."""

AFTER_AN_END_AGAIN_S: Final = 1.0
"""The second kick, for pods that took longer."""

REST_S: Final = 30.0
"""After a kick that failed."""

ASK_AGAIN_S: Final = 600.0
"""How long Slurm's answer on whether it defers stays valid."""


@dataclass(frozen=True, slots=True)
class KickTimes:
    """When kicks are wanted; None: never."""

    first_at: float | None = None
    again_at: float | None = None

    def at(self, moment: float) -> "KickTimes":
        """Return this with a kick wanted at a moment, unless an earlier one is wanted."""
        first = moment if self.first_at is None else min(self.first_at, moment)
        return replace(self, first_at=first)

    def again(self, moment: float) -> "KickTimes":
        """Return this with the last kick of a series wanted at a moment, or later."""
        last = moment if self.again_at is None else max(self.again_at, moment)
        return replace(self, again_at=last)

    def after(self, kicked_at: float) -> "KickTimes":
        """Return the kicks that are still wanted after one: those due later."""
        return KickTimes(
            first_at=_later(self.first_at, kicked_at), again_at=_later(self.again_at, kicked_at)
        )

    @property
    def next_at(self) -> float | None:
        """When the next one is wanted."""
        return min((at for at in (self.first_at, self.again_at) if at is not None), default=None)


def pause_s(cycle_s: float) -> float:
    """Return the pause between two kicks; `cycle_s`: how long Slurm's scheduler ran last."""
    return min(max(SHORTEST_PAUSE_S, cycle_s / SHARE), LONGEST_PAUSE_S)


def settles_s(cycle_s: float) -> float:
    """Return how long after a kick its effect can be read."""
    return min(SETTLES_S + cycle_s, LONGEST_SETTLING_S)


def _later(moment: float | None, than: float) -> float | None:
    return moment if moment is not None and moment > than else None
