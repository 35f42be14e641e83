import asyncio
from datetime import UTC

from slurmruntime.process.clock import SystemClock, pause
from tests import virtual_time
from tests.virtual_time import VirtualClock


def test_the_wall_clock_is_in_utc_and_the_other_never_goes_back() -> None:
    clock = SystemClock()

    assert UTC == clock.now().tzinfo
    assert clock.monotonic() <= clock.monotonic()


def test_a_pause_takes_its_time_unless_told_to_stop() -> None:
    async def main(clock: VirtualClock) -> list[float]:
        ends = []
        stop = asyncio.Event()
        await pause(10, stop)
        ends.append(clock.monotonic())
        await pause(-1, stop)
        ends.append(clock.monotonic())
        asyncio.get_running_loop().call_later(3, stop.set)
        await pause(10, stop)
        ends.append(clock.monotonic())
        await pause(10, stop)
        return [*ends, clock.monotonic()]

    assert [10, 10, 13, 13] == virtual_time.run(main)
