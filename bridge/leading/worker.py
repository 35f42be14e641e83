"""From keys to reconciles: takes one at a time, says in one line how it went, tries again what failed.

Whatever goes wrong with one key must not keep us from the others: what nobody had thought of is caught here, and set aside
until the key goes well.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

import structlog
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from bridge.domain.errors import PeerError
from bridge.domain.oddities import About, Kind, Oddities
from bridge.leading.workqueue import ShutDown, WorkQueue
from bridge.process import liveness
from bridge.process.metrics import Metrics

_log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)

Reconcile = Callable[[K], Awaitable[timedelta | None]]
"""Looks at one key and does what is to be done; returns when to look again without an event, None: not before one."""


@dataclass(frozen=True, slots=True)
class Aside(Generic[K]):
    """Where a key is set aside, and as what."""

    set_aside: Oddities
    kind: Kind
    about: Callable[[K], About | None] = lambda _: None
    """The object that may tell people of it."""


async def run(
    queue: WorkQueue[K],
    reconcile: Reconcile[K],
    *,
    name: str,
    count: int,
    stop: asyncio.Event,
    metrics: Metrics,
    aside: Aside[K],
) -> None:
    """Work with `count` keys at once until told to stop; those under way are finished. Shuts the queue down.

    Args:
        queue: Where the keys come from.
        reconcile: What is done with each.
        name: Of the queue, for logs and metrics.
        count: Workers.
        stop: Ends it.
        metrics: Where it is counted.
        aside: Where keys are set aside over which the reconcile crashed.
    """
    metrics.watch_queue(name, queue.__len__)
    async with asyncio.TaskGroup() as workers:
        for number in range(count):
            worker = f"{name} worker {number}"
            work = _work(queue, reconcile, worker=worker, name=name, metrics=metrics, aside=aside)
            workers.create_task(work)
        try:
            await stop.wait()
        finally:
            # Before they are waited for: a worker whose cancel is lost, because its
            # reconcile fails at that moment, ends with the next key.
            queue.shut_down()


async def _work(
    queue: WorkQueue[K],
    reconcile: Reconcile[K],
    *,
    worker: str,
    name: str,
    metrics: Metrics,
    aside: Aside[K],
) -> None:
    with liveness.loop(worker):
        while True:
            liveness.turned(rests_s=None)
            try:
                key = await queue.get()
            except ShutDown:
                return
            liveness.turned()
            began = time.perf_counter()
            try:
                with _in_every_line(queue=name, key=str(key)):
                    outcome = await _one(queue, reconcile, key, began, aside)
            finally:
                queue.done(key)
            metrics.reconciled(name, outcome, time.perf_counter() - began)


@contextmanager
def _in_every_line(**about: str) -> Iterator[None]:
    """Say what a line is about; what a reconcile binds besides ends with it, too."""
    before = get_contextvars()
    bind_contextvars(**about)
    try:
        yield
    finally:
        clear_contextvars()
        bind_contextvars(**before)


async def _one(
    queue: WorkQueue[K], reconcile: Reconcile[K], key: K, began: float, aside: Aside[K]
) -> str:
    """Reconcile one key and say in one line how it went; returns the outcome for the metrics."""
    try:
        look_again = await reconcile(key)
    except PeerError as error:
        outcome = "transient" if error.transient else "refused"
        say = _log.warning if error.transient else _log.error
        say(
            "reconcile.failed", outcome=outcome, error=str(error), **_times(began, queue.retry(key))
        )
    except Exception as error:  # noqa: BLE001  # one key's trouble must not keep us from the others
        outcome = "crashed"
        _log.error("reconcile.failed", outcome=outcome, **_times(began, queue.retry(key)))
        aside.set_aside.crashed(aside.kind, str(key), error, about=aside.about(key))
    else:
        outcome = "ok"
        aside.set_aside.settled(aside.kind, str(key))
        queue.forget(key)
        again_s = look_again.total_seconds() if look_again is not None else None
        if again_s is not None:
            queue.add_after(key, again_s)
        _log.debug("reconcile.done", outcome=outcome, **_times(began, again_s))
    return outcome


def _times(began: float, again_s: float | None) -> dict[str, float | None]:
    took_s = time.perf_counter() - began
    return {
        "duration_s": round(took_s, 4),
        "again_s": round(again_s, 3) if again_s is not None else None,
    }
