"""A controller subscribes when it runs, and reconciles the keys that its watches name."""

import asyncio
import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from typing_extensions import override

from slurmruntime.leading.controller import Controller, Keys, Watch
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import CallError
from slurmruntime.values.oddities import UNHEARD
from tests import virtual_time
from tests.make.processes import process
from tests.make.samples import value
from tests.virtual_time import VirtualClock


class Away(CallError):
    transient = True


class Words:
    """A source of changes with one word in it."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[str | None, str | None], None]] = []

    def subscribe(self, callback: Callable[[str | None, str | None], None], /) -> None:
        self.callbacks.append(callback)
        callback(None, "first")

    def change(self, old: str | None, new: str | None) -> None:
        for callback in self.callbacks:
            callback(old, new)


def _both(old: str | None, new: str | None) -> Iterator[str]:
    for word in (old, new):
        if word is not None:
            yield word


class World(Keys[str]):
    """A controller over words, and what it reconciled."""

    def __init__(self, clock: VirtualClock, queue: WorkQueue[str] | None = None) -> None:
        self.clock = clock
        self.metrics = Metrics("test")
        self.words, self.others = Words(), Words()
        self.seen: list[str] = []
        self.failing: set[str] = set()
        self.controller = Controller(
            "words",
            self.reconcile,
            [Watch(self.words, _both), Watch(self.others, lambda _, new: [f"other {new}"])],
            process=process(clock, self.metrics, UNHEARD),
            keys=self,
            queue=queue,
        )
        self.stop = asyncio.Event()

    @override
    def lane(self, word: str, /) -> str:
        return word[0]

    async def reconcile(self, key: str) -> timedelta | None:
        self.seen.append(key)
        if key in self.failing:
            self.failing.discard(key)
            raise Away("away")
        return None

    async def run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(self.stop, workers=1))
            await self.clock.sleep(1)
            meanwhile()
            await self.clock.sleep(100)
            self.stop.set()


def test_it_subscribes_when_it_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        assert not world.words.callbacks
        assert not world.controller.queue
        await world.run()
        assert {"first", "other first"} == set(world.seen)

    virtual_time.run(main)


def test_each_watch_names_the_keys_of_its_changes() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)

        def change() -> None:
            world.words.change("was", "is")
            world.others.change("was", "is")

        await world.run(change)
        assert {"was", "is", "other is"} == set(world.seen[2:])

    virtual_time.run(main)


def test_a_failure_is_tried_again_and_counted_under_its_name() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        world.failing.add("first")
        await world.run()
        assert 2 == world.seen.count("first")
        assert 1 == _reconciles(world, "transient")
        assert 2 == _reconciles(world, "ok")

    virtual_time.run(main)


@pytest.mark.parametrize("is_filled", [False, True])
def test_a_queue_that_others_fill_is_the_one_it_works_on(*, is_filled: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(rng=random.Random(1))  # noqa: S311  # jitter
        if is_filled:
            queue.add("before")
        world = World(clock, queue)
        assert world.controller.queue is queue
        await world.run()
        assert is_filled == ("before" in world.seen)

    virtual_time.run(main)


def _reconciles(world: World, outcome: str) -> float:
    return value(world.metrics, "slurm_bridge_reconciles_total", queue="words", outcome=outcome)
