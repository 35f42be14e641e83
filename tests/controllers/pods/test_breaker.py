"""The breaker of the controllers, over the product's own caches and readings. In virtual time."""

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from bridge.domain.lifecycle.breaker import Limits
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.kube.decode import PODS
from bridge.reconcile.placeholders import Placeholders
from bridge.settings.schema import Controllers
from bridge.slurm.snapshot import Snapshot
from controllers.pods.breaker import LISTEN_S, Breaker
from slurmruntime.kube.cache import Cache
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, WorkloadKey
from slurmruntime.values.oddities import UNHEARD
from tests import virtual_time
from tests.make import lives as build
from tests.make.processes import process
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=1, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
GANG = WorkloadKey("pod-group/team-a/ring")
SIZE = 24
DEFAULTS = Controllers()
LIMITS = Limits(always=DEFAULTS.eviction_always)


class Slurm:
    """Lists the same workloads' jobs in every reading."""

    slurms_time = None
    listed_s = 0.0
    listed_jobs = 0

    def __init__(
        self,
        clock: VirtualClock,
        by_key: Mapping[WorkloadKey, tuple[SlurmJob, ...]],
        *,
        unsure: frozenset[WorkloadKey] = frozenset(),
    ) -> None:
        self._clock = clock
        self._by_key = by_key
        self._unsure = unsure
        self._sequence = 0

    async def refresh(self, **_: object) -> Snapshot:
        self._sequence += 1
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=self._clock.monotonic(),
            jobs=MappingProxyType({job.id: job for jobs in self._by_key.values() for job in jobs}),
            by_key=MappingProxyType(dict(self._by_key)),
            is_repeated=False,
            is_whole=True,
            unreadable=MappingProxyType({}),
            unsure=self._unsure,
        )


def members(clock: VirtualClock) -> list[Pod]:
    """A gang that has run for five minutes."""
    bound = replace(build.bound(), start_time=clock.now() - timedelta(minutes=5))
    notes = {**bound.annotations, names.WORKLOAD_ANNOTATION: GANG}
    return [
        replace(bound, uid=PodUid(f"rank-{rank}"), name=f"rank-{rank}", annotations=notes)
        for rank in range(SIZE)
    ]


def placeholder(pods: Collection[Pod], job: SlurmJob) -> SlurmJob:
    """The gang's."""
    identity = replace(job.identity, key=GANG, pods=tuple(pod.uid for pod in pods))
    return replace(job, identity=identity)


def health(job: SlurmJob | None) -> str | None:
    """What the breaker says of the gang when its placeholder is this job; None is one that cannot be read."""

    async def main(clock: VirtualClock) -> str | None:
        gang = members(clock)
        slurm = (
            Slurm(clock, {GANG: (placeholder(gang, job),)})
            if job
            else Slurm(clock, {}, unsure=frozenset({GANG}))
        )
        metrics = Metrics("controllers")
        placeholders = Placeholders(
            slurm,  # type: ignore[arg-type]  # all that is asked of it
            pace=PACE,
            clock=clock,
            metrics=metrics,
        )
        pods = Cache(PODS)
        for pod in gang:
            pods.put(pod)
        breaker = Breaker(
            LIMITS,
            pods=pods,
            placeholders=placeholders,
            kube=None,  # type: ignore[arg-type]  # nobody listens for the operator's word
            namespace="slurm-bridge-system",
            process=process(clock, metrics, UNHEARD),
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=lambda _: None))
            await clock.sleep(3)
            stop.set()
        breaker.holds()
        return breaker.health()

    return virtual_time.run(main)


def test_a_gang_that_runs_has_its_placeholder() -> None:
    assert health(build.job(JobPhase.RUNNING)) is None


def test_a_gang_whose_node_failed_is_counted_pod_by_pod() -> None:
    words = health(build.ended(JobEnd.NODE_FAIL))

    assert words is not None
    assert words.startswith(f"{SIZE} of {SIZE} running pods have lost their placeholder")


def test_a_gang_whose_job_was_cancelled_has_not_lost_it() -> None:
    assert health(build.ended(JobEnd.CANCELLED)) is None


def test_a_gang_whose_job_cannot_be_read_has_not_lost_it() -> None:
    assert health(None) is None


class OwnNamespace:
    """The API server, as far as the operator's word is read there."""

    def __init__(self) -> None:
        self.word: str | None = None

    async def request(self, *_: object, **__: object) -> bytes:
        notes = {} if self.word is None else {names.EVICT_UNTIL_ANNOTATION: self.word}
        metadata = {
            "name": "slurm-bridge",
            "uid": "u",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": notes,
        }
        return json.dumps({"metadata": metadata}).encode()


def test_a_permission_that_is_withdrawn_is_heard() -> None:
    """Although nothing is held back while it is in force."""

    async def main(clock: VirtualClock) -> list[bool]:
        gang, namespace = members(clock), OwnNamespace()
        ended = placeholder(gang, build.ended(JobEnd.NODE_FAIL))
        metrics = Metrics("controllers")
        placeholders = Placeholders(
            Slurm(clock, {GANG: (ended,)}),  # type: ignore[arg-type]  # all that is asked of it
            pace=PACE,
            clock=clock,
            metrics=metrics,
        )
        pods = Cache(PODS)
        for pod in gang:
            pods.put(pod)
        breaker = Breaker(
            LIMITS,
            pods=pods,
            placeholders=placeholders,
            kube=namespace,  # type: ignore[arg-type]  # all that is asked of it
            namespace="slurm-bridge",
            process=process(clock, metrics, UNHEARD),
        )
        stop, held = asyncio.Event(), []
        async with asyncio.TaskGroup() as group:
            group.create_task(placeholders.run(stop, wake=lambda _: None))
            group.create_task(breaker.run(stop))
            for word in (None, (clock.now() + timedelta(hours=1)).isoformat(), None):
                namespace.word = word
                await clock.sleep(2 * LISTEN_S)
                held.append(breaker.holds())
            stop.set()
        return held

    assert [True, False, True] == virtual_time.run(main)
