"""Keys that need looking at: each at most once in the queue, never worked on twice at a time, none ever lost.

The semantics of client-go's `util/workqueue`: a key that is added while it waits is one key; a key that is added while it
is worked on is *dirty* and comes again when that is done. What is kept per key is small, and goes with `forget`.
Unlike there, a key that is taken up is no longer due later: whoever works on it says anew when it should come again.
"""

import asyncio
import enum
import random
from collections.abc import Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from bridge.domain import backoff

K = TypeVar("K", bound=Hashable)

FIRST_RETRY = timedelta(milliseconds=200)
SLOWEST_RETRY = timedelta(minutes=1)


class ShutDown(Exception):
    """The queue hands out no more keys."""


class _End(enum.Enum):
    """Lies in the queue after `shut_down`, for whoever waits for a key."""

    END = enum.auto()


class WorkQueue(Generic[K]):
    """A queue for the workers of one event loop; made for one term of work, not opened again once shut down."""

    def __init__(
        self,
        *,
        rng: random.Random,
        first_retry: timedelta = FIRST_RETRY,
        slowest_retry: timedelta = SLOWEST_RETRY,
    ) -> None:
        self._rng = rng
        self._first_retry = first_retry
        self._slowest_retry = slowest_retry
        self._ready: asyncio.Queue[K | _End] = asyncio.Queue()
        self._dirty: set[K] = set()
        """To be worked on: those in `_ready`, and those that came again while they are worked on."""
        self._processing: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._is_shut_down = False

    def __len__(self) -> int:
        """Keys that wait for a worker; not those that are due later."""
        return len(self._dirty)

    def add(self, key: K) -> None:
        """Have a key looked at, soon."""
        if self._is_shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.put_nowait(key)

    def add_after(self, key: K, delay_s: float) -> None:
        """Have a key looked at within so many seconds; if it is due earlier anyway, nothing changes."""
        if self._is_shut_down:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + max(delay_s, 0)
        planned = self._later.get(key)
        if planned:
            if planned.when() <= due:
                return
            planned.cancel()
        self._later[key] = loop.call_at(due, self._is_due, key)

    def retry(self, key: K) -> float:
        """Have a key looked at again after a failure; each one in a row doubles the delay. Returns it in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        longest = backoff.delay(failures, first=self._first_retry, cap=self._slowest_retry)
        delay_s = longest.total_seconds() * self._rng.uniform(0.5, 1)
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: K) -> None:
        """A key has gone well: the next failure is its first."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for a key; whoever gets it calls `done` with it, whatever happens.

        Raises:
            ShutDown: there will be no more.
        """
        key = await self._ready.get()
        if self._is_shut_down or key is _End.END:
            self._ready.put_nowait(_End.END)  # for the next one who waits
            raise ShutDown
        self._dirty.discard(key)
        self._processing.add(key)
        if planned := self._later.pop(key, None):
            planned.cancel()
        return key

    def is_worked_on(self, key: K) -> bool:
        """Somebody has got it, and is not done with it."""
        return key in self._processing

    def done(self, key: K) -> None:
        """A key is no longer worked on."""
        self._processing.discard(key)
        if key in self._dirty and not self._is_shut_down:
            self._ready.put_nowait(key)

    def shut_down(self) -> None:
        """Hand out no more keys and take none; what is worked on may finish.

        What waits is dropped: whoever starts next looks at everything anyway, and sooner if we go at once.
        """
        self._is_shut_down = True
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._dirty.clear()
        self._ready.put_nowait(_End.END)

    def _is_due(self, key: K) -> None:
        del self._later[key]
        self.add(key)
