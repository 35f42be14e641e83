"""Work queue of keys: each is queued at most once, processed by one worker at a time, never lost.

The semantics are those of client-go's `util/workqueue`: a key added while it is queued stays one
key; a key added while it is processed is *dirty* and queued again when that is done. The state per
key is small, and `forget` drops it. Three things differ: a refused key is not retried before its back-off is
over just because of a reading that its own failure caused (`remind`); taking a key cancels its delayed
addition, as the worker decides again when the key is next due; and keys are served round robin by lane (a
tenant's namespace), so that thousands of one tenant's keys delay another's by one turn only.
"""

import asyncio
import random
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from slurmruntime.values import backoff
from slurmruntime.values.lanes import Lanes

K = TypeVar("K", bound=Hashable)


FIRST_RETRY = timedelta(milliseconds=200)
SLOWEST_RETRY = timedelta(minutes=1)


class ShutDown(Exception):
    """The queue returns no more keys."""


class WorkQueue(Generic[K]):
    """A queue for the workers of one event loop; once shut down, it cannot be reopened."""

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
        self._lane: Callable[[K], Hashable] = lambda _: None
        self._lanes: Lanes[K] = Lanes()
        self._ready = asyncio.Semaphore(0)
        """Counts the keys in `_lanes`."""
        self._dirty: set[K] = set()
        """Keys to process: those in `_lanes`, and those added again while being processed."""
        self._processing: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._refused: set[K] = set()
        """Keys whose last failure was a refusal, which no reading will change."""
        self._undecided: set[K] = set()
        """Keys whose reconcile decided nothing, so that it ends no series of failures."""
        self._reminded: set[K] = set()
        """Keys for which `remind` was called while they were being processed."""
        self._is_shut_down = False

    def __len__(self) -> int:
        """Return the number of keys waiting for a worker, excluding delayed ones."""
        return len(self._dirty)

    def serve_by(self, lane: Callable[[K], Hashable]) -> None:
        """Serve the keys added from now on round robin by lane."""
        self._lane = lane

    def add(self, key: K) -> None:
        """Queue a key."""
        if self._is_shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._put(key)

    def add_afresh(self, key: K) -> None:
        """Queue a key that there is news of: earlier failures no longer delay its retries."""
        self.forget(key)
        self.add(key)

    def remind(self, key: K) -> None:
        """Queue a key that waited for an answer without news of it; the retry of a refused key is soon enough."""
        if key in self._processing:
            self._reminded.add(key)
        elif key not in self._refused or key not in self._later:
            self.add(key)

    def add_after(self, key: K, delay_s: float) -> None:
        """Queue a key after a delay, unless it is due earlier anyway."""
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

    def retry(self, key: K, *, refused: bool = False) -> float:
        """Queue a key again after a failure and return the delay in seconds.

        Each consecutive failure doubles the delay.

        refused: no answer that the key waits for will change it.
        """
        self._undecided.discard(key)
        (self._refused.add if refused else self._refused.discard)(key)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        longest = backoff.delay(failures, first=self._first_retry, cap=self._slowest_retry)
        delay_s = longest.total_seconds() * self._rng.uniform(0.5, 1)
        self.add_after(key, delay_s)
        return delay_s

    def undecided(self, key: K) -> None:
        """Note that the reconcile under way has to wait for an answer before it tries anything."""
        self._undecided.add(key)

    def succeeded(self, key: K) -> None:
        """Reset a key's failures, unless its reconcile tried nothing."""
        if key in self._undecided:
            self._undecided.discard(key)
        else:
            self.forget(key)

    def forget(self, key: K) -> None:
        """Reset a key's failures."""
        self._failures.pop(key, None)
        self._refused.discard(key)

    async def get(self) -> K:
        """Wait for a key; the caller must call `done` with it, whatever happens; raise ShutDown without one."""
        await self._ready.acquire()
        if self._is_shut_down:
            self._ready.release()  # for the next one waiting
            raise ShutDown
        key = self._lanes.take()
        self._dirty.discard(key)
        self._processing.add(key)
        if planned := self._later.pop(key, None):
            planned.cancel()
        return key

    def is_worked_on(self, key: K) -> bool:
        """Check whether a worker has taken the key and is not done with it."""
        return key in self._processing

    def done(self, key: K) -> None:
        """Record that a key is no longer being processed; queue it again if it is dirty."""
        self._processing.discard(key)
        if key in self._reminded:
            self._reminded.discard(key)
            if key not in self._dirty:
                self.remind(key)
                return
        if key in self._dirty and not self._is_shut_down:
            self._put(key)

    def shut_down(self) -> None:
        """Return and accept no more keys: the next leader processes everything anyway. Those in progress may finish."""
        self._is_shut_down = True
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._dirty.clear()
        self._ready.release()

    def _put(self, key: K) -> None:
        self._lanes.put(self._lane(key), key)
        self._ready.release()

    def _is_due(self, key: K) -> None:
        del self._later[key]
        self.add(key)
