"""How long an event loop stood still: with real loops that are blocked, and by virtual time."""

import asyncio
import time

import pytest

from slurmruntime.process import apart, health, serve, standstill
from slurmruntime.process.health import Health
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.standstill import BEAT_S, WINDOW_S, Standstill
from tests import virtual_time
from tests.make.peers import TIMEOUT_S, talk
from tests.servers import until
from tests.virtual_time import VirtualClock

BLOCKED_S = 0.3
METRIC = "slurm_bridge_loop_longest_standstill_seconds"


async def test_a_loop_that_is_blocked_shows_it_in_the_metrics() -> None:
    stop, sock = asyncio.Event(), serve.bind("127.0.0.1:0")
    address = sock.getsockname()
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        group.create_task(health.run(Health(), Metrics("test"), sock, stop=stop))
        await asyncio.sleep(0)
        time.sleep(BLOCKED_S)  # noqa: ASYNC251  # on purpose without giving way
        scraped = await talk(address, lambda peer: peer.ask("GET", "/metrics"))
        stop.set()

    (line,) = (
        line for line in scraped.body.decode().splitlines() if line.startswith(f"{METRIC}{{")
    )
    name, _, value = line.rpartition(" ")
    assert f'{METRIC}{{loop="main"}}' == name
    assert float(value) >= BLOCKED_S - BEAT_S


async def test_a_loop_of_another_thread_shows_that_it_is_blocked_while_it_is() -> None:
    stop, stands = asyncio.Event(), Standstill()

    async def main(its_stop: asyncio.Event) -> None:
        with stands.measured():
            await asyncio.sleep(0)
            time.sleep(BLOCKED_S)  # noqa: ASYNC251  # on purpose without giving way
            assert stands.longest_s() >= BLOCKED_S - BEAT_S
            await its_stop.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(apart.run(main, stop))
        await until(lambda: stands.longest_s() >= BLOCKED_S - BEAT_S, TIMEOUT_S)
        stop.set()


@pytest.mark.parametrize("busy_s", [BEAT_S, 0.25, 40.0])
def test_it_is_measured_to_a_beat(busy_s: float) -> None:
    async def main(clock: VirtualClock) -> None:
        stands = Standstill(clock.monotonic)
        with stands.measured():
            await clock.sleep(0.33)
            clock.jump(busy_s)
            await clock.sleep(3)
        assert busy_s - BEAT_S <= stands.longest_s() <= busy_s

    virtual_time.run(main)


def test_a_loop_that_turns_does_not_stand_still() -> None:
    async def main(clock: VirtualClock) -> None:
        stands = Standstill(clock.monotonic)
        with stands.measured():
            await clock.sleep(3 * WINDOW_S)
        await clock.sleep(WINDOW_S)  # nothing is measured any more
        assert stands.longest_s() < standstill.BEAT_S / 10

    virtual_time.run(main)


def test_it_is_shown_for_one_window_at_least_and_for_two_at_most() -> None:
    async def main(clock: VirtualClock) -> None:
        stands = Standstill(clock.monotonic)
        with stands.measured():
            await clock.sleep(WINDOW_S * 0.9)
            clock.jump(1.0)
            await clock.sleep(WINDOW_S)
            assert stands.longest_s() > 1 - 2 * BEAT_S
            await clock.sleep(WINDOW_S)
            assert stands.longest_s() < BEAT_S

    virtual_time.run(main)


def test_a_standstill_over_several_windows_counts_for_the_one_in_which_it_ends() -> None:
    async def main(clock: VirtualClock) -> None:
        stands = Standstill(clock.monotonic)
        with stands.measured():
            await clock.sleep(1)
            clock.jump(5 * WINDOW_S)
            await clock.sleep(WINDOW_S / 2)
            assert stands.longest_s() > 5 * WINDOW_S - 2 * BEAT_S

    virtual_time.run(main)
