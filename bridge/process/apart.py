"""A part on a thread with an event loop of its own: it answers while the other loop is busy.

One event loop does what is ready in turn. Where sixteen workers and three watches always have something ready, a caller
waits 20 ms for an answer that takes 0.2, and kube-scheduler asks about one pod after the other. Threads share one
interpreter; whoever waits for it has it after the switch interval, which is shorter here than Python's 5 ms.
"""

import asyncio
import contextlib
import sys

import uvloop

from bridge.process.lifetime import Main

_SWITCH_S = 0.0005
"""A turn of the interpreter: about as long as an answer takes."""


async def run(main: Main, stop: asyncio.Event) -> None:
    """Run `main` on its own thread and loop until it ends, which it is told to at `stop`; what it raises comes out here.

    `main` must keep to objects that are its own, or that may be used by several threads.
    """
    sys.setswitchinterval(_SWITCH_S)
    loop, its_stop = uvloop.new_event_loop(), asyncio.Event()

    async def there() -> None:
        await main(its_stop)

    def thread() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(there())

    def end() -> None:
        with contextlib.suppress(RuntimeError):  # it has ended already, and its loop is closed
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
            await ended  # cancelled or not: a thread cannot be cut off
