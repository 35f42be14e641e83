"""The loop over pods that the extender and the controllers have in common: gather, decide, act.

Which pods are whose, the lifecycle says; what else there is to gather, each program says by its `Side`.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from bridge.domain import lifecycle
from bridge.domain.dwell import Dwell
from bridge.domain.facts import Actor, Facts, Policy
from bridge.domain.ids import PodUid
from bridge.domain.lifecycle import Row
from bridge.domain.pods import Pod
from bridge.domain.view import Past, View
from bridge.kube.cache import Cache
from bridge.runtime import worker
from bridge.runtime.actuator import Actuator
from bridge.runtime.clock import Clock
from bridge.runtime.metrics import Metrics
from bridge.runtime.placeholders import Placeholders
from bridge.runtime.workqueue import WorkQueue


class Side(Protocol):
    """What differs between the two programs that act on pods."""

    @property
    def actor(self) -> Actor:
        """Whose pods these are."""
        ...

    def past(self, pod: Pod) -> Past:
        """Whether somebody else may have a write about this pod in flight."""
        ...

    def gather(self, pod: Pod, view: View, *, now: datetime, since: datetime) -> Facts:
        """Put together everything the decision looks at."""
        ...

    def forget(self, uid: PodUid) -> None:
        """The pod is gone, or in the other program's hands."""
        ...


class PodLoop:
    """One leadership's work on pods; made when it begins, dropped when it ends."""

    def __init__(
        self,
        side: Side,
        *,
        pods: Cache[Pod],
        queue: WorkQueue[PodUid],
        placeholders: Placeholders,
        actuator: Actuator,
        policy: Policy,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._side = side
        self._pods = pods
        self._queue = queue
        self._placeholders = placeholders
        self._actuator = actuator
        self._policy = policy
        self._clock = clock
        self._metrics = metrics
        self._dwell = Dwell()
        self._rows: dict[PodUid, Row] = {}

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Work on pods until told to stop."""
        self._pods.subscribe(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._placeholders.run(stop))
            await worker.run(
                self._queue,
                self.reconcile,
                name="pods",
                count=workers,
                stop=stop,
                metrics=self._metrics,
            )

    async def reconcile(self, uid: PodUid) -> timedelta | None:
        """Look at one pod, and do what has to be done; returns when to look again without an event.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        pod = self._pods.get(uid)
        if pod is None or lifecycle.actor(pod) is not self._side.actor:
            self._forget(uid)
            return None
        structlog.contextvars.bind_contextvars(pod=pod.full_name)
        self._placeholders.meet(uid, self._side.past(pod))
        decision = lifecycle.decide(self._gather(pod), self._policy)
        await self._actuator.carry_out(pod, decision)
        return decision.retry_after

    def _gather(self, pod: Pod) -> Facts:
        now = self._clock.now()
        view = self._placeholders.view(pod)
        cell = lifecycle.cell(pod, view)
        self._count(pod.uid, cell[0])
        since = self._dwell.since(pod.uid, cell, now)
        return self._side.gather(pod, view, now=now, since=since)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the pod if it is, or was, this side's."""
        mine = [pod for pod in (old, new) if pod and lifecycle.actor(pod) is self._side.actor]
        if mine:
            self._queue.add(mine[-1].uid)

    def _forget(self, uid: PodUid) -> None:
        self._placeholders.forget(uid)
        self._side.forget(uid)
        self._dwell.forget(uid)
        self._count(uid, None)

    def _count(self, uid: PodUid, row: Row | None) -> None:
        before = self._rows.pop(uid, None)
        if row is not None:
            self._rows[uid] = row
        if row is not before:
            self._metrics.pod_moved(_label(before), _label(row))


def _label(row: Row | None) -> str | None:
    return row.name.lower() if row else None
