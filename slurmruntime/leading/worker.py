"""Workers that reconcile the keys of a queue, log each result in one line and retry failures.

A failure of one key must not affect the others: unexpected exceptions are caught here, and the key
is set aside until it succeeds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Generic, TypeVar

import structlog
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from slurmruntime.leading.workqueue import ShutDown, WorkQueue
from slurmruntime.process import liveness
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.oddities import About, Kind, Oddities

_log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)

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


async def run(
    queue: WorkQueue[K],
    reconcile: Reconcile[K],
    *,
    name: str,
    count: int,
    stop: asyncio.Event,
    metrics: Metrics,
    keys: Keys[K],
    set_aside: Oddities,
) -> None:
    """Process up to `count` keys concurrently until `stop`; then finish those in progress.

    This shuts the queue down.

    Args:
        name: The queue's, for logs and metrics.
        keys: What they stand for.
        set_aside: Where keys whose reconcile crashed are set aside.
    """
    metrics.work.watch_queue(name, queue.__len__)
    async with asyncio.TaskGroup() as workers:
        for number in range(count):
            worker = f"{name} worker {number}"
            work = _work(
                queue,
                reconcile,
                worker=worker,
                name=name,
                metrics=metrics,
                keys=keys,
                set_aside=set_aside,
            )
            workers.create_task(work)
        try:
            await stop.wait()
        finally:
            # Before waiting for the workers: one whose cancellation is lost, because its
            # reconcile fails at that moment, ends at the next key.
            queue.shut_down()


async def _work(
    queue: WorkQueue[K],
    reconcile: Reconcile[K],
    *,
    worker: str,
    name: str,
    metrics: Metrics,
    keys: Keys[K],
    set_aside: Oddities,
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
                    outcome = await _reconcile_one(
                        queue, reconcile, key, began, keys=keys, set_aside=set_aside
                    )
            finally:
                queue.done(key)
            metrics.work.reconciled(name, outcome, time.perf_counter() - began)


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


async def _reconcile_one(
    queue: WorkQueue[K],
    reconcile: Reconcile[K],
    key: K,
    began: float,
    *,
    keys: Keys[K],
    set_aside: Oddities,
) -> str:
    """Reconcile one key, log the result in one line and return the outcome for the metrics."""
    try:
        requeue_after = await reconcile(key)
    except PEER_ERRORS as error:
        outcome = "transient" if error.transient else "refused"
        log = _log.warning if error.transient else _log.error
        delay_s = queue.retry(key, refused=not error.transient)
        log("reconcile.failed", outcome=outcome, error=str(error), **_times(began, delay_s))
    except Exception as error:  # noqa: BLE001  # one key's failure must not affect the others
        outcome = "crashed"
        delay_s = queue.retry(key, refused=True)
        _log.error("reconcile.failed", outcome=outcome, **_times(began, delay_s))
        set_aside.crashed(keys.kind, str(key), error, about=keys.about(key))
    else:
        outcome = "ok"
        set_aside.settled(keys.kind, str(key))
        queue.succeeded(key)
        again_s = requeue_after.total_seconds() if requeue_after is not None else None
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
