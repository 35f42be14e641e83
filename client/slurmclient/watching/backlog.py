"""The queued events of one handler of a cache."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, Generic, TypeAlias

from slurmclient.watching.events import Added, Event, Restarted, V

Handler: TypeAlias = Callable[[Event[V]], Awaitable[None] | None]
"""A function or coroutine function that takes an event."""

_BACKLOG: Final = 10_000
"""Maximum number of events to keep for a handler; one that falls behind further starts over."""


class Backlog(Generic[V]):
    """A bounded queue of events; an overflow replaces them by `Restarted` and all objects."""

    def __init__(self) -> None:
        self._events: deque[Event[V]] = deque()
        self._prologue: tuple[Event[V], ...] | None = ()
        """Events before an `Added` for each object; None once all of them have been delivered."""
        self._is_closed = False
        self._news = asyncio.Event()

    def put(self, events: Iterable[Event[V]]) -> None:
        """Queue events; if there are too many, drop all and start over."""
        if self._prologue is None:
            self._events.extend(events)
        if len(self._events) > _BACKLOG:
            self._events.clear()
            self._prologue = (Restarted(),)
        self._news.set()

    def close(self) -> None:
        """End `events` after the queued ones."""
        self._is_closed = True
        self._news.set()

    async def events(self, values: Callable[[], list[V]]) -> AsyncIterator[Event[V]]:
        """Yield `Added` for every current object, then the queued events; after an overflow, start over."""
        while True:
            if self._prologue is not None:
                first = (*self._prologue, *map(Added, values()))
                self._prologue = None
                for event in first:
                    yield event
            while self._events:
                yield self._events.popleft()
            if self._prologue is None:
                if self._is_closed:
                    return
                self._news.clear()
                await self._news.wait()
