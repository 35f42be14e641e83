"""One tenant's many pods do not keep another's few waiting. In virtual time."""

import asyncio
import random
from dataclasses import replace
from typing import Any

from bridge.domain.lifecycle.decision import Actor, Decision
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.workloads import membership
from bridge.kube.decode import PODS
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import PodUid
from slurmruntime.values.oddities import UNHEARD
from tests import virtual_time
from tests.make import lives as build
from tests.make.processes import process
from tests.make.sides import KnowsAll, Lists
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=1, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
MANY = 500
A_SUBMIT_S = 0.05
WORKERS = 16


class Slow:
    """Takes its time for whatever is decided, and notes when it began."""

    def __init__(self, clock: VirtualClock) -> None:
        self.began_s: dict[str, float] = {}
        self._clock = clock

    async def carry_out(self, pod: Pod, _decision: Decision, *, workload: str) -> None:
        self.began_s.setdefault(workload, self._clock.monotonic())
        await self._clock.sleep(A_SUBMIT_S)


def gated(name: str, namespace: str) -> Pod:
    return replace(build.gated(), uid=PodUid(name), name=name, namespace=namespace)


def test_a_tenants_first_pod_waits_for_one_turn_of_a_tenant_with_hundreds() -> None:
    async def main(clock: VirtualClock) -> float:
        pods, stop = Cache(PODS), asyncio.Event()
        lists: Any = Lists(clock, PodUid("nobody"))
        slow: Any = Slow(clock)
        loop = PodLoop(
            KnowsAll(Actor.EXTENDER, membership.alone).side(),
            pods=pods,
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            placeholders=Placeholders(lists, pace=PACE, clock=clock, metrics=Metrics("other")),
            actuator=slow,
            process=process(clock, Metrics("extender"), UNHEARD),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop, workers=WORKERS))
            await clock.sleep(1)
            for number in range(MANY):
                pods.put(gated(f"many-{number}", "crowd"))
            await clock.sleep(1)
            came_s = clock.monotonic()
            pods.put(gated("first", "other"))
            await clock.sleep(5)
            stop.set()
        assert MANY + 1 == len(slow.began_s)
        return float(slow.began_s["first"]) - came_s

    assert virtual_time.run(main) <= 2 * A_SUBMIT_S
