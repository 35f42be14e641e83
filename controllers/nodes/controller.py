"""The node controller: keeps nodes in sync in both directions.

Keys are Slurm node names, so a node that is gone from Kubernetes still has a key. The controller is
level-triggered and takes one step per reconcile (`bridge.domain.nodes.registration`). A node is
reconciled when it changes in either system, when its DaemonSets' requests change, or when it loses
pods; if nothing changes, the only work is reading Slurm's list.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from bridge.domain.lifecycle import outcome
from bridge.domain.model import demand, others
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import BoundPod, Pod
from bridge.domain.nodes import named, registration
from bridge.domain.nodes.actions import Create, SetCondition, SetTaint
from bridge.domain.nodes.book import Unknown
from bridge.domain.nodes.decision import Node, NodeDecision, NodeRefusal, NodeSettings
from bridge.domain.nodes.hold import Hold
from bridge.reconcile.nodes import KubeNodes, bound_to
from bridge.reconcile.placeholders import Placeholders
from controllers.nodes.actuator import NodeActuator, NodePeers
from controllers.nodes.companions import Companions
from controllers.nodes.holds import Holdings
from controllers.nodes.slices import Slices
from controllers.nodes.slurm import SlurmNodes
from slurmclient.errors import Declined, TooOld
from slurmruntime.kube.cache import Cache
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
_BUSY_AGAIN = timedelta(seconds=5)
"""Retry delay after Slurm refused to delete a node (a job has just started there, or a reservation
names it), or to create one because the name exists.
"""
_REFUSED_AGAIN = timedelta(seconds=60)
"""Retry delay after Slurm refused to create a node: someone has to fix Slurm's configuration."""

_REPEATABLE = (Create, SetTaint, SetCondition)
"""Actions that are harmless even when decided on stale data."""

_WATCHES_LAG_S = 2.0
"""How much later than we do the extender may see that a node leaves; until then it submits jobs
that name the node.
"""

NamingLookup = Callable[[SlurmNode, float], Awaitable[tuple[SlurmJob, ...] | None]]
"""Finds the live placeholders that name a node, in a reading that began after the given time; None
if there is no such reading yet.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCaches:
    """What is watched for nodes."""

    kube_nodes: Cache[KubeNodeFacts]
    slices: Slices
    """Devices that drivers publish for nodes."""
    pods: Cache[Pod]
    bound: Cache[BoundPod]
    """All other pods that have a node; a DaemonSet's pod is never ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOnNodes:
    """What is known of the jobs that need a node."""

    placeholders: Placeholders
    holdings: Holdings
    naming: NamingLookup
    """Finds placeholders that prevent a deletion."""


class NodeController:
    """Reconciles nodes during one term of leadership."""

    def __init__(
        self,
        peers: NodePeers,
        caches: NodeCaches,
        jobs: JobsOnNodes,
        *,
        settings: NodeSettings,
        interval_s: float,
        process: Process,
    ) -> None:
        """Start with nothing known of Slurm.

        Args:
            interval_s: the interval between lists of Slurm's nodes.
            process: the process that leads.
        """
        self._cache = caches.kube_nodes
        self._kube_nodes = KubeNodes(caches.kube_nodes)
        self._bound = caches.bound
        self._slices = caches.slices
        self._pods = caches.pods
        self._ours_on = caches.pods.index(bound_to)
        self._daemons_on = caches.bound.index(
            lambda pod: [pod.kube_node] if pod.is_of_the_node else []
        )
        self._others_on = caches.bound.index(bound_to)
        self._naming = jobs.naming
        self._settings = settings
        self._holdings = jobs.holdings
        self._metrics = process.metrics
        self._controller = Controller(
            "nodes",
            self.reconcile,
            [
                Watch(caches.kube_nodes, _changed),
                Watch(caches.pods, self._of_pod),
                Watch(caches.bound, self._of_other_pod),
            ],
            process=process,
            keys=Keys(kind="slurm_node", about=self._about),
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
            peers, caches.kube_nodes, self._slurm_nodes, clock=process.clock
        )
        self._companions = Companions(
            pods=caches.pods,
            kube_nodes=self._kube_nodes,
            slurm_nodes=self._slurm_nodes,
            placeholders=jobs.placeholders,
            holdings=jobs.holdings,
        )
        self._clock = process.clock
        self._refusals: dict[SlurmNode, tuple[NodeRefusal, float]] = {}
        self._logged: dict[SlurmNode, str] = {}
        self._leaving_since: dict[SlurmNode, float] = {}
        self._placeholders = jobs.placeholders
        self._gone: frozenset[SlurmNode] = frozenset()
        """Nodes that waiting placeholders name, but that are not in Slurm's last list."""

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

    def slurm_node(self, name: SlurmNode) -> SlurmNodeFacts | Unknown | None:
        """Return Slurm's node of that name, as last read."""
        return self._slurm_nodes.get(name)

    def enqueue(self, kube_node: KubeNode) -> None:
        """Queue one node."""
        if node := self._cache.get(kube_node):
            self._queue.add(nodes.slurm_name(node))

    def _about(self, name: SlurmNode) -> About | None:
        node = self._kube_nodes.facts(name)
        return node.about if node else None

    async def reconcile(self, name: SlurmNode) -> timedelta | None:
        """Compare one node in both systems and take the next step.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        structlog.contextvars.bind_contextvars(slurm_node=name)
        listed = self._slurm_nodes.get(name)
        if isinstance(listed, Unknown):
            self._queue.undecided(name)
            return None  # the next list wakes it
        node = await self._gather(name, listed)
        decision = registration.decide(node, self._settings)
        if not all(isinstance(action, _REPEATABLE) for action in decision.actions):
            # The list may be stale and the next step cannot be undone: read the node itself.
            if node.companions:
                await self._companions.read(name)
            node = await self._gather(name, await self._slurm_nodes.read(name))
            decision = registration.decide(node, self._settings)
        self._log_once(name, decision)
        for rival in self._kube_nodes.rivals(name):
            for action in registration.yield_to(rival, node.kube_node or rival).actions:
                await self._actuator.act(action)
        return await self._carry_out(name, decision)

    async def _gather(self, name: SlurmNode, slurm_node: SlurmNodeFacts | None) -> Node:
        kube_node = self._kube_nodes.facts(name)
        daemons = self._daemons_on.get(kube_node.name) if kube_node else []
        ours = self._ours_on.get(kube_node.name) if kube_node else []
        unsettled = [pod for pod in ours if pod.has_our_finalizer]
        ours = [pod for pod in ours if not pod.is_terminal]
        is_leaving = slurm_node is not None and not nodes.is_wanted(kube_node)
        is_leaving = is_leaving or (slurm_node is None and name in self._gone)
        if not is_leaving:
            self._leaving_since.pop(name, None)
        hold = self._holdings.hold(kube_node, slurm_node)
        leader = self._companions.leader(name) if hold is Hold.RESTORING else name
        leads = hold is Hold.RESTORING and leader == name
        companions = self._companions.of(name) if leads else ()
        return Node(
            kube_node=self._slices.counted(kube_node) if kube_node else None,
            slurm_node=slurm_node,
            name=name if is_leaving else None,
            daemons=demand.total(pod.demand for pod in daemons if not pod.is_terminal),
            is_given_up=bool(ours) and all(pod.is_deleting for pod in ours),
            is_crashed=bool(unsettled) and all(map(outcome.lost_with_node, unsettled)),
            named_by=await self._named_by(name) if is_leaving else (),
            hold=hold,
            leader=leader if leader != name else None,
            companions=companions,
            refusal=self._refusal(name),
            reason_age=self._age(slurm_node),
        )

    def _age(self, slurm_node: SlurmNodeFacts | None) -> timedelta | None:
        reason_at = slurm_node.reason_at if slurm_node is not None else None
        return None if reason_at is None else self._clock.now() - reason_at

    async def _named_by(self, name: SlurmNode) -> tuple[SlurmJob, ...] | None:
        since = self._leaving_since.setdefault(name, self._clock.monotonic())
        return await self._naming(name, since + _WATCHES_LAG_S)

    async def _carry_out(self, name: SlurmNode, decision: NodeDecision) -> timedelta | None:
        try:
            for action in decision.actions:
                if not await self._actuator.act(action):
                    return _BUSY_AGAIN
                _log.info("node.acted", action=type(action).__name__, reason=decision.reason)
        except (Declined, TooOld) as refusal:
            known, _ = self._refusals.get(name, (None, 0.0))
            if decision.wanted is None or (known and known.spec == decision.wanted):
                raise  # the node's condition reports it already, and the retry was refused, too
            new_refusal = NodeRefusal(spec=decision.wanted, words=refusal.words)
            self._refusals[name] = (new_refusal, self._clock.monotonic())
            _log.warning("node.refused", error=str(refusal))
            return timedelta()  # reconcile again, to update the node's condition
        delays = (decision.again, self._refused_for(name))
        return min((delay for delay in delays if delay is not None), default=None)

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

    def _log_once(self, name: SlurmNode, decision: NodeDecision) -> None:
        """Log once why nothing is done for a node; someone has to fix what keeps it out of Slurm."""
        if decision.actions or self._logged.get(name) == decision.reason:
            return
        if self._kube_nodes.facts(name) is None:
            self._logged.pop(name, None)
            return
        self._logged[name] = decision.reason
        _log.debug("node.left", reason=decision.reason)

    def _of_pod(self, old: Pod | None, new: Pod | None) -> Iterator[SlurmNode]:
        """Yield the pod's node if it is not ready or has crashed; our pods matter only there."""
        pod = new or old
        node = self._cache.get(pod.kube_node) if pod and pod.kube_node else None
        if pod and node and (not node.is_ready or outcome.lost_with_node(pod)):
            yield nodes.slurm_name(node)

    def _of_other_pod(self, old: BoundPod | None, new: BoundPod | None) -> Iterator[SlurmNode]:
        pod = new or old
        node = self._cache.get(pod.kube_node) if pod and pod.is_of_the_node else None
        if node:
            yield nodes.slurm_name(node)

    def _on_read(self) -> None:
        self._count()
        snapshot = self._placeholders.snapshot
        mentioned = named.by_waiting(snapshot.jobs.values()) if snapshot else ()
        self._gone = frozenset(name for name in mentioned if self._slurm_nodes.get(name) is None)
        for name in self._gone:
            self._queue.add(name)

    def _count(self) -> None:
        """Count desired nodes by their state in Slurm."""
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


def _changed(old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> Iterator[SlurmNode]:
    if old and new and replace(old, resource_version=new.resource_version) == new:
        return  # the kubelet's heartbeat
    for node in (old, new):
        if node is not None:
            yield nodes.slurm_name(node)
