"""The lifecycle cell of each pod: since when (for deadlines), and how many are in each."""

from datetime import UTC, datetime, timedelta

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Row
from bridge.domain.model.pods import Pod
from bridge.domain.observation.dwell import TimeInState
from bridge.domain.observation.view import View
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import PodUid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LifecycleCells:
    """The situations of one leader's pods."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._dwell = TimeInState()
        self._rows: dict[PodUid, Row] = {}

    def since(self, pod: Pod, view: View, now: datetime) -> datetime:
        """Note a pod's situation and return when it was first seen in it.

        Time is measured by the monotonic clock: a deadline must not pass because `now` jumps.
        """
        cell = lifecycle.cell(pod, view)
        self._count(pod.uid, cell[0])
        steady = _EPOCH + timedelta(seconds=self._clock.monotonic())
        return now - (steady - self._dwell.since(pod.uid, cell, steady))

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is gone or on the other side."""
        self._dwell.forget(uid)
        self._count(uid, None)

    def _count(self, uid: PodUid, row: Row | None) -> None:
        before = self._rows.pop(uid, None)
        if row is not None:
            self._rows[uid] = row
        if row is not before:
            self._metrics.pods.moved(_label(before), _label(row))


def _label(row: Row | None) -> str | None:
    return row.name.lower() if row else None
