"""Put the controller of the control plane together for one process, and for one term of leadership."""

import asyncio
from typing import Final

from bridge.kube.cache import Cache
from bridge.kube.watch import Reflector
from bridge.leading.workqueue import WorkQueue
from bridge.process import clock, liveness
from bridge.process.lifetime import Service
from bridge.reconcile.program import Program
from cluster.controlplane.deciding import BodyMakers
from cluster.controlplane.loop import ControlLoop
from cluster.controlplane.part import PARTS, WatchedPart
from cluster.keys.secrets import RandomBytes
from cluster.nodesets.nodeset import WatchedNodeSet
from cluster.objects.controller import ControllerObject

_WORKERS: Final = 2
_TRY_AGAIN_S: Final = 60.0


class ControlPlane:
    """The control plane's objects in one process, whether it leads or not."""

    def __init__(
        self,
        program: Program,
        node_sets: Cache[WatchedNodeSet],
        make: BodyMakers,
        *,
        random_bytes: RandomBytes,
    ) -> None:
        """Prepare the caches.

        Args:
            program: the process.
            node_sets: a cache that somebody else keeps up to date.
            make: makes bodies.
            random_bytes: the source of keys.
        """
        self._program = program
        self._node_sets = node_sets
        self._make = make
        self._random_bytes = random_bytes
        self._parts: dict[str, Cache[WatchedPart]] = {
            kind: Cache(watched, program.set_aside) for kind, watched in PARTS.items()
        }

        self._controllers = self._parts["Controller"].index(lambda each: [each.metadata.full_name])

    def controller(self, namespace: str, name: str) -> ControllerObject | None:
        """Return the Controller of this name; None if there is none, or it cannot be read."""
        found = next(iter(self._controllers.get(f"{namespace}/{name}")), None)
        part = found.part if found is not None else None
        return part if isinstance(part, ControllerObject) else None

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica; its readiness depends on the watches."""
        return (
            *(self._watch(kind, cache) for kind, cache in self._parts.items()),
            Service(name="control plane set aside", run=self._try_again),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """See to the objects while this process leads."""
        program = self._program
        for cache in self._parts.values():
            await cache.synced.wait()
        await self._node_sets.synced.wait()
        loop = ControlLoop(
            kube=program.kube,
            parts=self._parts,
            node_sets=self._node_sets,
            make=self._make,
            queue=WorkQueue(rng=program.rng),
            clock=program.clock,
            metrics=program.metrics,
            set_aside=program.set_aside,
            random_bytes=self._random_bytes,
        )
        await loop.run(stop, workers=_WORKERS)

    def _watch(self, kind: str, cache: Cache[WatchedPart]) -> Service:
        reflector = Reflector(
            self._program.kube,
            cache,
            set_aside=self._program.set_aside,
            jitter=self._program.rng.random,
            on_turn=liveness.turned,
        )
        self._program.health.register(f"{kind} objects", reflector.check)

        async def run(stop: asyncio.Event) -> None:
            with liveness.loop(f"watch of {kind} objects"):
                await reflector.run(stop)

        return Service(name=f"{kind} objects", run=run)

    async def _try_again(self, stop: asyncio.Event) -> None:
        """Retry periodically the notifications that subscribers raised an exception on."""
        while not stop.is_set():
            await clock.pause(_TRY_AGAIN_S, stop)
            for cache in self._parts.values():
                cache.try_again()
