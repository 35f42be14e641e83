"""Waiting until Slurm has done something, and a clock."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
_POLL_S = 0.05


async def eventually(condition: Callable[[], Awaitable[T]], deadline_s: float = 30) -> T:
    """Call a coroutine function until it returns something true, and return that."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + deadline_s
    while not (answer := await condition()):
        assert loop.time() < end_s, f"still {answer!r} after {deadline_s} s"
        await asyncio.sleep(_POLL_S)
    return answer


def ticks() -> Callable[[], float]:
    """Return a clock that moves on at each reading, so that no two moments are the same."""
    counted = itertools.count(1)
    return lambda: float(next(counted))
