"""A picture: the objects of one kind as last read, and how to poll them."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeAlias

from slurmclient.calls.speaker import Speaker
from slurmclient.watching.events import Added, Deleted, Event, Modified, V
from slurmclient.wire.reading import DecodeResult, Unreadable

_log: Final = logging.getLogger("slurmclient")

Clock: TypeAlias = Callable[[], float]
"""Returns monotonic seconds."""


class Picture(ABC, Generic[V]):
    """Objects by key, brought up to date poll by poll."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock) -> None:
        self._speaker = speaker
        self._kind = kind
        self._clock = clock
        self.objects: dict[str, V] = {}
        self.odd: dict[str, str] = {}
        """As of `Cache`."""
        self._noted: dict[str, float] = {}
        """When each object was last read singly; a poll begun earlier must not overwrite it."""

    @abstractmethod
    async def poll(self) -> list[Event[V]]:
        """Compare everything with Slurm; return the changes in order.

        Raises:
            SlurmError: If the poll failed; no change is lost, the next poll finds it.
        """

    @abstractmethod
    async def poll_one(self, name: str) -> list[Event[V]]:
        """Compare one object with Slurm, as this client has just changed it; raises SlurmError."""

    def _store(self, key: str, read: DecodeResult[V] | Unreadable) -> Iterable[Event[V]]:
        """Store an object that was read; yield the change, if it is one."""
        if isinstance(read, Unreadable):
            self._set_aside(key, read.why)
            return ()
        if read.odd:
            self.odd[key] = read.why
        else:
            self.odd.pop(key, None)
        return self._put(key, read.value)

    def _set_aside(self, key: str, why: str) -> None:
        """Note that an object cannot be decoded; log it once."""
        if key not in self.odd:
            _log.warning(
                "%s %s cannot be decoded: %s", self._kind.__name__, key or "without a key", why
            )
        self.odd[key] = why

    def _put(self, key: str, new: V | None) -> Iterable[Event[V]]:
        """Store an object's new version, None if it is gone; yield the change, if it is one."""
        old = self.objects.get(key)
        if new is None:
            self.odd.pop(key, None)
            if old is not None:
                del self.objects[key]
                yield Deleted(old)
        elif old is None:
            self.objects[key] = new
            yield Added(new)
        elif old != new:
            self.objects[key] = new
            yield Modified(old, new)

    def _is_noted_since(self, key: str, began: float) -> bool:
        return self._noted.get(key, began - 1) >= began

    def _forget_notes(self, began: float) -> None:
        self._noted = {key: at for key, at in self._noted.items() if at >= began}
