"""What was read of other objects, remembered for a moment, and bounded by their size.

An object may have 1.5 MB, ten times as much in memory, and anybody can make many.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from slurmruntime.model.objects import KubeObject

K = TypeVar("K")
A = TypeVar("A", bound=Hashable)

MOST = 4096
MOST_BYTES = 8 * 2**20
"""Of JSON, for all of them."""


class Memory(Generic[K]):
    """The latest answer for each key; the oldest are forgotten first."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._known: OrderedDict[K, tuple[float, KubeObject | None]] = OrderedDict()
        self._bytes = 0

    def has(self, key: K, now: float) -> bool:
        """Check whether there is an answer that is recent enough."""
        return key in self._known and now - self._known[key][0] < self._lasts_s

    def get(self, key: K) -> KubeObject | None:
        """Return the answer; None: there is no such object. Call it only after `has`."""
        return self._known[key][1]

    def put(self, key: K, found: KubeObject | None, now: float) -> None:
        """Remember an answer; at most one is larger than all may be together."""
        self._drop(key)
        self._known[key] = (now, found)
        self._bytes += found.size_bytes if found else 0
        while len(self._known) > MOST or (self._bytes > MOST_BYTES and len(self._known) > 1):
            self._drop(next(iter(self._known)))

    def _drop(self, key: K) -> None:
        _, found = self._known.pop(key, (0.0, None))
        self._bytes -= found.size_bytes if found else 0


class Failures(Generic[A]):
    """Why something could not be read a moment ago: many pods may ask for the same."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._known: OrderedDict[A, tuple[float, str]] = OrderedDict()

    def get(self, key: A, now: float) -> str:
        """Return why; "" if that was too long ago, or has not failed."""
        at, why = self._known.get(key, (now - self._lasts_s, ""))
        return why if now - at < self._lasts_s else ""

    def put(self, key: A, why: str, now: float) -> None:
        """Remember why."""
        self._known.pop(key, None)
        self._known[key] = (now, why)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
