"""What was written, read or refused a moment ago: in memory only, so that a look at rest asks nobody."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Generic, TypeVar

RECHECK: Final = timedelta(minutes=1)
"""How long what needs no change is not read again: a NodeSet is reconciled whenever one of its pods changes."""

_SHORTEST: Final = timedelta(milliseconds=1)

Q = TypeVar("Q")
R = TypeVar("R")


class RecentResults(Generic[Q, R]):
    """One result for each object, believed for a while if the same is asked again."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._results: dict[str, tuple[Q, R, float]] = {}
        """By the object's uid or name: the question, its result, and until when that is believed."""

    def of(self, key: str, question: Q) -> R | None:
        """Return the result for this very question. Another question ends the belief: what follows may change the object."""
        if key not in self._results:
            return None
        asked, result, until_s = self._results[key]
        if asked == question and self._monotonic() < until_s:
            return result
        del self._results[key]
        return None

    def remaining(self, key: str) -> timedelta:
        """Return how long the object's result is still believed: never zero, or who looks again after it would not stop looking."""
        _, _, until_s = self._results[key]
        return max(timedelta(seconds=until_s - self._monotonic()), _SHORTEST)

    def put(self, key: str, question: Q, result: R, *, lasts: timedelta) -> None:
        """Believe a result for a while, and forget those that are not believed any more."""
        now_s = self._monotonic()
        self._results = {other: entry for other, entry in self._results.items() if entry[2] > now_s}
        self._results[key] = question, result, now_s + lasts.total_seconds()
