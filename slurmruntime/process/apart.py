"""Run a service on its own thread and event loop, so that it responds while the main loop is busy.

An event loop runs everything that is ready in turn. If sixteen workers and three watches always have
something ready, a caller waits 20 ms for a response that takes 0.2 ms, and kube-scheduler asks
about one pod after the other. Threads share one interpreter; a waiting thread gets it after the
switch interval, which is set shorter here than Python's 5 ms.
"""

import asyncio
import contextlib
import sys

import uvloop

from slurmruntime.process.lifetime import Main

_SWITCH_S = 0.0005
"""Switch interval of the interpreter: about as long as a response takes."""


async def run(main: Main, stop: asyncio.Event) -> None:
    """Run `main` on its own thread and loop until it ends; its own event is set at `stop`.

    Exceptions of `main` propagate. `main` must only use objects of its own or thread-safe ones.
    """
    sys.setswitchinterval(_SWITCH_S)
    loop, its_stop = uvloop.new_event_loop(), asyncio.Event()

    async def run_main() -> None:
        await main(its_stop)

    def thread() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run_main())

    def end() -> None:
        with contextlib.suppress(RuntimeError):  # it has ended, and its loop is closed
            loop.call_soon_threadsafe(its_stop.set)

    async def end_at_stop() -> None:
        await stop.wait()
        end()

    ended = asyncio.get_running_loop().run_in_executor(None, thread)
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(end_at_stop())
        try:
            await asyncio.shield(ended)
        finally:
            ending.cancel()
            end()
            await ended  # even if cancelled: a thread cannot be killed
