import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from bridge.reconcile.set_aside import SetAside
from slurmruntime.leading.controller import Controller, Reconcile
from slurmruntime.leading.workqueue import ShutDown
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import CallError
from tests import virtual_time
from tests.make.processes import process
from tests.make.samples import value
from tests.virtual_time import VirtualClock


class Away(CallError):
    transient = True


class Refused(CallError):
    pass


class World:
    """A queue, three workers and what they do with each key."""

    def __init__(self, reconcile: Reconcile[str]) -> None:
        self.metrics = Metrics("test")
        self.set_aside = SetAside(self.metrics, SystemClock())
        self.stop = asyncio.Event()
        of_test = process(SystemClock(), self.metrics, self.set_aside)
        self.controller = Controller("pods", reconcile, process=of_test)
        self.queue = self.controller.queue

    async def run(self) -> None:
        await self.controller.run(self.stop, workers=3)


@pytest.fixture
def logs() -> Any:
    capture = LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, capture])
    yield capture.entries
    structlog.reset_defaults()


def test_a_key_is_looked_at_again_when_the_reconcile_says_so() -> None:
    seen: list[float] = []

    async def main(clock: VirtualClock) -> None:
        async def reconcile(_key: str) -> timedelta | None:
            seen.append(clock.monotonic())
            return timedelta(seconds=10) if len(seen) < 3 else None

        world = World(reconcile)
        world.queue.add("a")
        async with asyncio.TaskGroup() as group:
            group.create_task(world.run())
            await clock.sleep(100)
            world.stop.set()
        assert 3 == value(
            world.metrics, "slurm_bridge_reconciles_total", queue="pods", outcome="ok"
        )

    virtual_time.run(main)

    assert [0, 10, 20] == seen


@pytest.mark.parametrize(
    ("error", "outcome", "level", "traceback"),
    [
        pytest.param(Away("slurmrestd: no answer"), "transient", "warning", False, id="away"),
        pytest.param(Refused("no such partition"), "refused", "error", False, id="refused"),
        pytest.param(ZeroDivisionError("oops"), "crashed", "error", True, id="crashed"),
    ],
)
def test_a_failure_is_one_line_and_tried_again(
    error: Exception, outcome: str, level: str, traceback: bool, logs: list[dict[str, Any]]
) -> None:
    """A peer that is away is no reason for a traceback; a bug is."""

    async def main(clock: VirtualClock) -> None:
        errors = [error]

        async def reconcile(_key: str) -> None:
            if errors:
                raise errors.pop()

        world = World(reconcile)
        world.queue.add("a")
        async with asyncio.TaskGroup() as group:
            group.create_task(world.run())
            await clock.sleep(100)
            world.stop.set()
        assert 1 == value(
            world.metrics, "slurm_bridge_reconciles_total", queue="pods", outcome=outcome
        )

    virtual_time.run(main)
    failed, done = [line for line in logs if line["event"].startswith("reconcile.")]

    assert ("reconcile.failed", level, outcome) == (
        failed["event"],
        failed["log_level"],
        failed["outcome"],
    )
    assert traceback == any(line.get("exc_info") for line in logs)
    assert 0.1 <= failed["again_s"] <= 0.2
    assert ("reconcile.done", "debug", "ok") == (done["event"], done["log_level"], done["outcome"])
    for line in logs:
        assert ("pods", "a") == (line["queue"], line["key"])
    for line in (failed, done):
        assert line["duration_s"] >= 0


def test_what_is_bound_for_one_key_is_not_said_of_the_next(logs: list[dict[str, Any]]) -> None:
    async def reconcile(key: str) -> None:
        if key == "first":
            structlog.contextvars.bind_contextvars(workload="of the first")
        structlog.get_logger().info("looked")

    async def main(clock: VirtualClock) -> None:
        world = World(reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(world.run())
            for key in ("first", "second"):
                world.queue.add(key)
                await clock.sleep(1)
            world.stop.set()

    virtual_time.run(main)

    looked = {line["key"]: line for line in logs if line["event"] == "looked"}
    assert "of the first" == looked["first"]["workload"]
    assert "workload" not in looked["second"]


def test_one_keys_trouble_does_not_keep_the_others_waiting() -> None:
    done: set[str] = set()

    async def main(clock: VirtualClock) -> None:
        async def reconcile(key: str) -> None:
            if key == "bad":
                raise ZeroDivisionError
            done.add(key)

        world = World(reconcile)
        for key in ("bad", *map(str, range(100))):
            world.queue.add(key)
        async with asyncio.TaskGroup() as group:
            group.create_task(world.run())
            await clock.sleep(1)
            world.stop.set()

    virtual_time.run(main)

    assert 100 == len(done)


def test_at_stop_what_is_under_way_is_finished_and_nothing_is_begun() -> None:
    finished: list[str] = []

    async def main(clock: VirtualClock) -> None:
        async def reconcile(key: str) -> None:
            await clock.sleep(10)
            finished.append(key)

        world = World(reconcile)
        for key in "abcdef":
            world.queue.add(key)
        async with asyncio.TaskGroup() as group:
            group.create_task(world.run())
            await clock.sleep(5)
            world.stop.set()
        assert 10 == clock.monotonic()

    virtual_time.run(main)

    assert {"a", "b", "c"} == set(finished)


def test_when_cancelled_the_queue_is_shut_down_too() -> None:
    """A lost lease cancels the workers; nobody must go on filling their queue."""

    async def main(clock: VirtualClock) -> None:
        async def reconcile(_key: str) -> None:
            await clock.sleep(10)

        world = World(reconcile)
        world.queue.add("a")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await world.run()
        world.queue.add("b")
        with pytest.raises(ShutDown):
            await world.queue.get()

    virtual_time.run(main)
