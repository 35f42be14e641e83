"""Builds the controller of the control plane for one process and, each time it leads, its loop."""

import asyncio
from functools import partial
from typing import Final

from bridge.reconcile.informers import retry_service, watch_service
from bridge.reconcile.program import Program
from slurmoperator.daemons.acting import KeySource
from slurmoperator.daemons.loop import ControlLoop
from slurmoperator.daemons.part import (
    PARTS,
    WATCHED_WORKLOADS,
    ControlPeers,
    PartCaches,
    WatchedPart,
)
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import MADE_BY_US
from slurmoperator.rendering.site import ControlSite, NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.process.lifetime import Service

_WORKERS: Final = 2


class ControlPlane:
    """Watches the control plane's objects in one process, whether it leads or not."""

    def __init__(
        self,
        program: Program,
        node_sets: Cache[WatchedNodeSet],
        site: ControlSite,
        *,
        keys: KeySource,
        served: NamespaceScope,
        tokens: TokenPolicy,
        tried: ConfTrials,
    ) -> None:
        """Prepare the caches; the caller keeps that of NodeSets up to date."""
        self._program = program
        self._node_sets = node_sets
        self._parts: dict[str, Cache[WatchedPart]] = {
            kind: Cache(watched, program.set_aside) for kind, watched in PARTS.items()
        }
        self._workloads = {
            kind: Cache(watched, program.set_aside) for kind, watched in WATCHED_WORKLOADS.items()
        }
        self._controllers = self._parts["Controller"].index(
            lambda controller: [controller.metadata.full_name]
        )
        self._new_loop = partial(
            ControlLoop,
            ControlPeers(kube=program.kube, slurms=program.slurm_of, tried=tried),
            PartCaches(parts=self._parts, workloads=self._workloads.values(), node_sets=node_sets),
            site,
            keys=keys,
            served=served,
            tokens=tokens,
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
        parts, workloads = self._parts, self._workloads
        return (
            *(watch_service(self._program, f"{kind} objects", parts[kind]) for kind in parts),
            *(
                watch_service(self._program, f"{kind} objects", cache, label_selector=MADE_BY_US)
                for kind, cache in workloads.items()
            ),
            retry_service("control plane set aside", (*parts.values(), *workloads.values())),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """Reconcile the objects while this process leads."""
        synced = [cache.synced for cache in self._parts.values()]
        synced += [cache.synced for cache in self._workloads.values()]
        for event in (*synced, self._node_sets.synced):
            await event.wait()
        await self._new_loop(process=self._program.process).run(stop, workers=_WORKERS)
