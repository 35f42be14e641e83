"""Writes that the watch has not shown yet: until then, the same object is not written again."""

from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 10.0
"""A watch later than this may have lost the event: reconcile again."""


class RecentWrites:
    """The last version of each object that was written to."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_name: dict[str, tuple[str, float]] = {}

    def wrote(self, name: str, version: str) -> None:
        """Record a write to this version of an object; "" if it did not exist before."""
        self._by_name[name] = (version, self._monotonic() + PATIENCE_S)

    def is_awaited(self, name: str, version: str) -> bool:
        """Check whether exactly that version was written to and its successor is outstanding."""
        write = self._by_name.get(name)
        if write is None:
            return False
        written_version, until_s = write
        if written_version == version and self._monotonic() < until_s:
            return True
        del self._by_name[name]
        return False
