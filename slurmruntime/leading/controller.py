"""A controller: a queue of keys, watches that fill it, and workers that reconcile what is in it.

It serves one term of leadership: once stopped, it does not start again.
"""

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from slurmruntime.leading import worker
from slurmruntime.leading.worker import Keys, Reconcile
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import Reporter
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.oddities import Oddities

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What every controller uses of the process that it runs in."""

    clock: Clock
    metrics: Metrics
    set_aside: Oddities
    """Takes keys whose reconcile crashed."""
    rng: random.Random
    """Spreads retries."""
    reporter: Reporter
    """Who reports Events."""


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
    """Reconciles keys from its queue."""

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
            reconcile: called with each key.
            watches: fill the queue.
            process: that it runs in.
            keys: what they stand for.
            queue: one that others fill, too; None: one of its own.
        """
        self._name = name
        self._reconcile = reconcile
        self._watches = tuple(watches)
        self._metrics = process.metrics
        self._set_aside = process.set_aside
        self._keys = keys or Keys()
        self.queue: WorkQueue[K] = queue if queue is not None else WorkQueue(rng=process.rng)
        """The keys to reconcile."""
        self.queue.serve_by(self._keys.lane)

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile up to `workers` keys concurrently until `stop`; then finish those in progress."""
        for watch in self._watches:
            watch.start(self.queue.add)
        await worker.run(
            self.queue,
            self._reconcile,
            name=self._name,
            count=workers,
            stop=stop,
            metrics=self._metrics,
            keys=self._keys,
            set_aside=self._set_aside,
        )
