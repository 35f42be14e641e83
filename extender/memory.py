"""A short-lived cache, bounded by its number of entries and by their size.

An object may have 1.5 MB, ten times as much in memory, and any user can create many.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from slurmruntime.model.objects import KubeObject

K = TypeVar("K")
V = TypeVar("V")

MOST = 4096
MOST_BYTES = 8 * 2**20
"""Limit for all entries together, as JSON."""


def size_of(answer: KubeObject | None) -> int:
    """Return the size of an object as JSON; 0 for none."""
    return answer.size_bytes if answer else 0


class Memory(Generic[K, V]):
    """The latest answer for each key; the oldest entries are dropped first."""

    def __init__(
        self, lasts_s: float, *, most: int = MOST, size: Callable[[V], int] = lambda _: 0
    ) -> None:
        """size: the bytes of an answer; without it, only the number of entries is bounded."""
        self._lasts_s = lasts_s
        self._most = most
        self._size = size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._bytes = 0

    def has(self, key: K, now: float) -> bool:
        """Check whether there is an answer that is recent enough."""
        return key in self._entries and now - self._entries[key][0] < self._lasts_s

    def get(self, key: K) -> V:
        """Return the answer; call it only after `has`."""
        return self._entries[key][1]

    def put(self, key: K, answer: V, now: float) -> None:
        """Store an answer; a single entry may exceed the limit on bytes."""
        if key in self._entries:
            self._drop(key)
        self._entries[key] = (now, answer)
        self._bytes += self._size(answer)
        entries = self._entries
        while len(entries) > self._most or (self._bytes > MOST_BYTES and len(entries) > 1):
            self._drop(next(iter(entries)))

    def _drop(self, key: K) -> None:
        _, answer = self._entries.pop(key)
        self._bytes -= self._size(answer)
