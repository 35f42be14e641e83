"""Wire the controller of NodeSets for one process, and for one term of leadership."""

import asyncio
from typing import Final

from bridge.reconcile.informers import retry_service, watch_service
from bridge.reconcile.program import Program
from slurmoperator.nodesets import names
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.gathering import NodeSetCaches
from slurmoperator.nodesets.loop import NodeSetLoop
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.nodesets.preparation import KeySteps, WorkerSource, WorkerTemplates
from slurmoperator.nodesets.worker_pods import WORKER_PODS
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.process.lifetime import Service

_WORKERS: Final = 4


class NodeSets:
    """NodeSets in one process, whether it leads or not."""

    def __init__(self, program: Program, templates: WorkerTemplates, key_step: KeySteps) -> None:
        self._program = program
        self.tried = ConfTrials()
        """Whether slurmctld accepts the nodes of workers; filled by the controller of daemons."""
        self._source = WorkerSource(templates=templates, key_step=key_step, tried=self.tried)
        self._caches = NodeSetCaches(
            node_sets=Cache(NODE_SETS, program.set_aside),
            pods=Cache(WORKER_PODS, program.set_aside),
            kube_nodes=Cache(NODES, program.set_aside),
        )

    @property
    def watched(self) -> Cache[WatchedNodeSet]:
        """All NodeSets, by uid; `parts` keeps them up to date."""
        return self._caches.node_sets

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica; its readiness depends on the watches."""
        program, caches = self._program, self._caches
        return (
            watch_service(program, "nodesets", caches.node_sets),
            watch_service(program, "workers", caches.pods, label_selector=names.WORKER_SELECTOR),
            watch_service(program, "nodes", caches.kube_nodes),
            retry_service("set aside", (caches.node_sets, caches.pods, caches.kube_nodes)),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """Reconcile NodeSets while this process leads."""
        program, caches = self._program, self._caches
        for cache in (caches.node_sets, caches.pods, caches.kube_nodes):
            await cache.synced.wait()
        loop = NodeSetLoop(
            program.kube,
            caches,
            slurms=program.slurm_of,
            source=self._source,
            served=NamespaceScope(frozenset(program.settings.operator.namespaces)),
            process=program.process,
        )
        await loop.run(stop, workers=_WORKERS)
