"""Chooses the workers to remove when there are more than desired, and the ordinals to create."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from slurmoperator.workers.situation import REASON_PREFIX, PodStage, WorkerObservation, WorkerPod

# Reasons of drains in Slurm: a later version has to recognize them there.
SCALED_IN = "scaled in"
REPLACED = "to be replaced: its NodeSet has another template"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalCandidate:
    """A worker that may have to be removed."""

    name: str
    ordinal: int
    pod: WorkerPod
    seen: WorkerObservation
    deletion_cost: int = 0
    """As for ReplicaSets: the cheaper one is removed first."""
    free_at: datetime | None = None
    """When its last job reaches its time limit; None without jobs or a known limit."""
    is_cordoned: bool = False

    def is_drained_as(self, why: str) -> bool:
        """Check whether we have drained it for this reason."""
        node = self.seen.node
        return node is not None and node.reason == REASON_PREFIX + why


def workers_to_remove(candidates: Iterable[RemovalCandidate], desired: int) -> frozenset[str]:
    """Return the names of the surplus workers.

    Idle workers go before busy ones, and of these the ones that are free soonest. Pods that are ending anyway count first. A worker
    whose state in Slurm is unknown, because we have just written to it, counts as chosen until the next reading. It may be drained
    already, and any worker that took its place would be drained as well.
    """
    ordered = sorted(candidates, key=order)
    surplus = ordered[: max(len(ordered) - desired, 0)]
    return frozenset(candidate.name for candidate in surplus)


def order(candidate: RemovalCandidate) -> tuple[object, ...]:
    """Return the sort key of a worker: the lowest is removed first."""
    pod, seen = candidate.pod, candidate.seen
    is_gone = pod.stage in (PodStage.TERMINATING, PodStage.OVER)
    free_at = candidate.free_at
    return (
        not is_gone,
        pod.stage is not PodStage.UNSTARTED,
        not candidate.is_drained_as(SCALED_IN),  # it stays chosen, or drains would wander endlessly
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


def ordinals_to_create(taken: Iterable[int], desired: int) -> tuple[int, ...]:
    """Return the ordinals of the missing workers: the lowest free ones."""
    used = set(taken)
    count = max(desired - len(used), 0)
    return tuple(islice((ordinal for ordinal in itertools.count() if ordinal not in used), count))
