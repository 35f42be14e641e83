"""Writes whose effect the watch has not shown yet: until it does, the same object is not written again."""

from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 10.0
"""A watch that is later than this may have lost the event: look again."""


class RecentWrites:
    """By object: the version that was written to."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_name: dict[str, tuple[str, float]] = {}

    def wrote(self, name: str, version: str) -> None:
        """Remember a write to an object in this version; "" if there was none."""
        self._by_name[name] = (version, self._monotonic() + PATIENCE_S)

    def is_awaited(self, name: str, version: str) -> bool:
        """Check whether that very version was written to, and its successor is still to come."""
        found = self._by_name.get(name)
        if found is None:
            return False
        if found[0] == version and self._monotonic() < found[1]:
            return True
        del self._by_name[name]
        return False
