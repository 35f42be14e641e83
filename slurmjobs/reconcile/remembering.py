"""A cache of answers that are the same for many SlurmJobs, for a few seconds."""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MOST: Final = 1000
"""The most answers; beyond that, all are dropped and read again."""


class AnswerCache(Generic[T]):
    """Reads by key and caches each answer for a while; failures are never cached."""

    def __init__(
        self, read: Callable[[str], Awaitable[T]], *, lasts_s: float, monotonic: Callable[[], float]
    ) -> None:
        self._read = read
        self._lasts_s = lasts_s
        self._monotonic = monotonic
        self._answers: dict[str, tuple[float, T]] = {}

    async def get(self, key: str) -> T:
        """Return the answer for a key. Errors of reading it pass through."""
        now = self._monotonic()
        cached = self._answers.get(key)
        if cached is not None and now - cached[0] < self._lasts_s:
            return cached[1]
        answer = await self._read(key)
        if len(self._answers) >= _MOST:
            self._answers.clear()
        self._answers[key] = (now, answer)
        return answer
