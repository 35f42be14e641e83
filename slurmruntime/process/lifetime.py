"""The lifetime of a process, from start to exit code.

The design is crash-only: a service that ends without being asked to ends the process, and
Kubernetes starts it again; recovery is a fresh start. SIGTERM or SIGINT ends all services in order
and within a deadline; a second signal ends the process at once. A service that does not end after
being cancelled cannot keep the process alive.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import structlog
import uvloop

from slurmruntime.values.errors import PeerError

_log = structlog.get_logger(__name__)

Main = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set."""

DEADLINE_S = 25.0
"""Less than the 30 s of a pod's default terminationGracePeriodSeconds."""

_UNWINDING_S = 12.0
"""How long cancelled services may take to end: a server lets pending calls finish for 10 s.

After SIGTERM the kubelet kills us first.
"""

_M_MMAP_THRESHOLD = -3
_MAPPED_BYTES = 128 * 2**10
"""glibc's own value at start; see mallopt(3)."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Something that runs for the lifetime of the process, such as a server or a watch."""

    name: str
    run: Main


class EndedEarly(Exception):
    """A service ended by itself."""


class StartAfresh(Exception):
    """A service asks for a new process; nothing went wrong in this one."""


def run(main: Main, *, deadline_s: float = DEADLINE_S) -> int:
    """Run `main` until a signal arrives and return the process's exit code.

    0: it was asked to end and did so in time. 1: it failed, ended without being asked, or did not
    end in time; the log says which.
    """
    _return_memory()
    gc.freeze()  # exempt modules from full collections, which stop everything
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_supervise(main, deadline_s))


def _return_memory() -> None:
    """Have the C library return large blocks to the system when they are freed.

    glibc maps large blocks one by one, and unmaps them when they are freed. But each such block raises the size from which
    it does so, up to 32 MiB, and smaller ones come from its heap, which rarely shrinks. Hostile connections took the webhook
    to 282 MiB; with a fixed size it reaches 195 MiB.
    """
    with contextlib.suppress(AttributeError):  # musl always returns them
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def end_at_once(why: str) -> NoReturn:
    """End the process with exit code 1, even if tasks still run; use it if cancelling has failed."""
    _log.critical("process.failed", error=why)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


async def run_parts(*parts: Service, stop: asyncio.Event) -> None:
    """Run services concurrently; at `stop` end them one after another in reverse order.

    So list dependencies first: a server listed after the cache it serves from stops before it.

    Raises:
        ExceptionGroup: with what a service raised, or `EndedEarly`; notes name the service. The
            others are cancelled.
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
            except asyncio.CancelledError:  # a service has failed, or the deadline has passed
                loop = asyncio.get_running_loop()
                doom = loop.call_later(_UNWINDING_S, _end_with, tasks)
                raise
    finally:
        if doom is not None:
            doom.cancel()


def _end_with(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End the process because some services still run after being cancelled."""
    failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception()]
    causes = "; ".join(f"{task.get_name()} failed: {task.exception()!r}" for task in failed)
    left = ", ".join(task.get_name() for task in tasks if not task.done())
    end_at_once(
        f"{causes or 'cancelled'}; these services did not end within {_UNWINDING_S:g} s: {left}"
    )


async def _watch(part: Service, stop: asyncio.Event) -> None:
    try:
        await part.run(stop)
    except Exception as error:
        error.add_note(f"in the service {part.name!r}")
        raise
    if not stop.is_set():
        raise EndedEarly(f"the service {part.name!r} ended without being asked to")


async def _supervise(main: Main, deadline_s: float) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    deadline = asyncio.timeout(None)

    def on_signal(number: signal.Signals) -> None:
        for handled in _SIGNALS:
            signal.signal(
                handled, signal.SIG_DFL
            )  # the next one ends the process, even if it hangs
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
    except Exception as error:  # noqa: BLE001  # logged here, as the process is ending
        if deadline.expired():
            _log.error("process.stop_timed_out", deadline_s=deadline_s)
        else:
            leaves = tuple(_leaves(error))
            # The message suffices if a peer was unavailable, or a new process is meant to take over.
            is_foreseen = all(isinstance(leaf, PeerError | StartAfresh) for leaf in leaves)
            _log.critical(
                "process.failed",
                error="; ".join(map(str, leaves)),
                exc_info=None if is_foreseen else error,
            )
        return 1
    if not stop.is_set():
        _log.critical("process.ended_unasked")
        return 1
    _log.info("process.stopped")
    return 0


def _leaves(error: Exception) -> Iterator[Exception]:
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _leaves(inner)
