"""Time for tests: hours pass in milliseconds, in the same order every time, and nothing ever really sleeps.

`run(main)` is `asyncio.run` on a loop whose clock jumps to the next timer as soon as nothing else is left to do, so
`asyncio.sleep`, `asyncio.timeout` and a `VirtualClock` all agree. `World` has several such processes, each a loop of its
own; one of them can be frozen like a process that was stopped, and then finds all its timers late. Real sockets do not
belong here: nobody waits for them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from typing_extensions import TypeVarTuple, Unpack, override

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class NothingLeft(AssertionError):
    """A process waits for something that will never happen."""


class VirtualClock:
    """A `slurmruntime.process.clock.Clock` of the running virtual loop."""

    def __init__(self, *, wrong_by: timedelta = timedelta(0)) -> None:
        """wrong_by: how far its wall clock is off; its monotonic clock begins somewhere else, too."""
        self._epoch = EPOCH + wrong_by
        self._offset_s = wrong_by.total_seconds()

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=asyncio.get_running_loop().time())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self._offset_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, seconds: float) -> None:
        """Let time pass in one go, as if the process had stood still: it finds its timers late."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _Loop)
        loop.jump(seconds)


class _Loop(asyncio.SelectorEventLoop):
    _scheduled: list[asyncio.TimerHandle]  # asyncio's own, which typeshed does not show
    _ready: deque[asyncio.Handle]

    def __init__(self, world: "World") -> None:
        self._world = world
        super().__init__()
        self.set_exception_handler(self._fail)
        self.failures: list[BaseException] = []

    @override
    def time(self) -> float:
        return self._world.now_s

    def jump(self, seconds: float) -> None:
        self._world.now_s += seconds

    def next_timer_s(self) -> float | None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        return min(timers, default=None)

    @property
    def is_idle(self) -> bool:
        return not self._ready

    def turn(self) -> None:
        """Do once what is ready; raises what a callback raised, which asyncio would only log."""
        self.call_soon(self.stop)
        self.run_forever()
        if self.failures:
            raise self.failures.pop()

    @override
    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Call it at once: a thread would take real time, in which virtual time does not pass."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # the caller's, whatever it is
            future.set_exception(error)
        return future

    def _fail(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(context.get("exception") or AssertionError(context["message"]))


class Process(Generic[T]):
    """One loop and the task that is its main."""

    def __init__(self, loop: _Loop, main: Coroutine[Any, Any, T]) -> None:
        self.loop = loop
        self.task = loop.create_task(main)
        self.frozen_until_s = 0.0

    def freeze(self, seconds: float) -> None:
        """Stop it in its tracks from now on, as SIGSTOP or a paused machine would."""
        self.frozen_until_s = max(self.frozen_until_s, self.loop.time() + seconds)


class World:
    """Some processes and the time they share."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._processes: list[Process[Any]] = []

    def start(self, main: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process; it runs when the world does."""
        process = Process(_Loop(self), main)
        self._processes.append(process)
        return process

    def run(self, *, until_s: float | None = None) -> None:
        """Let time pass until then, or until every process has ended; raises what one of them raised."""
        while not all(process.task.done() for process in self._processes):
            self._turn_all()
            for process in self._processes:
                if process.task.done():
                    process.task.result()
            following_s = self._next_moment_s()
            if until_s is not None and (following_s is None or following_s > until_s):
                self.now_s = until_s
                return
            if following_s is None:
                if all(process.task.done() for process in self._processes):
                    return
                raise NothingLeft(f"after {self.now_s:g} s nothing is left to happen")
            self.now_s = max(self.now_s, following_s)

    def close(self) -> None:
        """Cancel what is left, and let time pass until it has ended."""
        for process in self._processes:
            process.frozen_until_s = 0.0
            for task in asyncio.all_tasks(process.loop):
                task.cancel()
        while any(asyncio.all_tasks(process.loop) for process in self._processes):
            self._turn_all()
            self.now_s = max(self.now_s, self._next_moment_s() or 0.0)
        for process in self._processes:
            process.loop.close()

    def _turn_all(self) -> None:
        """Everything that can happen at this moment."""
        progressed = True
        while progressed:
            progressed = False
            for process in self._processes:
                while process.frozen_until_s <= self.now_s and self._has_work(process):
                    process.loop.turn()
                    progressed = True

    def _has_work(self, process: Process[Any]) -> bool:
        timer_s = process.loop.next_timer_s()
        return not process.loop.is_idle or (timer_s is not None and timer_s <= self.now_s)

    def _next_moment_s(self) -> float | None:
        moments = []
        for process in self._processes:
            timer_s = process.loop.next_timer_s()
            if not process.loop.is_idle:
                timer_s = self.now_s
            if timer_s is not None:
                moments.append(max(timer_s, process.frozen_until_s))
        return min(moments, default=None)


def run(main: Callable[[VirtualClock], Coroutine[Any, Any, T]]) -> T:
    """Run one coroutine function, which gets a clock, in virtual time."""
    world = World()
    process = world.start(main(VirtualClock()))
    try:
        world.run()
        return process.task.result()
    finally:
        world.close()
