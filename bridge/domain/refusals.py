"""Refused submits, counted until one is accepted; a new leader has none and simply tries again."""

from datetime import datetime
from typing import Generic, TypeVar

from bridge.domain.facts import Refusal

K = TypeVar("K")


class Refusals(Generic[K]):
    """What was said against the last submits, by what they were for."""

    def __init__(self) -> None:
        self._last: dict[K, Refusal] = {}

    def get(self, key: K) -> Refusal | None:
        """Return the last one, with how many there were in a row; None since a submit was accepted."""
        return self._last.get(key)

    def add(self, key: K, text: str, *, at: datetime) -> Refusal:
        """Count one more."""
        before = self._last.get(key)
        refusal = Refusal(attempts=before.attempts + 1 if before else 1, at=at, text=text)
        self._last[key] = refusal
        return refusal

    def clear(self, key: K) -> None:
        """Forget them: a submit was accepted, something else is asked for now, or nobody asks any more."""
        self._last.pop(key, None)
