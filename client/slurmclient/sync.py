"""The client for programs without an event loop, such as scripts and notebooks.

with sync.Client("http://slurmrestd:6820", token="…") as slurm:
    for job in slurm.run(slurm.jobs.list()):
        print(job.job_id)
    for event in slurm.iterate(slurm.jobs.watch()):
        print(event)

It has everything that the async client has: pass coroutines to `run`, and iterators to `iterate`.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from slurmclient import client

T = TypeVar("T")


class Client(client.Client):
    """`slurmclient.Client` with an event loop in a thread of its own; the arguments are the same."""

    _loop: asyncio.AbstractEventLoop
    _thread: threading.Thread

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="slurm-client", daemon=True
        )
        self._thread.start()
        try:
            self.run(self.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        try:
            self.run(self.__aexit__(None, None, None))
        finally:
            self._end()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator."""
        try:
            while True:
                try:
                    yield self.run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_close(items))

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncIterator[T]) -> None:
    close = getattr(items, "aclose", None)  # generators have one, other iterators need not
    if close is not None:
        await close()
