"""The Kubernetes objects a program keeps in memory.

Our pods, all nodes, and every other pod that has a node.

No pod is in both pod caches, so each event is sent and decoded once.
"""

import asyncio
from typing import Any, TypeVar

from bridge.domain.model.claims.values import ResourceClaim, ResourceSlice
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.domain.model.pods import BoundPod, Pod
from bridge.domain.oddities import Oddities
from bridge.kube.cache import Cache
from bridge.kube.claims.resource_claims import CLAIMS
from bridge.kube.claims.slices import SLICES
from bridge.kube.decode import BOUND_PODS, NODES, PODS
from bridge.kube.watch import Reflector
from bridge.process import clock, liveness
from bridge.process.lifetime import Service
from bridge.reconcile.program import Program

T = TypeVar("T")

_TRY_AGAIN_S = 60.0


class Mirror:
    """The informers: the caches, and the reflectors that fill them."""

    def __init__(self, set_aside: Oddities) -> None:
        self._set_aside = set_aside
        self.pods: Cache[Pod] = Cache(PODS, set_aside)
        """Pods that ask for our scheduler."""
        self.kube_nodes: Cache[KubeNodeFacts] = Cache(NODES, set_aside)
        self.bound: Cache[BoundPod] = Cache(BOUND_PODS, set_aside)
        """Every other pod in the cluster that has a node."""
        self.slices: Cache[ResourceSlice] = Cache(SLICES, set_aside)
        """The devices of nodes; empty without device profiles."""
        self.claims: Cache[ResourceClaim] = Cache(CLAIMS, set_aside)
        """All resource claims, for the program that gives devices; else empty."""
        self._watched: list[Cache[Any]] = [self.pods, self.kube_nodes, self.bound]

    def parts(self, program: Program, *, gives_devices: bool = False) -> tuple[Service, ...]:
        """Return the services that keep the caches up to date.

        The program's readiness depends on them.

        gives_devices: keep claims, too, if there are device profiles.
        """
        name = program.settings.scheduler_name
        devices: list[Service] = []
        if program.settings.controllers.device_profiles:
            devices.append(self._part(program, "resource slices", self.slices))
            self._watched.append(self.slices)
            if gives_devices:
                devices.append(self._part(program, "resource claims", self.claims))
                self._watched.append(self.claims)
        return (
            self._part(program, "pods", self.pods, f"spec.schedulerName={name}"),
            self._part(program, "nodes", self.kube_nodes),
            self._part(
                program, "other pods", self.bound, f"spec.nodeName!=,spec.schedulerName!={name}"
            ),
            *devices,
            Service(name="set aside", run=self._try_again),
        )

    async def synced(self) -> None:
        """Wait until every cache holds a full list, so that absence is meaningful."""
        for cache in self._watched:
            await cache.synced.wait()

    async def _try_again(self, stop: asyncio.Event) -> None:
        """Retry periodically the notifications that subscribers raised an exception on."""
        while not stop.is_set():
            await clock.pause(_TRY_AGAIN_S, stop)
            for cache in self._watched:
                cache.try_again()

    def _part(
        self, program: Program, name: str, cache: Cache[T], field_selector: str = ""
    ) -> Service:
        reflector = Reflector(
            program.kube,
            cache,
            field_selector=field_selector,
            set_aside=self._set_aside,
            jitter=program.rng.random,
            on_turn=liveness.turned,
        )
        program.health.register(name, reflector.check)

        async def run(stop: asyncio.Event) -> None:
            with liveness.loop(f"watch of {name}"):
                await reflector.run(stop)

        return Service(name=name, run=run)
