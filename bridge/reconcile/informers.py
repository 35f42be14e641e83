"""The Kubernetes objects a program keeps in memory: our pods, all nodes, all other bound pods.

No pod is in both pod caches, so each event is sent and decoded once.
"""

import asyncio
from collections.abc import Collection
from typing import Any

from bridge.domain.model.claims.values import DeviceClass, ResourceClaim, ResourceSlice
from bridge.domain.model.pods import BoundPod, Pod
from bridge.kube.claims.resource_claims import CLAIMS, CLASSES
from bridge.kube.claims.slices import SLICES
from bridge.kube.decode import BOUND_PODS, PODS
from bridge.reconcile.program import Program
from slurmruntime.kube.cache import Cache, Share
from slurmruntime.kube.node_objects import NODES
from slurmruntime.kube.watch import Reflector
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process import clock, liveness
from slurmruntime.process.lifetime import Service
from slurmruntime.values import names
from slurmruntime.values.oddities import Oddities

_TRY_AGAIN_S = 60.0


class Mirror:
    """The informers: the caches, and the reflectors that fill them."""

    def __init__(self, set_aside: Oddities) -> None:
        self._set_aside = set_aside
        self.pods: Cache[Pod] = Cache(PODS, set_aside)
        """Pods that ask for our scheduler, or for the extender to bind them."""
        self._of_scheduler, self._of_binder = self.pods.share(), self.pods.share()
        self.kube_nodes: Cache[KubeNodeFacts] = Cache(NODES, set_aside)
        self.bound: Cache[BoundPod] = Cache(BOUND_PODS, set_aside)
        """Every other pod in the cluster that has a node."""
        self.slices: Cache[ResourceSlice] = Cache(SLICES, set_aside)
        """The devices of nodes; empty without device profiles."""
        self.claims: Cache[ResourceClaim] = Cache(CLAIMS, set_aside)
        """All resource claims, for the program that gives devices; else empty."""
        self.classes: Cache[DeviceClass] = Cache(CLASSES, set_aside)
        self._watched: list[Cache[Any]] = [self.pods, self.kube_nodes, self.bound]

    def parts(self, program: Program, *, gives_devices: bool = False) -> tuple[Service, ...]:
        """Return the services that keep the caches up to date.

        The program's readiness depends on them.

        gives_devices: keep claims and classes, too, if there are device profiles.
        """
        name = program.settings.scheduler_name
        devices: list[Service] = []
        if program.settings.controllers.device_profiles:
            devices.append(watch_service(program, "resource slices", self.slices))
            self._watched.append(self.slices)
            if gives_devices:
                devices.append(watch_service(program, "resource claims", self.claims))
                devices.append(watch_service(program, "device classes", self.classes))
                self._watched += [self.claims, self.classes]
        return (
            watch_service(
                program, "pods", self._of_scheduler, field_selector=f"spec.schedulerName={name}"
            ),
            watch_service(
                program,
                "pods of the binder",  # always: some may be left when it is switched off
                self._of_binder,
                field_selector=f"spec.schedulerName={names.binder(name)}",
            ),
            watch_service(program, "nodes", self.kube_nodes),
            watch_service(
                program,
                "other pods",
                self.bound,
                field_selector=f"spec.nodeName!=,spec.schedulerName!={name},"
                f"spec.schedulerName!={names.binder(name)}",
            ),
            *devices,
            retry_service("set aside", self._watched),
        )

    async def synced(self) -> None:
        """Wait until every cache holds a full list, so that absence is meaningful."""
        for cache in self._watched:
            await cache.synced.wait()


def watch_service(
    program: Program,
    name: str,
    cache: Cache[Any] | Share[Any],
    *,
    field_selector: str = "",
    label_selector: str = "",
    is_needed: bool = True,
) -> Service:
    """Return the service that keeps a cache up to date; the program's readiness shows its state.

    Args:
        name: of the watch, in readiness, log and liveness.
        is_needed: the program is not ready without it.
    """
    reflector = Reflector(
        program.kube,
        cache,
        field_selector=field_selector,
        label_selector=label_selector,
        set_aside=program.set_aside,
        jitter=program.rng.random,
        on_turn=liveness.turned,
    )
    program.health.register(name, reflector.check, is_needed=is_needed)

    async def run(stop: asyncio.Event) -> None:
        with liveness.loop(f"watch of {name}"):
            await reflector.run(stop)

    return Service(name=name, run=run)


def retry_service(name: str, caches: Collection[Cache[Any]]) -> Service:
    """Return the service that repeats, every minute, the notifications that subscribers raised an exception on."""

    async def run(stop: asyncio.Event) -> None:
        while not stop.is_set():
            await clock.pause(_TRY_AGAIN_S, stop)
            for cache in caches:
                cache.try_again()

    return Service(name=name, run=run)
