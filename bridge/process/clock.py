"""The only place that reads clocks. Everything else takes a `Clock`, or the moment itself, as an argument."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time as a process sees it; tests pass one that they move (`tests/virtual_time.py`)."""

    def now(self) -> datetime:
        """The wall clock, aware, UTC: for what people read and other machines compare. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment: for intervals and deadlines. It never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; at once when `seconds` is not positive."""
        ...


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    def now(self) -> datetime:
        """The machine's wall clock in UTC."""
        return datetime.now(UTC)  # noqa: TID251  # this is the clock

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await asyncio.sleep(seconds)


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Wait, but not beyond `stop`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0)):
            await stop.wait()
