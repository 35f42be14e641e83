"""Chooses the workers to replace now because their NodeSet has another template."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slurmoperator.workers import choosing
from slurmoperator.workers.choosing import REPLACED, RemovalCandidate
from slurmoperator.workers.situation import PodStage
from slurmruntime.values import numbers

_AWAY: Final = frozenset({"DRAIN", "DOWN", "FAIL", "INVALID_REG", "NOT_RESPONDING"})
"""States of a node that takes no jobs."""
_GONE: Final = (PodStage.TERMINATING, PodStage.OVER)
_ALL: Final = 100
_MOST: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCandidate:
    """A worker, not to be removed, of a NodeSet that is being updated."""

    worker: RemovalCandidate
    is_current: bool
    is_available: bool

    @property
    def is_old(self) -> bool:
        """Whether it has another template and is not ending already."""
        return not self.is_current and self.worker.pod.stage not in _GONE

    @property
    def is_away(self) -> bool:
        """Whether it takes no jobs, or that is unknown."""
        seen = self.worker.seen
        if not (self.is_available and seen.is_sure) or seen.node is None:
            return True
        return bool(seen.node.states & _AWAY)


def allowed_away(max_unavailable: int | str, desired: int) -> int:
    """Return how many workers may be away at once, from a number or a percentage such as `25%`: at least one, rounded up."""
    if isinstance(max_unavailable, int):
        return max(max_unavailable, 1)
    text = max_unavailable.removesuffix("%")
    percent = numbers.integer(text, most=_MOST) if text != max_unavailable else None
    # A text that the CRD would have refused counts as the minimum.
    return max(-(-desired * (percent or 0) // _ALL), 1)


def to_replace(
    candidates: Iterable[UpdateCandidate], *, missing: int, most_away: int
) -> frozenset[str]:
    """Return the names of the workers to replace now.

    Replacing a worker that never started costs nothing. Of the others, no more are under way than may be away: a worker counts from its
    drain until its successor takes jobs, so a template that does not work stops there. Workers that are away anyway go first, then idle ones.

    Args:
        candidates: the workers that should stay, with the old or the new template; `missing` others have no pod.
        most_away: how many may be away at once.
    """
    members = list(candidates)
    old = [member for member in members if member.is_old]
    renewed = [member for member in members if not member.is_old and member.is_away]
    unstarted = [member for member in old if member.worker.pod.stage is PodStage.UNSTARTED]
    started = [member for member in old if member.worker.pod.stage is not PodStage.UNSTARTED]
    known = [member for member in started if member.worker.seen.is_sure]
    chosen = [member for member in known if member.worker.is_drained_as(REPLACED)]
    others = [member for member in known if not member.worker.is_drained_as(REPLACED)]
    others.sort(key=lambda other: choosing.order(other.worker))
    broken = [other for other in others if other.is_away]
    # A successor may find no place while its Kubernetes node is cordoned.
    broken.sort(key=lambda other: other.worker.is_cordoned)
    serving = [other for other in others if not other.is_away]
    room = most_away - missing - len(renewed) - len(chosen) - (len(started) - len(known))
    going = [*unstarted, *chosen, *broken[: max(room, 0)], *serving[: max(room - len(broken), 0)]]
    return frozenset(member.worker.name for member in going)
