"""Wire the controller of NodeSets for one process, and for one term of leadership."""

import asyncio
from typing import Any, Final

from bridge.reconcile.informers import retry_service, watch_service
from bridge.reconcile.program import Program
from slurmoperator.nodesets import names
from slurmoperator.nodesets.actuator import WorkerActuator
from slurmoperator.nodesets.gathering import KeySteps, WorkerTemplates
from slurmoperator.nodesets.loop import NodeSetLoop
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.owned.conf_trials import ConfTrials
from slurmoperator.nodesets.owned.owned_objects import OwnedObjects
from slurmoperator.nodesets.owned.revisions import NodeSetRevisions
from slurmoperator.nodesets.recent_writes import RecentWrites
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WORKER_PODS, WorkerPodObject
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.lifetime import Service

_WORKERS: Final = 4


class NodeSets:
    """NodeSets in one process, whether it leads or not."""

    def __init__(self, program: Program, templates: WorkerTemplates, key_step: KeySteps) -> None:
        self._program = program
        self._templates = templates
        self._key_step = key_step
        self.tried = ConfTrials()
        """Whether slurmctld accepts the nodes of workers; filled by the controller of daemons."""
        self._node_sets: Cache[WatchedNodeSet] = Cache(NODE_SETS, program.set_aside)
        self._pods: Cache[WorkerPodObject] = Cache(WORKER_PODS, program.set_aside)
        self._kube_nodes: Cache[KubeNodeFacts] = Cache(NODES, program.set_aside)
        self._watched: tuple[Cache[Any], ...] = (self._node_sets, self._pods, self._kube_nodes)

    @property
    def watched(self) -> Cache[WatchedNodeSet]:
        """All NodeSets, by uid; `parts` keeps them up to date."""
        return self._node_sets

    def parts(self) -> tuple[Service, ...]:
        """Return the services of every replica; its readiness depends on the watches."""
        program = self._program
        return (
            watch_service(program, "nodesets", self._node_sets),
            watch_service(program, "workers", self._pods, label_selector=names.WORKER_SELECTOR),
            watch_service(program, "nodes", self._kube_nodes),
            retry_service("set aside", self._watched),
        )

    async def control(self, stop: asyncio.Event) -> None:
        """Reconcile NodeSets while this process leads."""
        program = self._program
        for cache in self._watched:
            await cache.synced.wait()
        queue: WorkQueue[str] = WorkQueue(rng=program.rng)
        views = WorkerViews(
            program.slurm_of,
            clock=program.clock,
            wake=queue.add,
            set_aside=program.set_aside,
        )
        claims = WorkerClaims(program.kube)
        loop = NodeSetLoop(
            kube=program.kube,
            node_sets=self._node_sets,
            pods=self._pods,
            kube_nodes=self._kube_nodes,
            views=views,
            actuator=WorkerActuator(
                kube=program.kube,
                claims=claims,
                pods=self._pods,
                views=views,
                recent=RecentWrites(program.clock.monotonic),
            ),
            belongings=OwnedObjects(program.kube, program.clock.monotonic),
            claims=claims,
            revisions=NodeSetRevisions(program.kube, program.clock.monotonic),
            templates=self._templates,
            key_step=self._key_step,
            tried=self.tried,
            served=NamespaceScope(frozenset(program.settings.operator.namespaces)),
            queue=queue,
            clock=program.clock,
            metrics=program.metrics,
            set_aside=program.set_aside,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(views.run(stop))
            group.create_task(loop.run(stop, workers=_WORKERS))
