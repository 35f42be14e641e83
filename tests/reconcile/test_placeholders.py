"""When Slurm is read again: the loop of a leader, against the real Slurm."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.model.jobs import JobPhase
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.view import Past
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.discovery import Discovery
from bridge.slurm.snapshot import Snapshot
from sandbox.client import Sandbox
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key
from tests import virtual_time
from tests.make import lives
from tests.make.sides import Lists
from tests.servers import until
from tests.slurm.placeholders import CLUSTER, spec
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=0.05, idle_s=3600, shortest_s=0.05, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
DEADLINE_S = 60.0


class ShiftedClock(SystemClock):
    """Time may leap."""

    leapt_s = 0.0

    @override
    def monotonic(self) -> float:
        return time.monotonic() + self.leapt_s


@pytest.fixture
async def client(slurm: Sandbox) -> AsyncIterator[SlurmClient]:
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as opened:
        yield opened


async def test_a_calm_queue_is_read_rarely_until_something_stirs_it(client: SlurmClient) -> None:
    clock = ShiftedClock()
    held = await jobs.submit(client, spec(hold=True))
    placeholders = Placeholders(
        Discovery(client, CLUSTER, clock=clock.monotonic),
        pace=PACE,
        clock=clock,
        metrics=Metrics("extender"),
    )

    def readings() -> int:
        return placeholders.snapshot.sequence if placeholders.snapshot else 0

    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(placeholders.run(stop, wake=lambda _: None))
        try:
            await until(lambda: readings() > 3, DEADLINE_S)
            clock.leapt_s = 10_000.0
            before = readings()
            await until(lambda: readings() > before, DEADLINE_S)  # the next one is due in 1000 s

            placeholders.stir()

            before = readings()
            await until(lambda: readings() > before, DEADLINE_S)
        finally:
            stop.set()
            await jobs.cancel(client, held)


class Behind(Lists):
    """Has more jobs to classify than a reading allows, the first ten times."""

    @override
    async def refresh(self, **options: object) -> Snapshot:
        snapshot = await super().refresh(**options)
        return replace(snapshot, is_behind=snapshot.sequence <= 10)


class Slow(Lists):
    """Takes half a second for a list, in which nothing changes."""

    listed_s = 0.5
    first: Snapshot | None = None

    @override
    async def refresh(self, **options: object) -> Snapshot:
        now = await super().refresh(**options)
        self.first = self.first or now
        # Each has another reason to wait by now.
        jobs = MappingProxyType(dict(self.first.jobs))
        return replace(self.first, jobs=jobs, sequence=now.sequence, is_repeated=True)


@pytest.mark.parametrize("waits", [False, True])
def test_where_lists_are_slow_and_nothing_of_ours_happens_they_are_rare(*, waits: bool) -> None:
    pace = replace(PACE, busy_s=0.5, idle_s=1)
    pod = lives.gated()
    listed = (lives.job(JobPhase.WAITING),) if waits else ()

    async def main(clock: VirtualClock) -> tuple[int, int]:
        slow: Any = Slow(clock, pod.uid, listed)
        placeholders = Placeholders(slow, pace=pace, clock=clock, metrics=Metrics("extender"))

        def readings() -> int:
            assert placeholders.snapshot is not None
            return placeholders.snapshot.sequence

        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=lambda _: None))
            await clock.sleep(300)
            calm = readings()
            await clock.sleep(95)
            rare = readings() - calm
            placeholders.stir()
            await clock.sleep(10)
            stop.set()
        return rare, readings() - calm - rare

    rare, after_news = virtual_time.run(main)
    assert 9 <= rare <= 11
    assert after_news >= 8


def test_while_there_are_jobs_to_classify_readings_follow_each_other() -> None:
    async def main(clock: VirtualClock) -> int:
        behind: Any = Behind(clock, PodUid("nobody"))
        placeholders = Placeholders(behind, pace=PACE, clock=clock, metrics=Metrics("extender"))
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=lambda _: None))
            await clock.sleep(12 * PACE.shortest_s)
            stop.set()
        assert placeholders.snapshot is not None
        return placeholders.snapshot.sequence

    assert 11 == virtual_time.run(main)


def test_while_the_cache_is_behind_our_own_patch_slurm_is_not_asked_in_a_hurry() -> None:
    """Reading Slurm brings no news of the pod; its next version wakes the workload by itself."""
    pace = replace(PACE, busy_s=1.0)
    pod = lives.gated()
    key = alone_key(pod.uid)

    async def main(clock: VirtualClock) -> int:
        listing: Any = Lists(clock, pod.uid)
        placeholders = Placeholders(listing, pace=pace, clock=clock, metrics=Metrics("extender"))
        placeholders.meet(key, Past.NOTHING)
        placeholders.patched(pod)

        def look(key: WorkloadKey) -> None:
            placeholders.view(pod, key)

        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=look))
            await clock.sleep(pace.shortest_s)
            look(key)
            assert not placeholders.view(pod, key).fresh
            await clock.sleep(5.0)
            stop.set()
        assert placeholders.snapshot is not None
        return placeholders.snapshot.sequence

    assert virtual_time.run(main) <= 7
