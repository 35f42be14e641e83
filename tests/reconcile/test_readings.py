"""One reading of Slurm for both sides of a leader: who is served, when, and what each keeps to itself."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.observation.pace import Pace
from bridge.domain.observation.view import Past
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.reading.audience import Wants, combine
from bridge.reconcile.reading.readings import Readings
from bridge.slurm.snapshot import Snapshot
from slurmclient.errors import Unavailable
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import JobId, PodUid, alone_key
from tests import virtual_time
from tests.make import lives
from tests.make.sides import Lists
from tests.virtual_time import VirtualClock

PLACES = Pace(
    busy_s=0.2, idle_s=10, shortest_s=0.05, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
ENDS = replace(PLACES, busy_s=1, idle_s=1, shortest_s=0.2)
POD = lives.gated()
KEY = alone_key(POD.uid)


class Counts(Lists):
    """Remembers what each reading was wanted for, and fails when told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, PodUid("nobody"))
        self.asked: list[dict[str, Any]] = []
        self.fails = False
        self.takes_s = 0.0
        self._its_clock = clock

    @override
    async def refresh(self, **options: Any) -> Snapshot:
        self.asked.append(options)
        if self.takes_s:
            await self._its_clock.sleep(self.takes_s)
        if self.fails:
            raise Unavailable("job.states", "no response")
        return await super().refresh(**options)


class Both:
    """The two sides of one leader, and their Slurm."""

    def __init__(self, clock: VirtualClock) -> None:
        metrics = Metrics("leader")
        self.slurm = Counts(clock)
        listing: Any = self.slurm
        self.readings = Readings(listing, clock=clock, metrics=metrics)
        self.places, self.ends = (
            Placeholders(listing, pace=pace, clock=clock, metrics=metrics, readings=self.readings)
            for pace in (PLACES, ENDS)
        )
        self.woken: dict[str, list[str]] = {"places": [], "ends": []}

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.places.run(stop, wake=self.woken["places"].append))
            group.create_task(self.ends.run(stop, wake=self.woken["ends"].append))


async def during(both: Both, clock: VirtualClock, seconds: float) -> int:
    """How many readings there are in that time."""
    await clock.sleep(0.001)  # what is read at the moment of a write does not count
    stop, before = asyncio.Event(), len(both.slurm.asked)
    async with asyncio.TaskGroup() as group:
        group.create_task(both.run(stop))
        await clock.sleep(seconds)
        stop.set()
    return len(both.slurm.asked) - before


def test_both_live_from_one_reading_at_the_pace_of_the_quicker() -> None:
    async def main(clock: VirtualClock) -> None:
        both = Both(clock)

        assert 10 <= await during(both, clock, 10.5) <= 11
        assert both.places.snapshot is both.ends.snapshot is both.readings.snapshot

    virtual_time.run(main)


@pytest.mark.parametrize(("listed_jobs", "readings"), [(3000, 7), (3001, 4)])
def test_a_slow_reading_is_followed_by_a_long_pause_only_if_there_are_many_jobs(
    listed_jobs: int, readings: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        both = Both(clock)
        both.slurm.takes_s, both.slurm.listed_jobs = 2.0, listed_jobs
        both.slurm.jobs = (lives.job(),)

        assert readings == await during(both, clock, 20)

    virtual_time.run(main)


def test_who_asks_waits_as_long_as_its_own_pace_says() -> None:
    async def main(clock: VirtualClock) -> None:
        for asks, most in (("places", 0.06), ("ends", 0.21)):
            both = Both(clock)
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(both.run(stop))
                await clock.sleep(0.01)
                getattr(both, asks).ask()
                await clock.sleep(most - 0.03)
                assert 1 == len(both.slurm.asked), asks
                await clock.sleep(0.03)
                assert 2 == len(both.slurm.asked), asks
                stop.set()

    virtual_time.run(main)


def test_what_one_side_has_written_concerns_that_side_only() -> None:
    async def main(clock: VirtualClock) -> None:
        both = Both(clock)
        for side in (both.places, both.ends):
            side.meet(KEY, Past.NOTHING)
            side.receive(POD.uid, Past.NOTHING)
        await during(both, clock, 0.1)
        assert both.places.view(POD, KEY).fresh
        assert both.ends.view(POD, KEY).fresh
        both.places.wrote(KEY)

        assert not both.places.view(POD, KEY).fresh
        assert both.ends.view(POD, KEY).fresh
        both.woken["places"].clear()
        both.woken["ends"].clear()
        await during(both, clock, 0.1)
        assert both.places.view(POD, KEY).fresh
        assert [KEY] == both.woken["places"]
        assert [] == both.woken["ends"]

    virtual_time.run(main)


def test_a_failed_reading_is_nobodys_news_and_both_wait_for_the_next() -> None:
    async def main(clock: VirtualClock) -> None:
        both = Both(clock)
        both.slurm.fails = True
        for side in (both.places, both.ends):
            side.meet(KEY, Past.NOTHING)
            side.wrote(KEY)
        await during(both, clock, 20)
        assert {"places": [], "ends": []} == both.woken
        assert both.readings.health() is not None
        both.slurm.fails = False
        await during(both, clock, 1.5)

        assert {"places": [KEY], "ends": [KEY]} == both.woken
        assert both.readings.health() is None
        assert all(
            asked["surely"] for asked in both.slurm.asked if asked is not both.slurm.asked[-1]
        )

    virtual_time.run(main)


def test_a_reading_is_for_all_that_anybody_wants() -> None:
    found = combine(
        [
            Wants(due=(JobId(1), JobId(2))),
            Wants(due=(JobId(2), JobId(3)), surely=True),
            Wants(complete=True),
        ]
    )

    assert Wants(due=(JobId(1), JobId(2), JobId(3)), surely=True, complete=True) == found
    assert Wants() == combine([Wants(), Wants()])
