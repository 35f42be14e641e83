"""Which workers go when there are more than are wanted."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from cluster.workers.situation import REASON_PREFIX, PodStage, SeenWorker, WorkerPod

SCALED_IN = "scaled in"
REPLACED = "to be replaced: its NodeSet has another template"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingWorker:
    """A worker that may have to go."""

    name: str
    ordinal: int
    pod: WorkerPod
    seen: SeenWorker
    deletion_cost: int = 0
    """As for ReplicaSets: the cheaper one goes first."""
    free_at: datetime | None = None
    """When the last of its jobs reaches its time limit; None if it has none, or no limit is known."""
    is_cordoned: bool = False

    @property
    def was_chosen(self) -> bool:
        """Check whether it was chosen before: it stays so, or drains would wander without an end."""
        return self.is_drained_as(SCALED_IN)

    def is_drained_as(self, why: str) -> bool:
        """Check whether we have drained it for this reason."""
        node = self.seen.node
        return node is not None and node.reason == REASON_PREFIX + why


def to_go(candidates: Iterable[LeavingWorker], wanted: int) -> frozenset[str]:
    """Return the names of those that are too many.

    Idle ones go before busy ones, and those that are free soon before the others. Pods that go anyway count first. A worker
    whose state in Slurm is unknown, because we have just written to it, counts as chosen until the next reading. It may be drained
    already, and any worker that took its place would be drained as well.
    """
    ordered = sorted(candidates, key=order)
    return frozenset(each.name for each in ordered[: max(len(ordered) - wanted, 0)])


def order(candidate: LeavingWorker) -> tuple[object, ...]:
    """Return what workers are sorted by: the least goes first."""
    pod, seen = candidate.pod, candidate.seen
    is_gone = pod.stage in (PodStage.TERMINATING, PodStage.OVER)
    free_at = candidate.free_at
    return (
        not is_gone,
        pod.stage is not PodStage.UNSTARTED,
        not candidate.was_chosen,
        seen.is_sure,
        not candidate.is_drained_as(REPLACED),
        seen.has_jobs,
        pod.stage is PodStage.READY,
        candidate.deletion_cost,
        free_at is None if seen.has_jobs else False,
        free_at.timestamp() if seen.has_jobs and free_at is not None else 0.0,
        not candidate.is_cordoned,
        -candidate.ordinal,
    )


def to_come(taken: Iterable[int], wanted: int) -> tuple[int, ...]:
    """Return the numbers of the workers that are missing: the lowest that are free."""
    there = set(taken)
    count = max(wanted - len(there), 0)
    return tuple(islice((number for number in itertools.count() if number not in there), count))
