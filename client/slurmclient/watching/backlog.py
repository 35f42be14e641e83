"""Events that wait for a handler."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, Generic, TypeAlias

from slurmclient.watching.events import Added, Event, Restarted, V

Handler: TypeAlias = Callable[[Event[V]], Awaitable[None] | None]


_BACKLOG: Final = 10_000
"""Events that may wait for a handler; one that falls behind further is told the whole picture anew."""


class Backlog(Generic[V]):
    """Events that a handler has not heard of yet."""

    def __init__(self) -> None:
        self._events: deque[Event[V]] = deque()
        self._replayed: tuple[Event[V], ...] | None = ()
        """What is told before all objects there are; None: they have been told."""
        self._is_closed = False
        self._news = asyncio.Event()

    def put(self, events: Iterable[Event[V]]) -> None:
        """Take in events, or, where there are too many, note that some were lost."""
        if self._replayed is None:
            self._events.extend(events)
        if len(self._events) > _BACKLOG:
            self._events.clear()
            self._replayed = (Restarted(),)
        self._news.set()

    def close(self) -> None:
        """Let the handler end after what it has been told."""
        self._is_closed = True
        self._news.set()

    async def events(self, values: Callable[[], list[V]]) -> AsyncIterator[Event[V]]:
        """Give all objects there are, then the events in order; where some were lost, `Restarted` and all objects."""
        while True:
            if self._replayed is not None:
                told = (*self._replayed, *map(Added, values()))
                self._replayed = None
                for event in told:
                    yield event
            while self._events:
                yield self._events.popleft()
            if self._replayed is None:
                if self._is_closed:
                    return
                self._news.clear()
                await self._news.wait()
