"""A process from its first signal to its exit code.

Crash-only: a part that ends although nobody asked it to takes the process down, and Kubernetes starts it again; starting
up is how we recover. SIGTERM or SIGINT asks everything to end, in order, within a deadline; a second one ends it at once.
What does not end although it was cancelled cannot keep the process: it ends all the same.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import structlog
import uvloop

from bridge.domain.errors import PeerError

_log = structlog.get_logger(__name__)

Main = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set."""

DEADLINE_S = 25.0
"""Less than the 30 s of a pod's default terminationGracePeriodSeconds."""

_UNWINDING_S = 12.0
"""How long cancelled parts may take to end: a server lets calls under way finish for 10 s. After SIGTERM the kubelet comes first."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Something that runs as long as the process does, such as a server or a watch."""

    name: str
    run: Main


class EndedEarly(Exception):
    """A part ended by itself."""


class StartAfresh(Exception):
    """A part asks for a new process; nothing went wrong in this one."""


def run(main: Main, *, deadline_s: float = DEADLINE_S) -> int:
    """Run `main` until a signal comes; returns the process's exit code.

    0: it was asked to end and did so in time. 1: it failed, or ended unasked, or not in time; the log says which.
    """
    gc.freeze()  # modules stay: a full collection, which stops everything, need not go through them
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_supervise(main, deadline_s))


def end_at_once(why: str) -> NoReturn:
    """End the process with exit code 1, whatever still runs in it: for when cancelling has not helped."""
    _log.critical("process.failed", error=why)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


async def run_parts(*parts: Service, stop: asyncio.Event) -> None:
    """Run parts side by side; at `stop` end them one after another, the last one first.

    So name what others rely on first: a server that is named after the cache it answers from stops before it.

    Raises:
        ExceptionGroup: of what a part raised, or of `EndedEarly`; notes name the part. The others are cancelled.
    """
    stops = [asyncio.Event() for _ in parts]
    tasks: list[asyncio.Task[None]] = []
    doom: asyncio.TimerHandle | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for part, its_stop in zip(parts, stops, strict=True):
                tasks.append(group.create_task(_watch(part, its_stop), name=part.name))
            try:
                await stop.wait()
                for task, its_stop in zip(reversed(tasks), reversed(stops), strict=True):
                    its_stop.set()
                    await asyncio.wait([task])
            except asyncio.CancelledError:  # a part has failed, or the deadline has passed
                loop = asyncio.get_running_loop()
                doom = loop.call_later(_UNWINDING_S, _end_with, tasks)
                raise
    finally:
        if doom is not None:
            doom.cancel()


def _end_with(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End the process: its parts were cancelled, and some of them go on."""
    failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception()]
    causes = "; ".join(f"{task.get_name()} failed: {task.exception()!r}" for task in failed)
    left = ", ".join(task.get_name() for task in tasks if not task.done())
    end_at_once(
        f"{causes or 'cancelled'}; these parts have not ended in {_UNWINDING_S:g} s: {left}"
    )


async def _watch(part: Service, stop: asyncio.Event) -> None:
    try:
        await part.run(stop)
    except Exception as error:
        error.add_note(f"in the part {part.name!r}")
        raise
    if not stop.is_set():
        raise EndedEarly(f"the part {part.name!r} ended although nobody asked it to")


async def _supervise(main: Main, deadline_s: float) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    deadline = asyncio.timeout(None)

    def on_signal(number: signal.Signals) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # the next one ends the process, even if it hangs
        if stop.is_set():
            signal.raise_signal(number)  # this one came before that
        _log.info("process.stopping", signal=number.name, deadline_s=deadline_s)
        deadline.reschedule(loop.time() + deadline_s)
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        async with deadline:
            await main(stop)
    except Exception as error:  # noqa: BLE001  # the process's last words, on its way out
        if deadline.expired():
            _log.error("process.stop_timed_out", deadline_s=deadline_s)
        else:
            foreseen = _is_foreseen(error)
            _log.critical(
                "process.failed",
                error="; ".join(map(str, _leaves(error))),
                exc_info=None if foreseen else error,
            )
        return 1
    if not stop.is_set():
        _log.critical("process.ended_unasked")
        return 1
    _log.info("process.stopped")
    return 0


def _is_foreseen(error: Exception) -> bool:
    """Whether its words say it all: a peer was away, or a new process is to take over. A stack trace would alarm."""
    return all(isinstance(leaf, PeerError | StartAfresh) for leaf in _leaves(error))


def _leaves(error: Exception) -> Iterator[Exception]:
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _leaves(inner)
