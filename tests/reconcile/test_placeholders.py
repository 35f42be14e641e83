"""When Slurm is read again: the loop of a leader, against the real Slurm."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from typing_extensions import override

from bridge.domain.observation.pace import Pace
from bridge.process.clock import SystemClock
from bridge.process.metrics import Metrics
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.discovery import Discovery
from sandbox.client import Sandbox
from tests.servers import until
from tests.slurm.placeholders import CLUSTER, spec

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
