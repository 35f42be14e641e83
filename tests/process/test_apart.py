"""A part on a thread of its own."""

import asyncio
import threading
import time

import pytest

from slurmruntime.process import apart
from tests.servers import until

DEADLINE_S = 60.0


async def test_it_answers_while_this_loop_is_busy() -> None:
    asked, answered, stop = threading.Event(), threading.Event(), asyncio.Event()

    async def main(its_stop: asyncio.Event) -> None:
        while not its_stop.is_set():
            if asked.is_set():
                answered.set()
            await asyncio.sleep(0.001)

    async with asyncio.TaskGroup() as group:
        group.create_task(apart.run(main, stop))
        await asyncio.sleep(0)
        asked.set()
        is_answered = answered.wait(DEADLINE_S)  # on purpose without giving way
        stop.set()

    assert is_answered


async def test_it_ends_when_it_is_told_to_in_order() -> None:
    log: list[str] = []
    stop = asyncio.Event()

    async def main(its_stop: asyncio.Event) -> None:
        log.append("begun")
        await its_stop.wait()
        await asyncio.sleep(0.01)
        log.append("ended")

    async with asyncio.TaskGroup() as group:
        group.create_task(apart.run(main, stop))
        await until(lambda: "begun" in log, DEADLINE_S)
        stop.set()

    assert ["begun", "ended"] == log


async def test_what_it_raises_comes_out() -> None:
    async def main(_: asyncio.Event) -> None:
        raise OSError("no such luck")

    with pytest.raises(ExceptionGroup) as caught:
        await apart.run(main, asyncio.Event())

    assert caught.group_contains(OSError, match="no such luck")


async def test_one_that_is_cut_off_is_waited_for() -> None:
    log: list[str] = []

    async def main(its_stop: asyncio.Event) -> None:
        log.append("begun")
        await its_stop.wait()
        time.sleep(0.05)  # noqa: ASYNC251  # a thread that takes its time
        log.append("ended")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(apart.run(main, asyncio.Event()))
        await until(lambda: "begun" in log, DEADLINE_S)
        running.cancel()

    assert ["begun", "ended"] == log
