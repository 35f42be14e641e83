"""Refused submits, counted until one is accepted; a new leader has none and simply tries again."""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from bridge.domain.faults import shortened
from bridge.domain.ids import PodUid
from bridge.domain.lifecycle.decision import SubmitRefusal

K = TypeVar("K")


class Refusals(Generic[K]):
    """The latest refusal of each key's submits."""

    def __init__(self) -> None:
        self._last: dict[K, SubmitRefusal] = {}
        self._members: dict[K, frozenset[PodUid]] = {}
        self._of: dict[PodUid, K] = {}

    def get(self, key: K) -> SubmitRefusal | None:
        """Return the last one, with how many came in a row; None since a submit was accepted."""
        return self._last.get(key)

    def add(
        self, key: K, text: str, *, at: datetime, members: Iterable[PodUid] = ()
    ) -> SubmitRefusal:
        """Count one more refusal of a submit that was for these pods."""
        before = self._last.get(key)
        self.clear(key)
        refusal = SubmitRefusal(
            attempts=before.attempts + 1 if before else 1, at=at, text=shortened(text)
        )
        self._last[key] = refusal
        self._members[key] = frozenset(members)
        self._of.update(dict.fromkeys(self._members[key], key))
        return refusal

    def clear(self, key: K) -> None:
        """Forget the key's refusals: accepted, or the request has changed or is gone."""
        self._last.pop(key, None)
        for pod in self._members.pop(key, ()):
            self._of.pop(pod, None)

    def clear_for(self, pod: PodUid) -> None:
        """Forget the refusals of a submit that was for this pod."""
        if (key := self._of.get(pod)) is not None:
            self.clear(key)
