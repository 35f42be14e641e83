"""Watch our own loops for `/livez`, so that the kubelet ends a process that has stalled.

A loop gives a sign of life (`turned`) in each iteration and whenever a call to a peer has ended.
Every such call has its own deadline, and a loop announces how long it is going to pause, so a peer
that is down, hanging or slow never makes a loop look stalled. What remains are faults of ours: a
lost cancellation, a wait for something that never comes, a call without a deadline. Only a new
process helps then.

The context determines the loop: tasks started by a loop belong to it. Outside of `watching`, as in
commands and in most tests, nothing is watched. The same event loop serves the probe: while it is
blocked, there is no response at all, and the kubelet's probe times out.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import structlog

_log = structlog.get_logger(__name__)

_OUR_OWN_S = 60.0
"""Time a loop may need for itself between two signs of life, on a machine short of CPU."""

_OTHER_CALLERS = 32
"""Concurrent calls to Slurm besides those of a queue's workers: readings, nodes, inquiries."""

_REQUESTS_A_CALL = 2
"""A request may be repeated with a renewed token."""

_AT_THE_START = 6
"""Requests of the one-time negotiation of slurmrestd's API version."""

_CANCEL_AGAIN_S = 1.0
"""How long to wait for a cancelled task before cancelling it again."""

Check = Callable[[], str | None]
"""Returns what has stalled, or None. Called at every probe, so it only uses what is already
known."""


def bound_s(*, request_timeout_s: float, workers: int, connections: int) -> float:
    """Return how long a loop may be silent: longer than a slow call and all calls queued before it.

    Args:
        connections: to slurmrestd; the wait for one to the API server is part of the request's
            time-out.
    """
    in_line = math.ceil((workers + _OTHER_CALLERS) / connections)
    return _OUR_OWN_S + (_AT_THE_START + _REQUESTS_A_CALL * in_line) * request_timeout_s


class LoopEndedEarly(Exception):
    """A loop ended without being asked to."""


class Loop:
    """The signs of life of one loop."""

    def __init__(self, liveness: "Liveness", name: str) -> None:
        self.liveness = liveness
        self.name = name
        self._due_at: float | None = None
        self.turned(0.0)

    def turned(self, rests_s: float | None) -> None:
        """Record a sign of life; None: the loop waits for work, however long that takes."""
        now = self.liveness.monotonic()
        self._due_at = None if rests_s is None else now + rests_s + self.liveness.bound_s

    def fault(self) -> str | None:
        """Return for how long the loop has been silent; None if it is not overdue."""
        if self._due_at is None or (late_s := self.liveness.monotonic() - self._due_at) <= 0:
            return None
        return f"no sign of life for {late_s + self.liveness.bound_s:.0f} s"


class Liveness:
    """The watched loops of one process."""

    def __init__(self, monotonic: Callable[[], float], *, bound_s: float) -> None:
        """Start without loops; `bound_s` is how long one may be silent beyond its pause."""
        self.monotonic = monotonic
        self.bound_s = bound_s
        self._checks: dict[int, tuple[str, Check]] = {}
        self._count = 0
        self._logged: frozenset[str] = frozenset()

    def faults(self) -> dict[str, str]:
        """Return what has stalled, and why."""
        faults = {name: fault for name, check in self._checks.values() if (fault := check())}
        if news := faults.keys() - self._logged:
            _log.error("process.stalled", loops={name: faults[name] for name in sorted(news)})
        self._logged = frozenset(faults)
        return faults

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
    """Watch all loops that run within the block."""
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
    """Watch the loop that runs within the block; it must call `turned` regularly."""
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
    """Record a sign of life of the calling loop, which rests that long; None: until there is work."""
    if (running := _loop.get()) is not None:
        running.turned(rests_s)


async def run(name: str, forever: Coroutine[object, object, None], stop: asyncio.Event) -> None:
    """Run and watch an endless loop until stopped or cancelled; raise LoopEndedEarly if it ends by itself."""
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
        raise LoopEndedEarly(f"the loop {name!r} ended without being asked to")


async def ended(task: asyncio.Task[object]) -> None:
    """Cancel a task until it has ended: one cancellation may be lost if a time-out expires at the same time."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)


async def _watched(name: str, forever: Coroutine[object, object, None]) -> None:
    with loop(name):
        await forever
