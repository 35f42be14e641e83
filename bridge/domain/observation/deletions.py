"""When pods were asked to go: known for sure only while their containers stop.

The kubelet's last DELETE, with no grace, sets `deletionTimestamp` to that very moment and the grace period to 0
(measured on 1.36), and a finalizer keeps the pod there to be read. By then it looks as if it had ended first and been
deleted afterwards. So the first moment that was seen is remembered.
"""

from dataclasses import replace
from datetime import datetime

from bridge.domain.ids import PodUid
from bridge.domain.model.pods import Pod


class Deletions:
    """What one leader has seen of it."""

    def __init__(self) -> None:
        self._asked_at: dict[PodUid, datetime] = {}

    def see(self, pod: Pod) -> None:
        """Take in a version of a pod; each that the watch delivers."""
        if (asked_at := pod.deletion_requested_at) is not None:
            self._asked_at[pod.uid] = min(asked_at, self._asked_at.get(pod.uid, asked_at))

    def with_first(self, pod: Pod) -> Pod:
        """Put the earliest moment seen into the pod."""
        asked_at = self._asked_at.get(pod.uid)
        return pod if asked_at is None else replace(pod, deletion_asked_at=asked_at)

    def forget(self, uid: PodUid) -> None:
        """The pod is gone."""
        self._asked_at.pop(uid, None)
