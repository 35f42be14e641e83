"""Whether our own loops still turn: what `/livez` answers, so that the kubelet ends a process that has stalled.

A loop turns when it says so (`turned`), once each time round, and whenever a call of its to a peer has ended, well or badly.
Every such call has a deadline of its own, and a loop says how long it is going to pause; so a peer that is away, hangs or is
slow never keeps a loop from turning. What is left is a fault of ours: a lost cancel, a wait for something that never comes,
a call without a deadline. Then only a new process helps.

Which loop runs is known from the context: tasks that a loop starts are part of it. Outside of `watching`, in commands and in
most tests, nothing is watched.

The same event loop serves the probe. While that is blocked there is no answer at all, and the kubelet's probe times out.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import structlog

_log = structlog.get_logger(__name__)

_OUR_OWN_S = 60.0
"""What a loop may need for itself between two signs of life, on a machine that is short of CPU."""

_OTHER_CALLERS = 32
"""Calls to Slurm that may be under way besides those of a queue's workers: readings, nodes, inquiries."""

_REQUESTS_A_CALL = 2
"""A request may be repeated for a renewed token."""

_AT_THE_START = 6
"""Requests that find out once what slurmrestd speaks."""

_CANCEL_AGAIN_S = 1.0
"""How long a cancelled task may take before it is cancelled once more."""

Check = Callable[[], str | None]
"""Says what has stalled, or None. Called at every probe: it looks at what is known and asks nobody."""


def bound_s(*, request_timeout_s: float, workers: int, connections: int) -> float:
    """Say how long a loop may be silent: longer than a call to a peer that is slow, after all that wait in line before it.

    Args:
        request_timeout_s: of one request to a peer.
        workers: that share the connections.
        connections: to slurmrestd; to wait for one to the API server counts into the request's time-out.
    """
    in_line = math.ceil((workers + _OTHER_CALLERS) / connections)
    return _OUR_OWN_S + (_AT_THE_START + _REQUESTS_A_CALL * in_line) * request_timeout_s


class LoopEndedEarly(Exception):
    """A loop ended although nobody had asked it to."""


class Loop:
    """The signs of life of one loop."""

    def __init__(self, liveness: "Liveness", name: str) -> None:
        self.liveness = liveness
        self.name = name
        self._due_at: float | None = None
        self.turned(0.0)

    def turned(self, rests_s: float | None) -> None:
        """Note a sign of life; None: the loop waits for work, for as long as there is none."""
        now = self.liveness.monotonic()
        self._due_at = None if rests_s is None else now + rests_s + self.liveness.bound_s

    def fault(self) -> str | None:
        """Say for how long the loop is overdue; None while it is not."""
        if self._due_at is None or (late_s := self.liveness.monotonic() - self._due_at) <= 0:
            return None
        return f"has not turned for {late_s + self.liveness.bound_s:.0f} s"


class Liveness:
    """The loops of one process that must turn."""

    def __init__(self, monotonic: Callable[[], float], *, bound_s: float) -> None:
        """bound_s: how long a loop may be silent beyond the pause that it has announced."""
        self.monotonic = monotonic
        self.bound_s = bound_s
        self._checks: dict[int, tuple[str, Check]] = {}
        self._count = 0
        self._told: frozenset[str] = frozenset()

    def faults(self) -> dict[str, str]:
        """Say what has stalled, and why."""
        found = {name: fault for name, check in self._checks.values() if (fault := check())}
        if news := found.keys() - self._told:
            _log.error("process.stalled", loops={name: found[name] for name in sorted(news)})
        self._told = frozenset(found)
        return found

    @contextmanager
    def checked(self, name: str, check: Check) -> Iterator[None]:
        """Make the process's liveness depend on a check until the block ends."""
        self._count = key = self._count + 1
        self._checks[key] = (name, check)
        try:
            yield
        finally:
            del self._checks[key]


_liveness: ContextVar[Liveness | None] = ContextVar("liveness", default=None)
_loop: ContextVar[Loop | None] = ContextVar("loop", default=None)


@contextmanager
def watching(liveness: Liveness) -> Iterator[None]:
    """Have all loops that run within the block watched."""
    token = _liveness.set(liveness)
    try:
        yield
    finally:
        _liveness.reset(token)


@contextmanager
def checked(name: str, check: Check) -> Iterator[None]:
    """Make the process's liveness depend on a check within the block."""
    liveness = _liveness.get()
    if liveness is None:
        yield
        return
    with liveness.checked(name, check):
        yield


@contextmanager
def loop(name: str) -> Iterator[None]:
    """Watch a loop, which runs within the block; it must say that it has `turned`."""
    liveness = _liveness.get()
    if liveness is None:
        yield
        return
    running = Loop(liveness, name)
    token = _loop.set(running)
    try:
        with liveness.checked(name, running.fault):
            yield
    finally:
        _loop.reset(token)


def turned(rests_s: float | None = 0.0) -> None:
    """Say that the loop in which this is called turns.

    Args:
        rests_s: how long it is going to pause; None: until there is work, however long that takes.
    """
    if (running := _loop.get()) is not None:
        running.turned(rests_s)


async def run(name: str, forever: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Run and watch a loop that has no end until told to stop, or cancelled.

    Raises:
        EndedEarly: it ended by itself; nobody else would miss it.
    """
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_watched(name, forever))
        stopping = group.create_task(stop.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_early = running.done()
            await ended(running)
            stopping.cancel()
    if is_early and not stop.is_set():
        raise LoopEndedEarly(f"the loop {name!r} ended although nobody asked it to")


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancel a task until it has ended: one cancel may get lost where a time-out runs out in the same turn."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)


async def _watched(name: str, forever: Coroutine[Any, Any, None]) -> None:
    with loop(name):
        await forever
