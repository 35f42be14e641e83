"""What a program keeps of Kubernetes in memory: our pods, all nodes, and every other pod that has a node.

No pod is in both caches: each event of a pod is sent, and read, once.
"""

import asyncio
from typing import TypeVar

from bridge.domain.nodes import KubeNodeFacts
from bridge.domain.pods import BoundPod, Pod
from bridge.kube.cache import Cache
from bridge.kube.decode import BOUND_PODS, NODES, PODS
from bridge.kube.watch import Reflector
from bridge.runtime import liveness
from bridge.runtime.lifetime import Part
from bridge.runtime.program import Program

T = TypeVar("T")


class Mirror:
    """The caches, and the reflectors that keep them."""

    def __init__(self) -> None:
        self.pods: Cache[Pod] = Cache(PODS)
        """Those that ask for our scheduler."""
        self.kube_nodes: Cache[KubeNodeFacts] = Cache(NODES)
        self.bound: Cache[BoundPod] = Cache(BOUND_PODS)
        """Every other pod of the cluster that has a node."""

    def parts(self, program: Program) -> tuple[Part, ...]:
        """Keep the caches up to date; the program's readiness depends on it."""
        name = program.settings.scheduler_name
        return (
            _part(program, "pods", self.pods, f"spec.schedulerName={name}"),
            _part(program, "nodes", self.kube_nodes),
            _part(program, "other pods", self.bound, f"spec.nodeName!=,spec.schedulerName!={name}"),
        )

    async def synced(self) -> None:
        """Wait until absence means something."""
        for cache in (self.pods, self.kube_nodes, self.bound):
            await cache.synced.wait()


def _part(program: Program, name: str, cache: Cache[T], field_selector: str = "") -> Part:
    reflector = Reflector(
        program.kube,
        cache,
        field_selector=field_selector,
        jitter=program.rng.random,
        on_turn=liveness.turned,
    )
    program.health.register(name, reflector.check)

    async def run(stop: asyncio.Event) -> None:
        with liveness.loop(f"watch of {name}"):
            await reflector.run(stop)

    return Part(name=name, run=run)
