"""A short-lived cache of objects, bounded by their size.

An object may have 1.5 MB, ten times as much in memory, and any user can create many.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from slurmruntime.model.objects import KubeObject

K = TypeVar("K")
A = TypeVar("A", bound=Hashable)

MOST = 4096
MOST_BYTES = 8 * 2**20
"""Limit for all entries together, as JSON."""


class Memory(Generic[K]):
    """The latest answer for each key; the oldest entries are dropped first."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._entries: OrderedDict[K, tuple[float, KubeObject | None]] = OrderedDict()
        self._bytes = 0

    def has(self, key: K, now: float) -> bool:
        """Check whether there is an answer that is recent enough."""
        return key in self._entries and now - self._entries[key][0] < self._lasts_s

    def get(self, key: K) -> KubeObject | None:
        """Return the answer; None if the object does not exist. Call it only after `has`."""
        return self._entries[key][1]

    def put(self, key: K, answer: KubeObject | None, now: float) -> None:
        """Store an answer; a single entry may exceed the limit on bytes."""
        self._drop(key)
        self._entries[key] = (now, answer)
        self._bytes += answer.size_bytes if answer else 0
        while len(self._entries) > MOST or (self._bytes > MOST_BYTES and len(self._entries) > 1):
            self._drop(next(iter(self._entries)))

    def _drop(self, key: K) -> None:
        _, answer = self._entries.pop(key, (0.0, None))
        self._bytes -= answer.size_bytes if answer else 0


class Failures(Generic[A]):
    """Recent read failures by key, because many pods may ask for the same object."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._entries: OrderedDict[A, tuple[float, str]] = OrderedDict()

    def get(self, key: A, now: float) -> str:
        """Return the reason; "" if it did not fail recently."""
        at, reason = self._entries.get(key, (now - self._lasts_s, ""))
        return reason if now - at < self._lasts_s else ""

    def put(self, key: A, reason: str, now: float) -> None:
        """Store the reason of a failure."""
        self._entries.pop(key, None)
        self._entries[key] = (now, reason)
        while len(self._entries) > MOST:
            self._entries.popitem(last=False)
