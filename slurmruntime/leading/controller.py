"""A controller: a queue of keys, watches that fill it, and workers that reconcile what is in it.

It serves one term of leadership: once stopped, it does not start again. A failure of one key must not affect the others:
unexpected exceptions are caught here, and the key is set aside until it succeeds.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

import structlog
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from slurmruntime.leading.workqueue import ShutDown, WorkQueue
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import Reporter
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.oddities import About, Kind, Oddities

_log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Reconcile = Callable[[K], Awaitable[timedelta | None]]
"""Reconciles one key and returns when to reconcile it again without an event; None: only after
one."""


class Keys(Generic[K]):
    """What the keys of a queue stand for; a loop says of its own what it knows."""

    kind: Kind = "workload"
    """What kind of object is set aside when a reconcile crashes."""

    def about(self, _key: K, /) -> About | None:
        """Return the object to report that on, if any."""
        return None

    def lane(self, _key: K, /) -> Hashable:
        """Return whom a key belongs to: the queue serves one after another, round robin."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What every controller uses of the process that it runs in."""

    clock: Clock
    metrics: Metrics
    set_aside: Oddities
    rng: random.Random
    reporter: Reporter


class Watchable(Protocol[T_co]):
    """A source of changes, such as a cache."""

    def subscribe(self, callback: Callable[[T_co | None, T_co | None], None], /) -> None:
        """Call back with (old, new) for every object there is, then for every change."""


class Watch(Generic[K]):
    """A source of changes, and which keys to reconcile after a change."""

    def __init__(
        self, source: Watchable[T], keys: Callable[[T | None, T | None], Iterable[K]]
    ) -> None:
        def start(add: Callable[[K], None]) -> None:
            def changed(old: T | None, new: T | None) -> None:
                for key in keys(old, new):
                    add(key)

            source.subscribe(changed)

        self.start: Callable[[Callable[[K], None]], None] = start
        """Begins to call back with the keys."""


class Controller(Generic[K]):
    """Reconciles keys from its queue, logs each result in one line and retries failures."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        watches: Iterable[Watch[K]] = (),
        *,
        process: Process,
        keys: Keys[K] | None = None,
        queue: WorkQueue[K] | None = None,
    ) -> None:
        """Create the controller; it subscribes to nothing before it runs.

        Args:
            name: the queue's, in logs and metrics.
            queue: one that others fill, too; None: one of its own.
        """
        self._name = name
        self._reconcile = reconcile
        self._watches = tuple(watches)
        self._metrics = process.metrics
        self._set_aside = process.set_aside
        self._keys = keys or Keys()
        self.queue: WorkQueue[K] = queue if queue is not None else WorkQueue(rng=process.rng)
        self.queue.serve_by(self._keys.lane)

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile up to `workers` keys concurrently until `stop`; then finish those in progress, and no more."""
        for watch in self._watches:
            watch.start(self.queue.add)
        self._metrics.work.watch_queue(self._name, self.queue.__len__)
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(self._work(f"{self._name} worker {number}"))
            try:
                await stop.wait()
            finally:
                # Before waiting for the workers: one whose cancellation is lost, because its
                # reconcile fails at that moment, ends at the next key.
                self.queue.shut_down()

    async def _work(self, worker: str) -> None:
        with liveness.loop(worker):
            while True:
                liveness.turned(rests_s=None)
                try:
                    key = await self.queue.get()
                except ShutDown:
                    return
                liveness.turned()
                began = time.perf_counter()
                try:
                    with _in_every_line(queue=self._name, key=str(key)):
                        outcome = await self._reconcile_one(key, began)
                finally:
                    self.queue.done(key)
                self._metrics.work.reconciled(self._name, outcome, time.perf_counter() - began)

    async def _reconcile_one(self, key: K, began: float) -> str:
        """Reconcile one key, log the result in one line and return the outcome for the metrics."""
        queue, keys = self.queue, self._keys
        try:
            requeue_after = await self._reconcile(key)
        except PEER_ERRORS as error:
            outcome = "transient" if error.transient else "refused"
            log = _log.warning if error.transient else _log.error
            delay_s = queue.retry(key, refused=not error.transient)
            log("reconcile.failed", outcome=outcome, error=str(error), **_times(began, delay_s))
        except Exception as error:  # noqa: BLE001  # one key's failure must not affect the others
            outcome = "crashed"
            delay_s = queue.retry(key, refused=True)
            _log.error("reconcile.failed", outcome=outcome, **_times(began, delay_s))
            self._set_aside.crashed(keys.kind, str(key), error, about=keys.about(key))
        else:
            outcome = "ok"
            self._set_aside.settled(keys.kind, str(key))
            queue.succeeded(key)
            again_s = requeue_after.total_seconds() if requeue_after is not None else None
            if again_s is not None:
                queue.add_after(key, again_s)
            _log.debug("reconcile.done", outcome=outcome, **_times(began, again_s))
        return outcome


@contextmanager
def _in_every_line(**about: str) -> Iterator[None]:
    """Bind values to every log line of the block; also unbind what the reconcile binds."""
    before = get_contextvars()
    bind_contextvars(**about)
    try:
        yield
    finally:
        clear_contextvars()
        bind_contextvars(**before)


def _times(began: float, again_s: float | None) -> dict[str, float | None]:
    took_s = time.perf_counter() - began
    return {
        "duration_s": round(took_s, 4),
        "again_s": round(again_s, 3) if again_s is not None else None,
    }
