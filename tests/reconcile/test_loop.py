"""When a pod is looked at: ends at once, what calls for nothing together, and nobody else's never. In virtual time."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bridge.domain.lifecycle.actions import Complete
from bridge.domain.lifecycle.decision import Actor, Decision
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.workloads import membership
from bridge.kube.decode import PODS
from bridge.reconcile.actuator import NotGiven
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from slurmclient.errors import Declined
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key
from slurmruntime.values.oddities import UNHEARD
from tests import virtual_time
from tests.make import lives as build
from tests.make.processes import process
from tests.make.samples import value
from tests.make.sides import KnowsAll, Lists
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=1, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
UID = PodUid("pod-1")


class World:
    """A leader's loop; what it decides is written down with the time, and not done."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.pods = Cache(PODS)
        self.queue: WorkQueue[WorkloadKey] = WorkQueue(rng=random.Random(1))  # noqa: S311  # jitter
        self.slurm = Lists(clock, UID)
        self.side = KnowsAll(Actor.CONTROLLERS, membership.alone)
        self.looks: list[float] = []
        """When it was decided for a pod."""
        self.fails = False
        """Nothing that is decided can be done."""
        self.refused: list[float] | None = None
        """When Slurm refused to end a placeholder; None: it does not refuse."""
        self.metrics = Metrics("controllers")
        self._versions = 0
        self.placeholders = Placeholders(
            self.slurm,  # type: ignore[arg-type]  # all that is asked of it
            pace=PACE,
            clock=clock,
            metrics=Metrics("controllers"),
        )
        self.loop = PodLoop(
            self.side.side(),
            pods=self.pods,
            queue=self.queue,
            placeholders=self.placeholders,
            actuator=self,  # type: ignore[arg-type]  # all that is asked of it
            process=process(clock, self.metrics, UNHEARD),
        )

    async def carry_out(self, pod: Pod, decision: Decision, *, workload: WorkloadKey) -> None:
        self.looks.append(self.clock.monotonic())
        if self.fails:
            raise NotGiven("not now")
        if self.refused is not None and any(isinstance(one, Complete) for one in decision.actions):
            self.refused.append(self.clock.monotonic())
            self.placeholders.wrote(workload)
            raise Declined("job.complete", "no", status=422, error_number=9000)

    def see(self, pod: Pod) -> None:
        self._versions += 1
        self.pods.put(replace(pod, resource_version=str(self._versions)))


def looks(happens: Sequence[tuple[float, Callable[[World], object]]], *, for_s: float) -> World:
    """Let things happen, each so many seconds after the one before; returns what was looked at."""

    async def main(clock: VirtualClock) -> World:
        world, stop = World(clock), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.loop.run(stop, workers=2))
            for after_s, happening in happens:
                await clock.sleep(after_s)
                happening(world)
            await clock.sleep(for_s)
            stop.set()
        return world

    return virtual_time.run(main)


def reconciles(world: World) -> float:
    counted = value(world.metrics, "slurm_bridge_reconciles_total", queue="pods", outcome="ok")
    return 0 if math.isnan(counted) else counted


def runs(world: World) -> None:
    world.slurm.jobs = (build.job(),)


def test_a_pod_that_gets_its_node_and_starts_is_looked_at_once_two_seconds_later() -> None:
    begun = replace(build.bound(), start_time=None, containers=())
    world = looks(
        [
            (0.0, runs),
            (10.0, lambda world: world.see(build.placed())),
            (0.3, lambda world: world.see(begun)),
            (0.7, lambda world: world.see(build.bound())),
        ],
        for_s=5,
    )

    assert [12.0] == world.looks


def test_a_pod_that_ends_is_looked_at_at_once() -> None:
    world = looks(
        [
            (0.0, runs),
            (10.0, lambda world: world.see(build.bound())),
            (5.1, lambda world: world.see(build.succeeded())),
        ],
        for_s=0.5,
    )

    assert [12.0, 15.1] == world.looks


def test_the_end_of_its_placeholder_is_looked_at_with_the_next_reading() -> None:
    def ends(world: World) -> None:
        world.slurm.jobs = (build.ended(),)

    world = looks(
        [(0.0, runs), (10.0, lambda world: world.see(build.bound())), (5.1, ends)], for_s=0.95
    )

    assert 2 == len(world.looks)
    assert 15.1 < world.looks[1] <= 16.05


@pytest.mark.parametrize("workload", ["pod-1", "its-gang"])
def test_a_pod_that_there_is_news_of_is_tried_as_if_it_had_never_failed(workload: str) -> None:
    """What it waits for may be complete only a second after the news."""

    def fails(world: World) -> None:
        world.fails = True
        bound = build.bound()
        placed_with = {names.WORKLOAD_ANNOTATION: workload, names.GRANT_ANNOTATION: ""}
        world.see(replace(bound, annotations={**bound.annotations, **placed_with}))

    def hears(world: World) -> None:
        world.looks.clear()
        world.queue.add_afresh(alone_key(UID))

    world = looks([(0.0, runs), (1.0, fails), (120.0, hears)], for_s=5)

    assert len(world.looks) >= 4
    assert world.looks[1] - world.looks[0] <= 0.2


def test_what_slurm_refuses_is_tried_less_and_less_often_until_something_changes() -> None:
    """Each try has Slurm read again, and what a reading does not change would be refused again."""

    def refuses(world: World) -> None:
        world.refused = []
        world.see(build.succeeded())

    def ends(world: World) -> None:
        assert world.refused is not None
        assert 5 <= len(world.refused) <= 12, world.refused
        world.looks.clear()
        world.slurm.jobs = (build.ended(),)

    world = looks(
        [(0.0, runs), (10.0, lambda world: world.see(build.bound())), (5.0, refuses), (120, ends)],
        for_s=2,
    )

    assert world.looks, "the job's end is news"


def test_nobody_looks_at_jobs_of_pods_that_wait_for_another_program() -> None:
    world = looks([(0.0, lambda world: world.see(build.gated())), (1.0, runs)], for_s=60)

    assert 0 == reconciles(world)


def test_a_pod_that_is_gone_is_forgotten_without_a_look() -> None:
    def gone(world: World) -> None:
        world.slurm.jobs = ()
        world.pods.remove(UID)

    world = looks(
        [(0.0, runs), (10.0, lambda world: world.see(build.bound())), (4.0, gone)], for_s=3
    )

    assert 1 == reconciles(world)
    assert [UID] == world.side.forgotten
