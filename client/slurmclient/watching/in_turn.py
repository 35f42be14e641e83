"""Doing something for many objects, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


async def in_turn(
    keys: Iterable[K], do: Callable[[K], Awaitable[T]], *, at_a_time: int
) -> dict[K, T]:
    """Await a call for each key, in this order and at most so many concurrently; return the results.

    Raises:
        Exception: What a call raises; the others are cancelled. One suffices: all of them ask the
            same server.
    """
    queue = iter(keys)
    done: dict[K, T] = {}

    async def take() -> None:
        for key in queue:
            done[key] = await do(key)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_a_time):
                group.create_task(take())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return done
