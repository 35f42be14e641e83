"""Answers that are the same for many SlurmJobs, kept for some seconds."""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MOST: Final = 1000
"""Answers; then all are forgotten, and asked for again."""


class Remembered(Generic[T]):
    """Reads by key, and keeps each answer for a while; a failure is never kept."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[T]],
        *,
        lasts_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._read = read
        self._lasts_s = lasts_s
        self._monotonic = monotonic
        self._answers: dict[str, tuple[float, T]] = {}

    async def get(self, key: str) -> T:
        """Return the answer for a key; raises what reading it raises."""
        now = self._monotonic()
        kept = self._answers.get(key)
        if kept is not None and now - kept[0] < self._lasts_s:
            return kept[1]
        answer = await self._read(key)
        if len(self._answers) >= _MOST:
            self._answers.clear()
        self._answers[key] = (now, answer)
        return answer
