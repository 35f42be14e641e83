"""Builds the controller of SlurmClusters for one process and, each time it leads, its loop."""

import asyncio
from collections.abc import Mapping

from bridge.reconcile.informers import retry_service, watch_service
from bridge.reconcile.program import Program
from slurmoperator.clusters.loop import ClusterLoop
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTERS, WatchedCluster
from slurmoperator.daemons.part import WatchedPart
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.process.lifetime import Service


class SlurmClusters:
    """Watches SlurmClusters in one process, whether it leads or not."""

    def __init__(
        self,
        program: Program,
        parts: Mapping[str, Cache[WatchedPart]],
        node_sets: Cache[WatchedNodeSet],
    ) -> None:
        """Prepare the cache; the caller keeps those of the other kinds up to date."""
        self._program = program
        self._parts = parts
        self._node_sets = node_sets
        self._clusters: Cache[WatchedCluster] = Cache(SLURM_CLUSTERS, program.set_aside)

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica. Without the CRD of SlurmCluster, everything else still works."""
        watch = watch_service(
            self._program, "SlurmCluster objects", self._clusters, is_needed=False
        )
        return watch, retry_service("clusters set aside", (self._clusters,))

    async def control(self, stop: asyncio.Event) -> None:
        """Reconcile SlurmClusters while this process leads."""
        program = self._program
        parts = (cache.synced for cache in self._parts.values())
        for synced in (self._clusters.synced, *parts, self._node_sets.synced):
            if not await wait_for(synced, stop):
                return
        loop = ClusterLoop(
            kube=program.kube,
            clusters=self._clusters,
            parts=self._parts,
            node_sets=self._node_sets,
            served=NamespaceScope(frozenset(program.settings.operator.namespaces)),
            process=program.process,
        )
        await loop.run(stop)


async def wait_for(event: asyncio.Event, stop: asyncio.Event) -> bool:
    """Wait for an event; return False if `stop` is set first."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(event.wait()), group.create_task(stop.wait())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
    return event.is_set() and not stop.is_set()
