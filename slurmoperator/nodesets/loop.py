"""The reconcile loop of NodeSets: gather, decide, act, report."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars

from slurmoperator.nodesets import names, planning, status
from slurmoperator.nodesets.actuator import (
    PATIENCE_S,
    ActionOutcome,
    Decisions,
    RecentWrites,
    WorkerActuator,
)
from slurmoperator.nodesets.gathering import NodeSetCaches, NodeSetGathering, WorkerSource
from slurmoperator.nodesets.nodeset import NODE_SET, WatchedNodeSet
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.owned.conf_trials import in_force
from slurmoperator.nodesets.owned.deleted_claims import ClaimDeletions
from slurmoperator.nodesets.owned.housekeeping import Housekeeping
from slurmoperator.nodesets.owned.owned_objects import RECHECK_S, ObjectsResult, OwnedObjects
from slurmoperator.nodesets.owned.pod_conditions import PodConditions
from slurmoperator.nodesets.owned.revisions import CurrentRevision, NodeSetRevisions
from slurmoperator.nodesets.owned.topology import WorkerTopology
from slurmoperator.nodesets.owned.windows import UpdateWindows
from slurmoperator.nodesets.planning import NodeSetSituation
from slurmoperator.nodesets.status import Refusal, StatusFacts
from slurmoperator.nodesets.views import OpensSlurm, WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject, NodeSetStatus
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.rendering.node_sets.worker import return_to_node
from slurmoperator.rendering.site import ELSEWHERE, NamespaceScope
from slurmoperator.workers import table
from slurmoperator.workers.placing import HOST_ANNOTATION
from slurmoperator.workers.situation import WorkerPolicy
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Fault, Refused
from slurmruntime.values.names import TOPOLOGY_ANNOTATION

_log = structlog.get_logger(__name__)


class NodeSetLoop:
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
        self._node_sets = caches.node_sets
        self._controller = Controller(
            "nodesets",
            self.reconcile,
            [
                Watch(caches.node_sets, self._node_set_changed),
                Watch(caches.pods, _owners),
                Watch(caches.kube_nodes, self._node_changed),
            ],
            process=process,
            keys=Keys(lane=self._namespace),
        )
        clock = self._clock = process.clock
        self._views = WorkerViews(
            slurms, clock=clock, wake=self._controller.queue.add, set_aside=process.set_aside
        )
        self._gathering = NodeSetGathering(
            caches=caches, views=self._views, templates=source.templates, clock=clock
        )
        self._claims = WorkerClaims(kube)
        self._actuator = WorkerActuator(
            kube=kube,
            claims=self._claims,
            pods=caches.pods,
            views=self._views,
            recent=RecentWrites(clock.monotonic),
        )
        self._housekeeping = Housekeeping(
            gathering=self._gathering,
            views=self._views,
            claims=self._claims,
            deleted_claims=ClaimDeletions(kube),
            pod_conditions=PodConditions(kube, caches.pods, clock.monotonic),
            topology=WorkerTopology(clock.monotonic),
            windows=UpdateWindows(clock.monotonic),
        )
        self._owned_objects = OwnedObjects(kube, clock.monotonic)
        self._revisions = NodeSetRevisions(kube, clock.monotonic)
        self._source = source
        self._served = served
        self._policy = WorkerPolicy()
        self._by_kube_node = caches.pods.index(lambda pod: [pod.kube_node] if pod.kube_node else [])

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile NodeSets until `stop` is set."""
        self._source.tried.follow(self._controller.queue.add)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._views.run(stop))
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one NodeSet.

        Return the delay until the next time, unless an event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        watched = self._node_sets.get(key)
        if watched is None:
            self._views.forget(key)
            self._owned_objects.forget(key)
            self._housekeeping.forget(key)
            self._revisions.forget(key)
            self._source.tried.forget(key)
            return None
        bind_contextvars(node_set=watched.metadata.full_name)
        try:
            if elsewhere := self._served.fault(watched.metadata.namespace):
                await self._refuse(watched, Refusal(reason=ELSEWHERE, text=elsewhere))
                return None
            if watched.parsed is None:
                await self._refuse(watched, Refusal(reason="BadInput", text=watched.fault))
                return None
            return await self._reconcile(watched, watched.parsed)
        except kube_errors.NotFound:
            _log.debug("nodeset.gone_already")
            return None

    async def _refuse(self, watched: WatchedNodeSet, refusal: Refusal) -> None:
        """Report a NodeSet that is invalid or not ours; release it if it is deleted and empty."""
        meta, pods = watched.metadata, self._gathering.pods(watched.metadata.uid)
        if meta.deletion_timestamp is not None and NODE_SET.has_finalizer(watched) and not pods:
            await NODE_SET.remove_finalizer(self._kube, watched)
            return
        await self._write_status(watched, self._refused(watched, refusal))

    async def _reconcile(self, watched: WatchedNodeSet, parsed: NodeSetObject) -> timedelta | None:
        conf = in_force(parsed, self._source.tried.of(parsed))
        node_set = conf.node_set
        is_leaving = node_set.metadata.deletion_timestamp is not None
        pods = self._gathering.pods(node_set.metadata.uid)
        if is_leaving and (watched.is_orphaning or not NODE_SET.has_finalizer(watched)):
            return None
        if is_leaving and not pods:
            await self._housekeeping.clean_up(node_set)
            await self._claims.delete_all(node_set)
            await NODE_SET.remove_finalizer(self._kube, watched)
            return None
        refusal = None if is_leaving else self._gathering.refusal(node_set)
        if refusal is not None and not pods:
            await self._write_status(watched, self._refused(watched, refusal))
            return None
        if not is_leaving:
            watched = await NODE_SET.add_finalizer(self._kube, self._node_sets, watched)
        owned_result = ObjectsResult() if is_leaving else await self._owned_objects.keep(node_set)
        refusal = refusal or owned_result.refusal
        if conf.refused and not is_leaving:
            refusal = refusal or Refusal(reason="BadInput", text=conf.refused)
        key_step = self._source.key_step(node_set)  # once: a revision and its pods share it
        revision = await self._revision_of(node_set, pods, key_step)
        situation = self._gathering.situation(
            node_set,
            pods,
            revision=revision.hash,
            key_step=key_step,
            may_replace=refusal is None and revision.failure is None,
        )
        workers = planning.workers(situation)
        decisions: Decisions = [
            (worker, table.decide(worker.facts, self._policy)) for worker in workers
        ]
        outcome = await self._act(situation, decisions, refusal)
        housekeeping = await self._housekeeping.run(situation, workers, is_sure=refusal is None)
        failed = () if revision.failure is None else (revision.failure,)
        failures = (*owned_result.failures, *failed, *outcome.failures, *housekeeping.failures)
        outcome = replace(outcome, failures=failures)
        if outcome.refused is not None:
            refusal = Refusal(reason="BadInput", text=outcome.refused.text)
        facts = self._facts(watched, situation, decisions, refusal, outcome)
        facts = replace(
            facts,
            conf=conf,
            collisions=revision.collisions,
            unserved=(*planning.unserved(node_set), *housekeeping.notes),
            deleted_claims=housekeeping.deleted_claims,
            reservation=housekeeping.reservation,
            is_reservation_known=housekeeping.is_reservation_known,
        )
        await self._write_status(watched, status.compute(facts))
        _raise_first(outcome)
        retries = (decision.retry_after for _, decision in decisions)
        delays = [delay for delay in retries if delay is not None]
        delays += [timedelta(seconds=RECHECK_S), *housekeeping.delays]
        if outcome.is_waiting:
            delays.append(timedelta(seconds=PATIENCE_S))
        if (due := status.due(facts)) is not None:
            delays.append(due)
        return min(delays)

    async def _revision_of(
        self, node_set: NodeSetObject, pods: tuple[WorkerPodObject, ...], key_step: int
    ) -> CurrentRevision:
        in_use = {pod.metadata.labels.get(names.DIGEST_LABEL, "") for pod in pods}
        if node_set.metadata.deletion_timestamp is None:
            return await self._revisions.keep(node_set, in_use, key_step)
        before = node_set.status  # Kubernetes deletes the revisions after the NodeSet
        return CurrentRevision(hash=before.node_set_hash, collisions=before.collision_count)

    # -- act and report ---------------------------------------------------------------------------

    async def _act(
        self, situation: NodeSetSituation, decisions: Decisions, refusal: Refusal | None
    ) -> ActionOutcome:
        node_set = situation.node_set
        pins = planning.pins(situation, [worker for worker, _ in decisions]) or {}
        listed = self._gathering.listed(node_set)

        def render(key: WorkerKey) -> Mapping[str, Any] | Refused:
            if refusal is not None:
                return Refused((Fault("spec", refusal.text),))
            body = self._source.templates(node_set, key, situation.key_step)
            if isinstance(body, Refused):
                return body
            if kube_node := pins.get(str(key), ""):
                body = return_to_node(body, kube_node)
            lost = planning.may_have_lost_jobs(node_set, key, listed)
            return planning.pod_body(node_set, key, body, digest=situation.revision, lost_jobs=lost)

        outcome = await self._actuator.carry_out(node_set, decisions, render)
        return replace(outcome, refused=None) if refusal is not None else outcome

    def _facts(
        self,
        watched: WatchedNodeSet,
        situation: NodeSetSituation,
        decisions: Decisions,
        refusal: Refusal | None,
        outcome: ActionOutcome,
    ) -> StatusFacts:
        node_set = situation.node_set
        return StatusFacts(
            before=watched.status,
            situation=situation,
            workers=decisions,
            listed=self._gathering.listed(node_set) or (lambda _: None),
            trouble=self._gathering.trouble(node_set),
            refusal=refusal,
            failures=tuple(_failure_texts(situation, outcome)),
            pins=planning.pins(situation, [worker for worker, _ in decisions]),
        )

    def _refused(self, watched: WatchedNodeSet, refusal: Refusal) -> NodeSetStatus:
        generation, now = watched.metadata.generation, self._clock.now()
        return status.with_refusal(watched.status, refusal, generation=generation, now=now)

    async def _write_status(self, watched: WatchedNodeSet, after: NodeSetStatus) -> None:
        await NODE_SET.write_status(self._kube, self._node_sets, watched, after)

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
            yield from self._gathering.on_nodes()

    def _node_changed(self, old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> Iterator[str]:
        if old is None or new is None or _placement_facts(old) != _placement_facts(new):
            yield from self._gathering.on_nodes()
        if old and new and _worker_facts(old) == _worker_facts(new):
            return
        for name in {node.name for node in (old, new) if node is not None}:
            for pod in self._by_kube_node.get(name):
                yield pod.metadata.controller_uid

    def _namespace(self, key: str) -> str:
        watched = self._node_sets.get(key)
        return watched.metadata.namespace if watched else ""


def _owners(old: WorkerPodObject | None, new: WorkerPodObject | None) -> Iterator[str]:
    for version in (old, new):
        if version is not None and version.metadata.controller_uid:
            yield version.metadata.controller_uid


def _worker_facts(node: KubeNodeFacts) -> tuple[object, ...]:
    cordoned = node.annotations.get(names.CORDON_REASON_ANNOTATION)
    return node.is_unschedulable, cordoned, node.annotations.get(TOPOLOGY_ANNOTATION)


def _placement_facts(node: KubeNodeFacts) -> tuple[object, ...]:
    host = node.annotations.get(HOST_ANNOTATION)
    return node.labels, node.taints, node.is_unschedulable, node.is_deleting, host


def _failure_texts(situation: NodeSetSituation, outcome: ActionOutcome) -> Iterator[str]:
    """Yield failures that need a human. Transient ones are retried and logged."""
    yield from dict.fromkeys(str(failure) for failure in outcome.failures if not failure.transient)
    for name in planning.unmanaged_pods(situation):
        yield f"pod {name} belongs to this NodeSet but its name has no ordinal; delete it"
    yield from situation.on_nodes.faults if situation.on_nodes else ()


def _raise_first(outcome: ActionOutcome) -> None:
    """Raise one failure, so that it is retried; those that need a human come last."""
    failures: list[PeerError] = sorted(outcome.failures, key=lambda failure: not failure.transient)
    if failures:
        raise failures[0]
