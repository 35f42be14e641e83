"""A picture."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias

from slurmclient.calls.speaker import Speaker
from slurmclient.watching.events import Added, Deleted, Event, Modified, V

Clock: TypeAlias = Callable[[], float]
"""Monotonic seconds."""


class Picture(Generic[V]):
    """Objects by their key, and how to look again."""

    def __init__(self, speaker: Speaker, kind: type[V], clock: Clock) -> None:
        self._speaker = speaker
        self._kind = kind
        self._clock = clock
        self.objects: dict[str, V] = {}
        self._noted: dict[str, float] = {}
        """Objects looked at alone, and when: a look that began earlier says nothing of them."""

    async def look(self) -> list[Event[V]]:
        """Look at everything once; return what has changed.

        Raises:
            SlurmError: the look failed; the picture is as it was, or has changed in a part that was told.
        """
        raise NotImplementedError

    async def look_at(self, name: str) -> list[Event[V]]:
        """Look at one object: this client has just changed it."""
        raise NotImplementedError

    def _put(self, key: str, new: V | None) -> Iterable[Event[V]]:
        """Take in what an object is now; None: it is gone."""
        old = self.objects.get(key)
        if new is None:
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
