"""Which workers are replaced because their NodeSet has another template, and when."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slurmoperator.workers import choosing
from slurmoperator.workers.choosing import REPLACED, LeavingWorker
from slurmoperator.workers.situation import PodStage
from slurmruntime.values import numbers

_AWAY: Final = frozenset({"DRAIN", "DOWN", "FAIL", "INVALID_REG", "NOT_RESPONDING"})
"""States of a node that takes no jobs."""
_GONE: Final = (PodStage.TERMINATING, PodStage.OVER)
_ALL: Final = 100
_MOST: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledWorker:
    """A worker of a NodeSet that is updated; it is to stay."""

    worker: LeavingWorker
    is_current: bool
    """It was made from the template as it is now."""
    is_available: bool
    """It has been ready for long enough."""

    @property
    def is_old(self) -> bool:
        """Check whether it has another template, and is not going already."""
        return not self.is_current and self.worker.pod.stage not in _GONE

    @property
    def is_away(self) -> bool:
        """Check whether it takes no jobs, or nobody knows."""
        seen = self.worker.seen
        if not (self.is_available and seen.is_sure) or seen.node is None:
            return True
        return bool(seen.node.states & _AWAY)


def allowed_away(max_unavailable: int | str, wanted: int) -> int:
    """Return how many workers may be away at once: at least one, and a percentage is rounded up.

    Args:
        max_unavailable: a number, or a percentage such as `25%`.
        wanted: how many workers there are to be.
    """
    if isinstance(max_unavailable, int):
        return max(max_unavailable, 1)
    text = max_unavailable.removesuffix("%")
    percent = numbers.whole(text, most=_MOST) if text != max_unavailable else None
    # What the definition would not have let in is taken for the least.
    return max(-(-wanted * (percent or 0) // _ALL), 1)


def to_replace(rolled: Iterable[RolledWorker], *, missing: int, most_away: int) -> frozenset[str]:
    """Return the names of the workers that are replaced now.

    Those that never started cost nothing. Of the others, no more are under way than may be away: a worker counts from its drain until
    its successor takes jobs. So a template that does not work stops there. Those that are away anyway go first, then idle ones.

    Args:
        rolled: the workers that are to stay, old and new.
        missing: how many have no pod.
        most_away: how many may be away at once.
    """
    some = list(rolled)
    old = [each for each in some if each.is_old]
    renewed = [each for each in some if not each.is_old and each.is_away]
    unstarted = [each for each in old if each.worker.pod.stage is PodStage.UNSTARTED]
    started = [each for each in old if each.worker.pod.stage is not PodStage.UNSTARTED]
    known = [each for each in started if each.worker.seen.is_sure]
    chosen = [each for each in known if each.worker.is_drained_as(REPLACED)]
    others = [each for each in known if not each.worker.is_drained_as(REPLACED)]
    broken = sorted((other for other in others if other.is_away), key=_cordoned_last)
    serving = sorted((other for other in others if not other.is_away), key=_idle_first)
    room = most_away - missing - len(renewed) - len(chosen) - (len(started) - len(known))
    going = [
        *unstarted,
        *chosen,
        *broken[: max(room, 0)],
        *serving[: max(room - len(broken), 0)],
    ]
    return frozenset(each.worker.name for each in going)


def _idle_first(rolled: RolledWorker) -> tuple[object, ...]:
    return choosing.order(rolled.worker)


def _cordoned_last(rolled: RolledWorker) -> tuple[object, ...]:
    """Sort as for those that serve; but a successor may find no place while its Kubernetes node is cordoned."""
    return (rolled.worker.is_cordoned, *choosing.order(rolled.worker))
