"""Pins that the API server refuses: the pod is too large for the patch, or an admission check denies it.

Meanwhile its placeholder holds nodes, so they are given back after the bind deadline. Only refusals
count; that the API server is away, or that our view was stale, proves nothing.
"""

from datetime import datetime

from bridge.domain.lifecycle.actions import Assign
from bridge.domain.lifecycle.decision import Decision, PinRefusal
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import PodUid

_LONGEST_BYTES = 512


class Pins:
    """Since when each pod's pin has been refused, as far as this leader has seen."""

    def __init__(self) -> None:
        self._refused: dict[PodUid, PinRefusal] = {}

    def get(self, pod: PodUid) -> PinRefusal | None:
        """Return the refusal; None if the pin was not refused."""
        return self._refused.get(pod)

    def refused(
        self,
        pod: PodUid,
        decision: Decision,
        text: str,
        at: datetime,
        *,
        is_of_devices: bool = False,
    ) -> None:
        """Note that a decision's write was refused; anything but a pin is ignored.

        is_of_devices: the pod's claims did not get their devices; the API server refused
        nothing.
        """
        assign = next((action for action in decision.actions if isinstance(action, Assign)), None)
        if assign is None:
            return
        before = self._refused.get(pod)
        is_same_job = before is not None and before.job_id == assign.job_id
        self._refused[pod] = PinRefusal(
            job_id=assign.job_id,
            since=before.since if before and is_same_job else at,
            tried_at=at,
            text=shortened(text, _LONGEST_BYTES),
            is_of_devices=is_of_devices,
        )

    def forget(self, pod: PodUid) -> None:
        """Forget a pod that is gone or has been placed."""
        self._refused.pop(pod, None)
