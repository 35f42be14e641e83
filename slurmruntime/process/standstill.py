"""Measure for how long an event loop stands still, for the metrics.

While a callback runs, nothing else of the loop does: no lease is renewed, no probe is answered. A timer is due every
`BEAT_S`, and the time by which it is late is how long the loop stood still, less what was left until it was due.
`slurmruntime.process.liveness` watches something else: loops of ours that wait for ever, while the event loop runs.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

BEAT_S: Final = 0.05
"""Standstills that are shorter may go unseen, and others count as at most so much shorter. Twenty timers cost 0.2 ms of CPU a second."""
WINDOW_S: Final = 300.0
"""A standstill is shown for at least this long, and at most twice as long: Prometheus may scrape this seldom."""


class Standstill:
    """The longest recent standstill of one event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = math.inf
        self._window_ends_at = monotonic() + WINDOW_S
        self._longest_s = self._longest_before_s = 0.0
        """In this window, and in the one before."""

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the running loop within the block."""
        self._wait(asyncio.get_running_loop())
        try:
            yield
        finally:
            if self._timer:
                self._timer.cancel()
            self._due_at = math.inf

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._note()
        self._due_at = self._monotonic() + BEAT_S
        self._timer = loop.call_later(BEAT_S, self._wait, loop)

    def longest_s(self) -> float:
        """Return the longest standstill of the last five to ten minutes, one that still lasts included."""
        self._note()
        return max(self._longest_s, self._longest_before_s)

    def _note(self) -> None:
        now = self._monotonic()
        if now >= self._window_ends_at:
            is_next = now < self._window_ends_at + WINDOW_S
            self._longest_before_s = self._longest_s if is_next else 0.0
            self._longest_s = 0.0
            self._window_ends_at = now + WINDOW_S
        self._longest_s = max(self._longest_s, now - self._due_at)
