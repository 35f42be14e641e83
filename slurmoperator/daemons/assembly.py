"""Builds the controller of the control plane for one process and, each time it leads, its loop."""

import asyncio
from typing import Final

from bridge.reconcile.informers import retry_service, watch_service
from bridge.reconcile.program import Program
from slurmoperator.daemons.deciding import BodyMakers
from slurmoperator.daemons.loop import ControlLoop
from slurmoperator.daemons.part import PARTS, WatchedPart
from slurmoperator.daemons.workload import WATCHED_WORKLOADS
from slurmoperator.keys.host_keys import HostKeys
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.owned.conf_trials import ConfTrials
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import MADE_BY_US
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.lifetime import Service

_WORKERS: Final = 2


class ControlPlane:
    """Watches the control plane's objects in one process, whether it leads or not."""

    def __init__(
        self,
        program: Program,
        node_sets: Cache[WatchedNodeSet],
        make: BodyMakers,
        *,
        random_bytes: RandomBytes,
        make_host_keys: HostKeys,
        tokens: TokenPolicy,
        served: NamespaceScope,
        tried: ConfTrials,
    ) -> None:
        """Prepare the caches.

        Args:
            program: the process.
            node_sets: all NodeSets; the caller keeps the cache up to date.
            make: renders bodies.
            random_bytes: the source of keys.
            make_host_keys: generates the host keys of login pods.
            tokens: which namespaces may have tokens of which Slurm users.
            served: the namespaces whose objects are reconciled.
            tried: takes slurmctld's verdicts on the nodes that workers will register.
        """
        self._program = program
        self._node_sets = node_sets
        self._make = make
        self._random_bytes = random_bytes
        self._make_host_keys = make_host_keys
        self._tokens = tokens
        self._served = served
        self._tried = tried
        self._parts: dict[str, Cache[WatchedPart]] = {
            kind: Cache(watched, program.set_aside) for kind, watched in PARTS.items()
        }
        self._workloads = {
            kind: Cache(watched, program.set_aside) for kind, watched in WATCHED_WORKLOADS.items()
        }
        self._controllers = self._parts["Controller"].index(
            lambda controller: [controller.metadata.full_name]
        )

    @property
    def watched(self) -> dict[str, Cache[WatchedPart]]:
        """All objects of the control plane, by kind and uid. The services of `parts` keep them up to date."""
        return self._parts

    def controller(self, namespace: str, name: str) -> ControllerObject | None:
        """Return the Controller of this name; None if it does not exist or cannot be read."""
        watched = next(iter(self._controllers.get(f"{namespace}/{name}")), None)
        part = watched.parsed if watched is not None else None
        return part if isinstance(part, ControllerObject) else None

    def key_step(self, namespace: str, name: str) -> int:
        """Return the version of their key that new daemons of a Controller get; 0 if its status has none."""
        controller = self.controller(namespace, name)
        return controller.status.slurm_key_step if controller is not None else 0

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica, leading or not. Its readiness depends on the watches."""
        return (
            *(
                watch_service(self._program, f"{kind} objects", cache)
                for kind, cache in self._parts.items()
            ),
            *(
                watch_service(self._program, f"{kind} objects", cache, label_selector=MADE_BY_US)
                for kind, cache in self._workloads.items()
            ),
            retry_service(
                "control plane set aside", (*self._parts.values(), *self._workloads.values())
            ),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """Reconcile the objects while this process leads."""
        program = self._program
        for part in self._parts.values():
            await part.synced.wait()
        for workload in self._workloads.values():
            await workload.synced.wait()
        await self._node_sets.synced.wait()
        loop = ControlLoop(
            kube=program.kube,
            parts=self._parts,
            workloads=self._workloads.values(),
            node_sets=self._node_sets,
            make=self._make,
            queue=WorkQueue(rng=program.rng),
            clock=program.clock,
            metrics=program.metrics,
            set_aside=program.set_aside,
            random_bytes=self._random_bytes,
            make_host_keys=self._make_host_keys,
            tokens=self._tokens,
            served=self._served,
            slurms=program.slurm_of,
            tried=self._tried,
        )
        await loop.run(stop, workers=_WORKERS)
