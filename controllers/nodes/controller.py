"""The node controller: keeps nodes in sync in both directions.

Keys are Slurm node names, so a node that is gone from Kubernetes still has a key. The controller is
level-triggered and takes one step per reconcile (`bridge.domain.nodes.registration`). A node is
reconciled when it changes in either system, when its DaemonSets' requests change, or when it loses
pods; if nothing changes, the only work is reading Slurm's list.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import structlog
from typing_extensions import override

from bridge.domain.lifecycle import outcome
from bridge.domain.model import others
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.pods import BoundPod, Pod
from bridge.domain.nodes import registration
from bridge.domain.nodes.decision import NodeFacts, NodePlan, NodeRefusal, NodeSettings
from bridge.domain.observation import lingering
from bridge.domain.observation.node_book import Unknown
from bridge.reconcile.informers import Mirror
from bridge.reconcile.nodes import KubeNodes, bound_to, taken_by
from bridge.reconcile.placeholders import Placeholders
from controllers.nodes.actuator import NodeActuator, NodePeers
from controllers.nodes.gathering import Holdings, NodeGatherer, Slices
from controllers.nodes.slurm import SlurmNodes
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process import liveness
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
from slurmruntime.values.oddities import About

_log = structlog.get_logger(__name__)

_WORKERS = 6
"""Registering mostly waits for two servers; the other connections to slurmrestd stay free for
placing pods.
"""
_REFUSED_AGAIN = timedelta(seconds=60)
"""Retry delay after Slurm refused to create a node: someone has to fix Slurm's configuration."""


class NodeController(Keys[SlurmNode]):
    """Reconciles nodes during one term of leadership."""

    kind = "slurm_node"

    def __init__(
        self,
        peers: NodePeers,
        mirror: Mirror,
        slices: Slices,
        *,
        placeholders: Placeholders,
        holdings: Holdings,
        settings: NodeSettings,
        interval_s: float,
        process: Process,
    ) -> None:
        """interval_s: the interval between lists of Slurm's nodes."""
        self._cache = mirror.kube_nodes
        self._kube_nodes = KubeNodes(mirror.kube_nodes)
        self._bound = mirror.bound
        self._slices = slices
        self._pods = mirror.pods
        self._others_on = mirror.bound.index(bound_to)
        self._settings = settings
        self._metrics = process.metrics
        self._controller = Controller(
            "nodes",
            self.reconcile,
            [
                Watch(mirror.kube_nodes, _changed),
                Watch(mirror.pods, self._of_pod),
                Watch(mirror.bound, self._of_other_pod),
            ],
            process=process,
            keys=self,
        )
        self._queue = self._controller.queue
        self._slurm_nodes = SlurmNodes(
            peers.slurm,
            cluster=settings.publishing.cluster,
            interval_s=interval_s,
            clock=process.clock,
            wake=self._queue.remind,
            on_read=self._on_read,
        )
        self._actuator = NodeActuator(
            peers, mirror.kube_nodes, self._slurm_nodes, clock=process.clock
        )
        self.book = self._slurm_nodes.book
        """Slurm's nodes, as last read."""
        self._gatherer = NodeGatherer(
            mirror,
            slices,
            placeholders=placeholders,
            holdings=holdings,
            slurm=peers.slurm,
            book=self.book,
            clock=process.clock,
        )
        self._clock = process.clock
        self._refusals: dict[SlurmNode, tuple[NodeRefusal, float]] = {}
        self._logged: dict[SlurmNode, str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Keep nodes in sync until `stop` is set; decide nothing before the caches are complete."""
        await self._cache.synced.wait()
        await self._pods.synced.wait()
        await self._bound.synced.wait()
        self._slices.on_change(self.enqueue)
        async with asyncio.TaskGroup() as group:
            reading = liveness.run("list of nodes", self._slurm_nodes.run(), stop)
            group.create_task(reading)
            await self._controller.run(stop, workers=_WORKERS)

    def enqueue(self, kube_node: KubeNode) -> None:
        """Queue one node."""
        if node := self._cache.get(kube_node):
            self._queue.add(nodes.slurm_name(node))

    @override
    def about(self, name: SlurmNode, /) -> About | None:
        node = self._kube_nodes.facts(name)
        return node.about if node else None

    async def reconcile(self, name: SlurmNode) -> timedelta | None:
        """Compare one node in both systems and take the next step.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        structlog.contextvars.bind_contextvars(slurm_node=name)
        listed = self.book.get(name)
        if isinstance(listed, Unknown):
            self._queue.undecided(name)
            return None  # the next list wakes it
        return await self._look(name, listed)

    async def _look(
        self, name: SlurmNode, slurm_node: SlurmNodeFacts | None, *, is_confirmed: bool = False
    ) -> timedelta | None:
        """Gather, plan, act; look again at what the plan wants to be read first."""
        facts = await self._gatherer.gather(
            name,
            slurm_node,
            is_confirmed=is_confirmed,
            refusal=self._refusal(name),
            retry=self._refused_for(name),
        )
        plan = registration.plan(facts, self._settings)
        if plan.confirm:
            records = [await self._slurm_nodes.read(other) for other in plan.confirm]
            return await self._look(name, records[-1], is_confirmed=True)
        self._log_once(facts, plan)
        result = await self._actuator.carry_out(plan)
        if result.refusal is not None:
            self._refusals[name] = (result.refusal, self._clock.monotonic())
        return result.again

    def _refusal(self, name: SlurmNode) -> NodeRefusal | None:
        """Return the last refusal; None once it is worth trying again."""
        left = self._refused_for(name)
        if left is not None and left <= timedelta():
            del self._refusals[name]
        return self._refusals[name][0] if name in self._refusals else None

    def _refused_for(self, name: SlurmNode) -> timedelta | None:
        """Return how long a retry is pointless; None if nothing was refused."""
        if name not in self._refusals:
            return None
        since_s = self._clock.monotonic() - self._refusals[name][1]
        return _REFUSED_AGAIN - timedelta(seconds=since_s)

    def _log_once(self, facts: NodeFacts, plan: NodePlan) -> None:
        """Log once why nothing is done for a node; someone has to fix what keeps it out of Slurm."""
        if plan.actions or self._logged.get(facts.name) == plan.reason:
            return
        if facts.kube_node is None:
            self._logged.pop(facts.name, None)
            return
        self._logged[facts.name] = plan.reason
        _log.debug("node.left", reason=plan.reason)

    def _of_pod(self, old: Pod | None, new: Pod | None) -> Iterator[SlurmNode]:
        """Yield the pod's node if it is not ready or has crashed, or if its turn may begin or end.

        Our pods matter only there.
        """
        pod = new or old
        node = self._cache.get(pod.kube_node) if pod and pod.kube_node else None
        if pod and node and (not node.is_ready or outcome.lost_with_node(pod)):
            yield nodes.slurm_name(node)
        if self._settings.policy.hybrid is HybridRule.ALTERNATE and _runs(old) is not _runs(new):
            taken = (
                self._cache.get(name) for other in (old, new) if other for name in taken_by(other)
            )
            yield from {nodes.slurm_name(node) for node in taken if node and nodes.is_hybrid(node)}

    def _of_other_pod(self, old: BoundPod | None, new: BoundPod | None) -> Iterator[SlurmNode]:
        pod = new or old
        node = self._cache.get(pod.kube_node) if pod and pod.is_of_the_node else None
        if node:
            yield nodes.slurm_name(node)

    def _on_read(self) -> None:
        conditions = (
            node.condition(names.SLURM_STATE_CONDITION)
            for node in self._cache.values()
            if nodes.is_wanted(node)
        )
        states = (condition.reason if condition else "NotRegistered" for condition in conditions)
        self._metrics.nodes.count(Counter(states))
        wanted = [node.name for node in self._cache.values() if nodes.is_wanted(node)]
        other_pods = (pod for name in wanted for pod in self._others_on.get(name))
        self._metrics.nodes.other_pods(others.count_by_namespace(other_pods))
        for name in self._gatherer.missing():
            self._queue.add(name)


def _runs(pod: Pod | None) -> bool:
    return pod is not None and lingering.may_run(pod)


def _changed(old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> Iterator[SlurmNode]:
    if old and new and replace(old, resource_version=new.resource_version) == new:
        return  # the kubelet's heartbeat
    for node in (old, new):
        if node is not None:
            yield nodes.slurm_name(node)
