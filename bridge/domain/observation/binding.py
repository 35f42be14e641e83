"""Distinguish a pod that cannot be bound from a kube-scheduler that binds no pod at all.

kube-scheduler reports on each pod that it tried and failed to bind: `Unschedulable` if no node suits
the pod, `SchedulerError` if something went wrong on the way (an extender that is away, an API server
that refuses). While it is away it reports nothing, and while pods start by the thousand it takes its
time. Only its own report about this very pod starts a deadline.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, SlurmNode

_LULL_S = 30.0
"""If no pod has been bound for this long, binding may have stopped. kube-scheduler tries again
after 10 s at the latest."""

LASTS = timedelta(hours=1)
_MOST_OWNERS = 4096
_MOST_PER_OWNER = 16


class Bindings:
    """What one process has seen of kube-scheduler at work."""

    def __init__(self) -> None:
        self._steadily_since: float | None = None
        """Since when pods have been bound without a lull."""
        self._last: float | None = None
        self._failures: dict[PodUid, tuple[str, float]] = {}

    def bound(self, now: float) -> None:
        """Note that a pod was bound; now: monotonic seconds."""
        if not self._is_steady(now):
            self._steadily_since = now
        self._last = now

    def failing_since(self, pod: Pod, now: float) -> float | None:
        """Return since when kube-scheduler has failed to bind this pod, monotonic seconds.

        None if it has reported no failure, or if the error may concern every pod: then no other pod
        is bound either.
        """
        condition = pod.condition(names.POD_SCHEDULED)
        reason = condition.reason if condition is not None and condition.status == "False" else ""
        if reason not in (names.UNSCHEDULABLE, names.SCHEDULER_ERROR):
            self.forget(pod.uid)
            return None
        known, since = self._failures.get(pod.uid, (reason, now))
        if known != reason:
            since = now
        self._failures[pod.uid] = reason, since
        if reason == names.UNSCHEDULABLE:
            return since
        if self._steadily_since is None or not self._is_steady(now):
            return None
        return max(since, self._steadily_since)

    def forget(self, uid: PodUid) -> None:
        """Drop a pod that is bound or gone."""
        self._failures.pop(uid, None)

    def _is_steady(self, now: float) -> bool:
        return self._last is not None and now - self._last <= _LULL_S


@dataclass(frozen=True, slots=True)
class BindFailure:
    """One pod that was evicted because it could not be bound."""

    node: SlurmNode
    at: datetime


class BindFailures:
    """Nodes to which the pods of each controller could not be bound within the last hour.

    Their successors have other names and uids, so nothing on them or in Slurm shows that Slurm
    would choose the same nodes again. Kept in memory only: a new leader starts without it.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[BindFailure, ...]] = OrderedDict()

    def note(self, owner: str, node: SlurmNode, at: datetime) -> None:
        """Note an eviction; owner: the uid of the pod's controller."""
        self._of[owner] = (*self._of.pop(owner, ()), BindFailure(node, at))[-_MOST_PER_OWNER:]
        while len(self._of) > _MOST_OWNERS:
            self._of.popitem(last=False)

    def lately(self, owner: str, now: datetime) -> tuple[BindFailure, ...]:
        """Return the evictions of the last hour, oldest first."""
        return tuple(failure for failure in self._of.get(owner, ()) if now - failure.at < LASTS)
