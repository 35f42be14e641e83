"""The node controller: labelled Kubernetes nodes are external nodes of Slurm, of the size that is left for it.

Keyed by Slurm's name of the node, so that one that is gone from Kubernetes has a key too. Level-triggered, one step at a
look (`bridge.domain.registration`); a change of a node or of what its DaemonSets take asks for a look, and so does time.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

import structlog

from bridge.domain import demand, nodes, registration
from bridge.domain.ids import KubeNode, SlurmNode
from bridge.domain.nodes import KubeNodeFacts, SlurmNodeFacts
from bridge.domain.pods import BoundPod
from bridge.domain.registration import (
    Create,
    Delete,
    Drain,
    NodeAction,
    NodeDecision,
    RemoveTaint,
    SetAddress,
    SetFeatures,
    SetTaint,
    Undrain,
)
from bridge.kube import patches, writes
from bridge.kube.cache import Cache
from bridge.kube.client import KubeClient
from bridge.runtime import worker
from bridge.runtime.clock import Clock
from bridge.runtime.metrics import Metrics
from bridge.runtime.workqueue import WorkQueue
from bridge.slurm import nodes as slurm_nodes
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import NotFound, SlurmError
from controllers.holdings import Holdings
from controllers.kube_nodes import KubeNodes

_log = structlog.get_logger(__name__)

_WORKERS = 4
_AGAIN = timedelta(seconds=2)
"""After an action, or while its jobs finish: what follows is decided at the next look."""
_ALL_AGAIN_S = 30.0
"""Slurm tells nobody of a change to a node."""


class NodeController:
    """One leadership's work on nodes."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        kube_nodes: Cache[KubeNodeFacts],
        bound: Cache[BoundPod],
        queue: WorkQueue[SlurmNode],
        settings: registration.Settings,
        holdings: Holdings,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """bound: every pod of others that has a node; a DaemonSet's is never ours."""
        self._kube = kube
        self._slurm = slurm
        self._cache = kube_nodes
        self._kube_nodes = KubeNodes(kube_nodes)
        self._bound = bound
        self._daemons = bound.index(lambda pod: [pod.kube_node] if pod.is_of_the_node else [])
        self._queue = queue
        self._settings = settings
        self._holdings = holdings
        self._clock = clock
        self._metrics = metrics
        self._said: dict[SlurmNode, str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Keep nodes in step until told to stop; nothing is concluded before both caches are whole."""
        await self._cache.synced.wait()
        await self._bound.synced.wait()
        self._cache.subscribe(self._node_changed)
        self._bound.subscribe(self._pod_changed)
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look_at_all())
            await worker.run(
                self._queue,
                self.reconcile,
                name="nodes",
                count=_WORKERS,
                stop=stop,
                metrics=self._metrics,
            )
            looking.cancel()

    def look_at(self, kube_node: KubeNode) -> None:
        """Ask for a look at one node."""
        if node := self._cache.get(kube_node):
            self._queue.add(nodes.slurm_name(node))

    async def reconcile(self, name: SlurmNode) -> timedelta | None:
        """Look at one node of both worlds, and do the next step.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        structlog.contextvars.bind_contextvars(slurm_node=name)
        kube_node = self._kube_nodes.facts(name)
        slurm_node = await self._read(name)
        daemons = self._daemons.get(kube_node.name) if kube_node else []
        decision = registration.decide(
            kube_node,
            demand.total(pod.demand for pod in daemons if not pod.is_terminal),
            slurm_node,
            self._settings,
            hold=self._holdings.hold(kube_node, slurm_node),
        )
        if kube_node and registration.is_wanted(kube_node):
            self._say(name, decision)
        else:
            self._said.pop(name, None)
        for action in decision.actions:
            await self._act(kube_node, action)
            _log.info("node.acted", action=type(action).__name__, reason=decision.reason)
        return None if decision.is_settled and not decision.actions else _AGAIN

    def _say(self, name: SlurmNode, decision: NodeDecision) -> None:
        """Why nothing is done for a wanted node, once: what keeps it out of Slurm is for somebody to mend."""
        if decision.actions or self._said.get(name) == decision.reason:
            return
        self._said[name] = decision.reason
        _log.info("node.left", reason=decision.reason)

    async def _read(self, name: SlurmNode) -> SlurmNodeFacts | None:
        try:
            return await slurm_nodes.node(self._slurm, name)
        except NotFound:
            return None

    async def _act(self, kube_node: KubeNodeFacts | None, action: NodeAction) -> None:
        match action:
            case Create(spec=spec):
                await slurm_nodes.create(self._slurm, spec)
            case Delete(slurm_node=name):
                await slurm_nodes.delete(self._slurm, name)
            case Drain(slurm_node=name, reason=reason):
                await slurm_nodes.drain(self._slurm, name, reason)
            case Undrain(slurm_node=name):
                await slurm_nodes.undrain(self._slurm, name)
            case SetFeatures(slurm_node=name, features=features):
                await slurm_nodes.set_features(self._slurm, name, features)
            case SetAddress(slurm_node=name, address=address):
                await slurm_nodes.set_address(self._slurm, name, address)
            case SetTaint() | RemoveTaint():
                await self._taint(kube_node, action)
            case unreachable:
                assert_never(unreachable)

    async def _taint(self, kube_node: KubeNodeFacts | None, action: SetTaint | RemoveTaint) -> None:
        if kube_node is None:
            return  # it went while we looked
        match action:
            case SetTaint(taint=taint):
                patch = patches.taint(kube_node, taint)
            case RemoveTaint(key=key):
                patch = patches.untaint(kube_node, key)
            case unreachable:
                assert_never(unreachable)
        await writes.patch_node(self._kube, kube_node, patch)

    async def _look_at_all(self) -> None:
        """Queue every node of either world, again and again."""
        mark = nodes.cluster_feature(self._settings.cluster)
        while True:
            try:
                listed = await slurm_nodes.listing(self._slurm)
            except SlurmError as error:
                _log.warning("nodes.unread", error=str(error))
            else:
                for slurm_node in listed:
                    if mark in slurm_node.features:
                        self._queue.add(slurm_node.name)
            for kube_node in self._cache.values():
                if registration.is_wanted(kube_node):
                    self._queue.add(nodes.slurm_name(kube_node))
            await self._clock.sleep(_ALL_AGAIN_S)

    def _node_changed(self, old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> None:
        if old and new and replace(old, resource_version=new.resource_version) == new:
            return  # the kubelet's heartbeat
        for node in (old, new):
            if node is not None:
                self._queue.add(nodes.slurm_name(node))

    def _pod_changed(self, old: BoundPod | None, new: BoundPod | None) -> None:
        pod = new or old
        if pod is not None and pod.is_of_the_node:
            self.look_at(pod.kube_node)
