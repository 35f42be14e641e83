"""The only module that reads clocks; all others take a `Clock` or a timestamp as an argument."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Source of time; tests pass one that they advance (`tests/virtual_time.py`)."""

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC, for people and other machines. It may jump."""

    def monotonic(self) -> float:
        """Return seconds since a fixed moment, for intervals and deadlines. It never jumps."""

    async def sleep(self, seconds: float) -> None:
        """Sleep; return at once if `seconds` is not positive."""


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    def now(self) -> datetime:
        """Return the machine's wall clock in UTC."""
        return datetime.now(UTC)  # noqa: TID251  # this is the clock

    def monotonic(self) -> float:
        """Return CLOCK_MONOTONIC."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running loop."""
        await asyncio.sleep(seconds)


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but wake at `stop`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0)):
            await stop.wait()
