"""The stretches of a run on a whole cluster.

Kube-scheduler alone, and the same pods with the bridge.

Every pod asks for one CPU. Plain nodes equal Slurm's in number and size.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks import columns, meter, profiling
from benchmarks.load import Moment, Pods
from benchmarks.meter import Meter, Reading
from benchmarks.results import Phase, Shape, Spread
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient

PLAIN = "kube-scheduler alone"
BOUND = "through us"
ENDED = "ending at once"
LIFE = "whole life"
WAITING = "waiting"
FREED = "freed"

MANY_FREED = 200
"""The pod for which the freed stretch has a goal, however many wait."""
API_PODS = 100
"""Of each kind, however few the other stretches have: what the API server does for them is counted."""
_WARM_UP_PODS = 20
_NODE_CPUS = 8
_POLL_S = 0.5
_SETTLE_S = 2.0
"""What follows a stretch, such as status updates, is over by then."""


def options(shape: Shape) -> Options:
    """Return a sandbox in which all benchmark pods fit at once, on either kind of nodes."""
    at_once = max(shape.pods, API_PODS)
    return Options(
        nodes=shape.nodes,
        plain_nodes=shape.nodes,
        node_cpus=max(_NODE_CPUS, math.ceil(at_once / shape.nodes)),
        hurried=False,
        values=shape.values,
        together=columns.is_together(shape.values),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The setting of a run."""

    sandbox: Sandbox
    meter: Meter
    kube: KubeClient
    shape: Shape
    profile: Path | None = None
    """The folder for profiles of our services; None for no profiles."""

    @property
    def deadline_s(self) -> float:
        """Return the deadline for what all pods have to reach: ten times what it may take."""
        return 60 + 0.5 * (self.shape.pods + self.shape.nodes)

    def profiled(self, stretch: str) -> AbstractAsyncContextManager[None]:
        """Profile our services inside the block, if that is wanted."""
        if self.profile is None:
            return nullcontext()
        return profiling.profiled(self.sandbox, self.profile, stretch)

    async def read(self) -> Reading:
        """Read the counters now; the load's own clock runs on meanwhile."""
        return await asyncio.to_thread(self.meter.read)


async def nodes_registered(stage: Stage) -> None:
    """Wait until the controllers have registered every node: a thousand take them a while.

    Raises:
        SandboxError: they have not in time.
    """
    until_s = time.monotonic() + stage.deadline_s
    while (known := len(await _slurm_nodes(stage))) < stage.shape.nodes:
        if time.monotonic() > until_s:
            raise SandboxError(f"Slurm knows {known} of {stage.shape.nodes} nodes")
        await asyncio.sleep(_POLL_S)


async def warm_up(stage: Stage) -> None:
    """Let every part do its work once: connections, caches, lazily loaded code."""
    for namespace, is_bridged in (("warm-plain", False), ("warm-bridged", True)):
        async with Pods.watched(stage.kube, namespace, is_bridged=is_bridged) as pods:
            named = await pods.create("warm", _WARM_UP_PODS)
            await pods.reached(Moment.BOUND, named, stage.deadline_s)
            await pods.end(named)
            await pods.reached(Moment.RELEASED, named, stage.deadline_s)
    await asyncio.sleep(_SETTLE_S)


async def plain(stage: Stage) -> dict[str, Phase]:
    """Measure N pods in an ordinary namespace."""
    async with Pods.watched(stage.kube, "bench-plain", is_bridged=False) as pods:
        before = await stage.read()
        began = time.perf_counter()
        named = await pods.create("plain", stage.shape.pods)
        bound = await pods.reached(Moment.BOUND, named, stage.deadline_s)
        after = await stage.read()
        spread = pods.spread(Moment.SENT, Moment.BOUND, named)
    return {PLAIN: _phase(named, before, after, max(bound.values()) - began, spread)}


async def life(stage: Stage) -> tuple[dict[str, Phase], bytes]:
    """Measure N pods through the bridge, which then end all at once.

    Also return one of them as it was when running.
    """
    states = await _job_states(stage)
    async with Pods.watched(stage.kube, "bench-bridged", is_bridged=True) as pods:
        async with stage.profiled("life"):
            created = await stage.read()
            began = time.perf_counter()
            named = await pods.create("bridged", stage.shape.pods)
            bound = await pods.reached(Moment.BOUND, named, stage.deadline_s)
            all_bound = await stage.read()
            await asyncio.sleep(_SETTLE_S)
            running = await stage.read()
            sample = await pods.sample(named[0])
            await pods.end(named)
            released = await pods.reached(Moment.RELEASED, named, stage.deadline_s)
            ended = await stage.read()
        first_end, last_release = pods.first(Moment.ENDED, named), max(released.values())
        to_bound = pods.spread(Moment.SENT, Moment.BOUND, named)
        to_released = pods.spread(Moment.ENDED, Moment.RELEASED, named)
    _check_completed(len(named), await _job_states(stage), states)
    to_all_bound = _phase(named, created, all_bound, max(bound.values()) - began, to_bound)
    to_all_ended = _phase(named, running, ended, last_release - first_end, to_released)
    settling = meter.between(all_bound, running)
    whole = meter.together([to_all_bound.usage, settling, to_all_ended.usage])
    all_of_it = Phase(pods=len(named), wall_s=round(last_release - began, 3), usage=whole)
    return {BOUND: to_all_bound, ENDED: to_all_ended, LIFE: all_of_it}, sample


async def queue(stage: Stage) -> dict[str, Phase]:
    """Measure a full cluster: N pods wait, then everything that kept them waiting ends."""
    shape = stage.shape
    async with Pods.watched(stage.kube, "bench-queue", is_bridged=True) as pods:
        fillers = await pods.create("filler", shape.nodes, cpus=options(shape).node_cpus)
        await pods.reached(Moment.BOUND, fillers, stage.deadline_s)
        named = await pods.create("waiting", shape.pods)
        await pods.reached(Moment.TOLD, named, stage.deadline_s)
        await asyncio.sleep(_SETTLE_S)
        async with stage.profiled("waiting"):
            settled = await stage.read()
            await asyncio.sleep(shape.waiting_s)
            waited = await stage.read()
        await pods.end(fillers)
        bound = await pods.reached(Moment.BOUND, named, stage.deadline_s)
        freed = await stage.read()
        first_end = pods.first(Moment.ENDED, fillers)
        spread = pods.spread_since(first_end, Moment.BOUND, named)
    since_s = sorted(moment - first_end for moment in bound.values())
    return {
        WAITING: _phase(named, settled, waited, shape.waiting_s, None),
        FREED: msgspec.structs.replace(
            _phase(named, waited, freed, since_s[-1], spread),
            first_s=round(since_s[0], 3),
            first_200_s=round(since_s[:MANY_FREED][-1], 3),
        ),
    }


def _phase(
    named: list[str], before: Reading, after: Reading, wall_s: float, spread: Spread | None
) -> Phase:
    usage = meter.between(before, after)
    return Phase(pods=len(named), wall_s=round(wall_s, 3), usage=usage, spread=spread)


async def _slurm_nodes(stage: Stage) -> set[str]:
    listed = await asyncio.to_thread(
        stage.sandbox.run, "sinfo", "--noheader", "--Node", "--format=%N"
    )
    return set(listed.split())


async def _job_states(stage: Stage) -> Mapping[str, str]:
    """Return the state of every job Slurm remembers, by its id."""
    listed = await asyncio.to_thread(
        stage.sandbox.run, "squeue", "--noheader", "--states=all", "--format=%i %T"
    )
    return dict(line.split() for line in listed.splitlines())


def _check_completed(pods: int, now: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Check that the placeholders ended as expected.

    That they ended, the finalizer's removal shows.

    Raises:
        SandboxError: not every one is COMPLETED.
    """
    new = Counter(now[id_] for id_ in now.keys() - before.keys())
    if new != {"COMPLETED": pods}:
        raise SandboxError(f"{pods} pods ended well, but their placeholders are {dict(new)}")
