"""The reconcile loop of NodeSets: gather, plan once, act, report."""

import asyncio
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from functools import partial

import structlog
from structlog.contextvars import bind_contextvars
from typing_extensions import override

from slurmoperator.nodesets import names
from slurmoperator.nodesets.actuator import NodeSetActuator
from slurmoperator.nodesets.gathering import NodeSetCaches, NodeSetGathering
from slurmoperator.nodesets.nodeset import NODE_SET, WatchedNodeSet
from slurmoperator.nodesets.plan import planning, status
from slurmoperator.nodesets.plan.admission import admit
from slurmoperator.nodesets.plan.look import NodeSetFacts, Objection
from slurmoperator.nodesets.plan.placing import HOST_ANNOTATION
from slurmoperator.nodesets.plan.planning import Rest
from slurmoperator.nodesets.preparation import NodeSetPreparation, WorkerSource
from slurmoperator.nodesets.views import OpensSlurm, WorkerViews
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.recent import RECHECK
from slurmoperator.rendering.site import ELSEWHERE, NamespaceScope
from slurmoperator.reports import StatusReports
from slurmruntime.crd.metadata import controllers
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.names import TOPOLOGY_ANNOTATION

_log = structlog.get_logger(__name__)


class NodeSetLoop(Keys[str]):
    """Reconciles NodeSets during one term of leadership."""

    def __init__(
        self,
        kube: KubeClient,
        caches: NodeSetCaches,
        *,
        slurms: OpensSlurm,
        source: WorkerSource,
        served: NamespaceScope,
        process: Process,
    ) -> None:
        """Prepare the loop. NodeSets outside the served namespaces only get a condition that says so."""
        self._kube = kube
        self._reports = StatusReports(kube, process)
        self._node_sets = caches.node_sets
        self._controller = Controller(
            "nodesets",
            self.reconcile,
            [
                Watch(caches.node_sets, self._node_set_changed),
                Watch(caches.pods, partial(controllers, caches.node_sets.get)),
                Watch(caches.kube_nodes, self._node_changed),
            ],
            process=process,
            keys=self,
        )
        clock = self._clock = process.clock
        self._views = WorkerViews(
            slurms, clock=clock, wake=self._controller.queue.add, set_aside=process.set_aside
        )
        self._tried = source.tried
        self._gathering = NodeSetGathering(
            caches=caches, views=self._views, tried=source.tried, clock=clock
        )
        self._actuator = NodeSetActuator(
            kube, caches.pods, self._views, source.templates, clock.monotonic
        )
        self._preparation = NodeSetPreparation(kube, source, clock.monotonic)
        self._rests: dict[str, Rest | None] = {}
        """The last look by the NodeSet's uid; None if another one may come to another plan."""
        self._served = served
        self._by_kube_node = caches.pods.index(lambda pod: [pod.kube_node] if pod.kube_node else [])

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile NodeSets until `stop` is set."""
        self._tried.follow(self._controller.queue.add)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._views.run(stop))
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one NodeSet; return the delay until the next time if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        watched = self._node_sets.get(key)
        if watched is None:
            self._views.forget(key)
            self._gathering.forget(key)
            self._rests.pop(key, None)
            return None
        bind_contextvars(node_set=watched.metadata.full_name)
        try:
            if elsewhere := self._served.fault(watched.metadata.namespace):
                await self._refuse(watched, Objection(reason=ELSEWHERE, text=elsewhere))
                return None
            if watched.parsed is None:
                await self._refuse(watched, Objection(reason="BadInput", text=watched.fault))
                return None
            return await self._reconcile(watched, watched.parsed)
        except kube_errors.NotFound:
            _log.debug("nodeset.gone_already")
            return None

    async def _refuse(self, watched: WatchedNodeSet, refusal: Objection) -> None:
        """Report a NodeSet that is invalid or not ours; release it if it is deleted and empty."""
        meta = watched.metadata
        is_leaving = meta.deletion_timestamp is not None and NODE_SET.has_finalizer(watched)
        if is_leaving and not self._gathering.has_pods(meta):
            await NODE_SET.remove_finalizer(self._kube, watched)
            return
        generation, now = meta.generation, self._clock.now()
        after = status.with_refusal(watched.status, refusal, generation=generation, now=now)
        await self._reports.write(NODE_SET, self._node_sets, watched, after)

    async def _reconcile(self, watched: WatchedNodeSet, parsed: NodeSetObject) -> timedelta | None:
        readings = self._gathering.gather(parsed)
        conf, refusal = admit(parsed, readings.trial, readings.others)
        node_set, pods = conf.node_set, readings.pods
        if parsed.metadata.deletion_timestamp is not None:
            if watched.is_orphaning or not NODE_SET.has_finalizer(watched):
                return None
            if not pods:
                await self._actuator.clean_up(node_set)
                await NODE_SET.remove_finalizer(self._kube, watched)
                return None
        elif refusal is not None and not pods:
            await self._refuse(watched, refusal)
            return None
        else:
            watched = await NODE_SET.add_finalizer(self._kube, self._node_sets, watched)
        in_use = {pod.revision for pod in pods}
        prepared = await self._preparation.prepare(conf, refusal, in_use)
        values = {part.name: getattr(readings, part.name) for part in fields(readings)}
        facts = NodeSetFacts(conf=conf, prepared=prepared, **values)
        uid = node_set.metadata.uid
        rest = self._rests.get(uid)
        plan = planning.plan(facts, rest)
        self._views.follow(node_set.controller, uid, plan.follow)
        outcome = await self._actuator.act(facts, plan, prepared.outcome)
        after, self._rests[uid] = status.report(facts, plan, outcome, rest)
        await self._reports.write(NODE_SET, self._node_sets, watched, after)
        # One is raised, so that it is retried; those that need a human come last.
        if outcome.failures:
            raise min(outcome.failures, key=lambda failure: not failure.transient)
        return min([RECHECK, *plan.delays, *outcome.delays])

    # -- events -----------------------------------------------------------------------------------

    def _node_set_changed(
        self, old: WatchedNodeSet | None, new: WatchedNodeSet | None
    ) -> Iterator[str]:
        versions = [version for version in (old, new) if version is not None]
        for version in versions:
            yield version.metadata.uid
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            for version in versions:  # NodeSets that waited for its names
                yield from self._gathering.uids_in_same_slurm(version)
                yield from self._gathering.on_nodes(version.metadata.namespace)

    def _node_changed(self, old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> Iterator[str]:
        if old is None or new is None or _placement_facts(old) != _placement_facts(new):
            yield from self._gathering.on_nodes()
        if old and new and _worker_facts(old) == _worker_facts(new):
            return
        for name in {node.name for node in (old, new) if node is not None}:
            yield from controllers(self._node_sets.get, *self._by_kube_node.get(name))

    @override
    def lane(self, key: str, /) -> str:
        watched = self._node_sets.get(key)
        return watched.metadata.namespace if watched else ""


def _worker_facts(node: KubeNodeFacts) -> tuple[object, ...]:
    cordoned = node.annotations.get(names.CORDON_REASON_ANNOTATION)
    return node.is_unschedulable, cordoned, node.annotations.get(TOPOLOGY_ANNOTATION)


def _placement_facts(node: KubeNodeFacts) -> tuple[object, ...]:
    host = node.annotations.get(HOST_ANNOTATION)
    return node.labels, node.taints, node.is_unschedulable, node.is_deleting, host
