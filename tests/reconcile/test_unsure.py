"""A workload whose placeholder cannot be read: it waits for news of that job, and costs no further reading. In virtual time."""

import asyncio
from dataclasses import replace
from types import MappingProxyType

from bridge.domain.model.jobs import SlurmJob
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.view import Past, View
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm.snapshot import Snapshot
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import PodUid, alone_key
from tests import virtual_time
from tests.make import lives as build
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=10, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
UID = PodUid("pod-1")
KEY = alone_key(UID)
READABLE_FROM_S = 95.0


class Slurm:
    """Has one job, which can be read from a certain moment on."""

    slurms_time = None
    listed_s = 0.0
    listed_jobs = 0

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.readings = 0

    async def refresh(self, **_: object) -> Snapshot:
        self.readings += 1
        is_readable = self._clock.monotonic() >= READABLE_FROM_S
        jobs: tuple[SlurmJob, ...] = (build.job(),) if is_readable else ()
        return Snapshot(
            sequence=self.readings,
            began_monotonic=self._clock.monotonic(),
            jobs=MappingProxyType({job.id: job for job in jobs}),
            by_key=MappingProxyType({KEY: jobs} if jobs else {}),
            is_repeated=self.readings > 1,
            is_whole=True,
            unreadable=MappingProxyType({} if is_readable else {build.JOB_ID: "odd"}),
            unsure=frozenset() if is_readable else frozenset({KEY}),
        )


def test_it_is_read_at_the_idle_pace_and_looked_at_when_its_job_can_be_read() -> None:
    async def main(clock: VirtualClock) -> tuple[list[tuple[float, View]], int]:
        slurm, looks = Slurm(clock), []
        placeholders = Placeholders(
            slurm,  # type: ignore[arg-type]  # all that is asked of it
            pace=PACE,
            clock=clock,
            metrics=Metrics("extender"),
        )
        pod = replace(build.gated(), resource_version="1")
        placeholders.meet(KEY, Past.NOTHING)

        def look(_: str) -> None:
            looks.append((clock.monotonic(), placeholders.view(pod, KEY)))

        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=look))
            await clock.sleep(100)
            stop.set()
        return looks, slurm.readings

    looks, readings = virtual_time.run(main)

    assert readings <= 11
    (_, first), (at, second) = looks
    assert not first.reachable
    assert (True, (build.job(),)) == (second.reachable, second.jobs)
    assert at <= READABLE_FROM_S + PACE.idle_s
