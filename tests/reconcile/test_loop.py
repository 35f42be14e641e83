"""When a pod is looked at: ends at once, what calls for nothing together, and nobody else's never. In virtual time."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from bridge.domain.ids import KubeNode, PodUid, SlurmNode, WorkloadKey, alone_key
from bridge.domain.lifecycle.decision import Actor, Deadlines, Decision, Facts
from bridge.domain.model.allocation import Seat
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.objects import KubeObject
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.view import Past, View
from bridge.domain.workloads import membership
from bridge.domain.workloads.membership import Membership
from bridge.kube.cache import Cache
from bridge.kube.decode import PODS
from bridge.leading.workqueue import WorkQueue
from bridge.process.metrics import Metrics
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm.discovery import Snapshot
from tests import virtual_time
from tests.make import lives as build
from tests.make.samples import value
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=1, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
UID = PodUid("pod-1")


class Endings:
    """The controllers' side, as far as it matters when something is looked at."""

    actor = Actor.CONTROLLERS

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def membership(self, pod: Pod) -> Membership:
        return membership.alone(pod)

    async def resolve(self, pod: Pod) -> Membership:
        return self.membership(pod)

    async def declared(self, member: Membership) -> KubeObject | None:
        return None

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        return True

    def past(self, pod: Pod) -> Past:
        return Past.HANDED_OVER

    def gather(
        self,
        pod: Pod,
        view: View,
        *,
        uid: WorkloadKey,
        now: datetime,
        since: datetime,
        seat: Seat | None = None,
        beside: Sequence[Pod] = (),
    ) -> Facts:
        return Facts(pod=pod, view=view, now=now, since=since, kube_node=build.KUBE_NODE)

    def kube_node(self, slurm_node: SlurmNode) -> KubeNode | None:
        return build.KUBE_NODE

    def forget(self, uid: WorkloadKey) -> None:
        pass

    def forget_pod(self, uid: PodUid) -> None:
        self.forgotten.append(uid)


class Slurm:
    """Lists whatever it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        self.jobs: tuple[SlurmJob, ...] = ()
        self._clock = clock
        self._sequence = 0

    async def refresh(self, **_: object) -> Snapshot:
        self._sequence += 1
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=self._clock.monotonic(),
            jobs=MappingProxyType({job.id: job for job in self.jobs}),
            by_uid=MappingProxyType({alone_key(UID): self.jobs} if self.jobs else {}),
            is_repeated=False,
            is_whole=True,
            unreadable=MappingProxyType({}),
        )


class World:
    """A leader's loop; what it decides is written down with the time, and not done."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.pods = Cache(PODS)
        self.slurm = Slurm(clock)
        self.side = Endings()
        self.looks: list[float] = []
        """When it was decided for a pod."""
        self.metrics = Metrics("controllers")
        self._versions = 0
        placeholders = Placeholders(
            self.slurm,  # type: ignore[arg-type]  # all that is asked of it
            pace=PACE,
            clock=clock,
            metrics=Metrics("controllers"),
        )
        self.loop = PodLoop(
            self.side,
            pods=self.pods,
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            placeholders=placeholders,
            actuator=self,  # type: ignore[arg-type]  # all that is asked of it
            policy=Deadlines(),
            clock=clock,
            metrics=self.metrics,
        )

    async def carry_out(self, pod: Pod, decision: Decision, *, workload: WorkloadKey) -> None:
        self.looks.append(self.clock.monotonic())

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
