"""When Slurm's scheduler is woken; time is virtual."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from bridge.reconcile.scheduler_waker import SchedulerWaker
from bridge.slurm.discovery import Discovery
from bridge.slurm.kick import EndedJob
from slurmclient.errors import LostReply, SlurmError, Unavailable
from slurmruntime.values.ids import JobId, Sluid
from tests import virtual_time
from tests.virtual_time import VirtualClock

ENDED = EndedJob(JobId(7), Sluid("s0000000000007"))


class Slurm:
    """Records when it was kicked, and when a reading was asked for."""

    def __init__(self) -> None:
        self.kicked: list[float] = []
        self.read: list[float] = []
        self.asked = 0
        self.last_ended: EndedJob | None = ENDED
        self.cycle_s = 0.0
        self.waits = True
        self.defers = False
        self.error: Exception | None = None

    async def kick(self, job: EndedJob) -> None:
        assert job == ENDED
        self.kicked.append(now())
        if self.error:
            raise self.error

    async def does_defer(self) -> bool:
        self.asked += 1
        return self.defers


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


def played(slurm: Slurm, play: Callable[[SchedulerWaker], Awaitable[None]]) -> Slurm:
    """Slurm after a play with a running waker."""

    async def main(clock: VirtualClock) -> None:
        waker = SchedulerWaker(
            kick=slurm.kick,
            defers=slurm.does_defer,
            discovery=cast(Discovery, slurm),
            waits=lambda: slurm.waits,
            after=lambda: slurm.read.append(now()),
            clock=clock,
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(waker.run(stop))
            await asyncio.sleep(0)
            await play(waker)
            stop.set()

    virtual_time.run(main)
    return slurm


async def one_submit(waker: SchedulerWaker) -> None:
    waker.submitted()
    await asyncio.sleep(10)


async def two_submits(waker: SchedulerWaker) -> None:
    waker.submitted()
    await asyncio.sleep(60)
    waker.submitted()
    await asyncio.sleep(10)


def test_a_submit_is_followed_by_a_kick_and_then_a_reading() -> None:
    slurm = played(Slurm(), one_submit)

    assert [0.0] == slurm.kicked
    assert [0.02] == slurm.read


def test_an_end_is_followed_by_two_kicks_once_slurm_knows_of_it() -> None:
    async def play(waker: SchedulerWaker) -> None:
        waker.freed()
        await asyncio.sleep(10)

    assert [0.1, 1.0] == played(Slurm(), play).kicked


def test_an_end_that_slurm_has_taken_is_followed_by_a_kick_at_once() -> None:
    async def play(waker: SchedulerWaker) -> None:
        waker.freed()
        await asyncio.sleep(0.03)
        waker.completed()
        await asyncio.sleep(10)

    assert [0.03, 1.0] == played(Slurm(), play).kicked


def test_a_thousand_submits_and_ends_are_kicked_twenty_times_a_second() -> None:
    async def play(waker: SchedulerWaker) -> None:
        for _ in range(1000):
            waker.submitted()
            waker.freed()
            await asyncio.sleep(0.001)

    slurm = played(Slurm(), play)

    assert 15 < len(slurm.kicked) <= 21  # both ends of the second count
    assert all(b - a >= 0.0499 for a, b in zip(slurm.kicked, slurm.kicked[1:], strict=False))


def test_the_longer_slurms_scheduler_runs_the_rarer_it_is_kicked() -> None:
    async def play(waker: SchedulerWaker) -> None:
        for _ in range(100):
            waker.submitted()
            await asyncio.sleep(0.2)

    slurm = Slurm()
    slurm.cycle_s = 0.1

    assert [0.0, 5.0, 10.0, 15.0] == played(slurm, play).kicked


@pytest.mark.parametrize("nothing", ["waits", "last_ended"])
def test_nothing_is_kicked_when_nothing_waits_or_can_be_named(nothing: str) -> None:
    slurm = Slurm()
    setattr(slurm, nothing, None)

    assert [] == played(slurm, one_submit).kicked


def test_a_slurm_that_defers_is_not_kicked_and_asked_again_after_ten_minutes() -> None:
    async def play(waker: SchedulerWaker) -> None:
        for _ in range(13):
            waker.submitted()
            await asyncio.sleep(100)

    slurm = Slurm()
    slurm.defers = True

    assert [] == played(slurm, play).kicked
    assert 3 == slurm.asked


@pytest.mark.parametrize(
    "error", [Unavailable("kick", "away"), LostReply("kick", "silent"), ValueError("no sluid")]
)
def test_a_kick_that_fails_costs_time_only(error: SlurmError | ValueError) -> None:
    slurm = Slurm()
    slurm.error = error

    assert [0.0, 60.0] == played(slurm, two_submits).kicked
    assert [] == slurm.read
