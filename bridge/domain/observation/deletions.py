"""When a pod's deletion was requested: known for sure only while its containers stop.

The kubelet's last DELETE, with no grace, sets `deletionTimestamp` to that very moment and the grace
period to 0 (measured on 1.36), and a finalizer keeps the pod readable. By then it looks as if the
pod had ended first and been deleted afterwards. So the earliest moment seen is remembered.
"""

from dataclasses import replace
from datetime import datetime

from bridge.domain.model.pods import Pod
from slurmruntime.values.ids import PodUid


class Deletions:
    """The deletion requests that one leader has seen."""

    def __init__(self) -> None:
        self._asked_at: dict[PodUid, datetime] = {}

    def see(self, pod: Pod) -> None:
        """Take in one version of a pod: each that the watch delivers."""
        if (asked_at := pod.deletion_requested_at) is not None:
            self._asked_at[pod.uid] = min(asked_at, self._asked_at.get(pod.uid, asked_at))

    def with_first(self, pod: Pod) -> Pod:
        """Return the pod with the earliest moment seen."""
        asked_at = self._asked_at.get(pod.uid)
        return pod if asked_at is None else replace(pod, deletion_asked_at=asked_at)

    def forget(self, uid: PodUid) -> None:
        """Drop a pod that is gone."""
        self._asked_at.pop(uid, None)
