"""The reconcile loop over NodeSets: gather, decide, act, tell."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars

from slurmoperator.nodesets import names, planning, status, troubles
from slurmoperator.nodesets.actuator import Acted, Decided, WorkerActuator
from slurmoperator.nodesets.gathering import KeySteps, NodeSetGathering, WorkerTemplates
from slurmoperator.nodesets.nodeset import NODE_SET, WatchedNodeSet
from slurmoperator.nodesets.owned.aftercare import Aftercare
from slurmoperator.nodesets.owned.belongings import LOOK_AGAIN_S, KeptBelongings, NodeSetBelongings
from slurmoperator.nodesets.owned.claims import WorkerClaims
from slurmoperator.nodesets.owned.deleted_claims import DeletedClaims
from slurmoperator.nodesets.owned.revisions import KeptRevisions, NodeSetRevisions
from slurmoperator.nodesets.owned.told_states import ToldStates
from slurmoperator.nodesets.owned.topology import WorkerTopology
from slurmoperator.nodesets.owned.tried import TriedConfs, in_force
from slurmoperator.nodesets.owned.windows import UpdateWindows
from slurmoperator.nodesets.planning import NodeSetSituation
from slurmoperator.nodesets.recent_writes import PATIENCE_S
from slurmoperator.nodesets.status import Refusal, StatusFacts
from slurmoperator.nodesets.views import WorkerViews
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject, NodeSetStatus
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.rendering.node_sets.worker import returning
from slurmoperator.rendering.site import ELSEWHERE, ServedNamespaces
from slurmoperator.workers import table
from slurmoperator.workers.placing import HOST_ANNOTATION
from slurmoperator.workers.situation import WorkerPolicy
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Fault, Refused
from slurmruntime.values.names import TOPOLOGY_ANNOTATION
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)


class NodeSetLoop:
    """Reconciles NodeSets during one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        node_sets: Cache[WatchedNodeSet],
        pods: Cache[WorkerPodObject],
        kube_nodes: Cache[KubeNodeFacts],
        views: WorkerViews,
        actuator: WorkerActuator,
        belongings: NodeSetBelongings,
        claims: WorkerClaims,
        revisions: NodeSetRevisions,
        templates: WorkerTemplates,
        key_step: KeySteps,
        tried: TriedConfs,
        served: ServedNamespaces,
        queue: WorkQueue[str],
        clock: Clock,
        metrics: Metrics,
        set_aside: Oddities,
    ) -> None:
        """Prepare the loop.

        Args:
            kube: the API server.
            node_sets: all of them, by uid.
            pods: those of workers, by uid.
            kube_nodes: all of them, by name.
            views: readings of all Slurms.
            actuator: carries decisions out.
            belongings: keeps what a NodeSet has besides its workers.
            claims: makes and deletes the claims of workers' volumes.
            revisions: keeps the templates that a NodeSet has had.
            templates: makes pods.
            key_step: which step of the daemons' key they get.
            tried: what slurmctld makes of the nodes that they are to register.
            served: whose NodeSets are seen to; of others it is only told that they are not.
            queue: of NodeSets' uids.
            clock: of the process.
            metrics: counts.
            set_aside: told of crashes.
        """
        self._kube = kube
        self._node_sets = node_sets
        self._pods = pods
        self._kube_nodes = kube_nodes
        self._views = views
        self._gathering = NodeSetGathering(
            node_sets=node_sets,
            pods=pods,
            kube_nodes=kube_nodes,
            views=views,
            templates=templates,
            clock=clock,
        )
        self._served = served
        self._actuator = actuator
        self._belongings = belongings
        self._claims = claims
        self._aftercare = Aftercare(
            gathering=self._gathering,
            views=views,
            claims=claims,
            deleted_claims=DeletedClaims(kube),
            told_states=ToldStates(kube, pods, clock.monotonic),
            topology=WorkerTopology(clock.monotonic),
            windows=UpdateWindows(clock.monotonic),
        )
        self._revisions = revisions
        self._templates = templates
        self._key_step = key_step
        self._tried = tried
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._set_aside = set_aside
        self._policy = WorkerPolicy()
        self._by_kube_node = pods.index(lambda pod: [pod.kube_node] if pod.kube_node else [])
        queue.serve_by(self._namespace)

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile NodeSets until told to stop."""
        self._node_sets.subscribe(self._changed)
        self._pods.subscribe(self._pod_changed)
        self._kube_nodes.subscribe(self._node_changed)
        self._tried.follow(self._queue.add)
        await worker.run(
            self._queue,
            self.reconcile,
            name="nodesets",
            count=workers,
            stop=stop,
            metrics=self._metrics,
            aside=Aside(self._set_aside, "workload"),
        )

    async def reconcile(self, key: str) -> timedelta | None:
        """Look at one NodeSet and do what is needed.

        Return the delay until the next look if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        found = self._node_sets.get(key)
        if found is None:
            self._views.forget(key)
            self._belongings.forget(key)
            self._aftercare.forget(key)
            self._revisions.forget(key)
            self._tried.forget(key)
            return None
        bind_contextvars(node_set=found.metadata.full_name)
        try:
            if elsewhere := self._served.fault(found.metadata.namespace):
                await self._tell_fault(found, Refusal(reason=ELSEWHERE, text=elsewhere))
                return None
            if found.whole is None:
                await self._tell_fault(found, Refusal(reason="BadInput", text=found.fault))
                return None
            return await self._see_to(found, found.whole)
        except kube_errors.NotFound:
            _log.debug("nodeset.gone_already")
            return None

    async def _tell_fault(self, found: WatchedNodeSet, refusal: Refusal) -> None:
        """Tell of one that cannot be read, or is not ours to serve; let one go that is deleted and has no workers."""
        is_leaving = found.metadata.deletion_timestamp is not None
        if is_leaving and NODE_SET.holds(found) and not self._gathering.pods(found.metadata.uid):
            await NODE_SET.let_go(self._kube, found)
            return
        await self._tell(found, self._refused(found, refusal))

    async def _see_to(self, found: WatchedNodeSet, asked: NodeSetObject) -> timedelta | None:
        conf = in_force(asked, self._tried.of(asked))
        node_set = conf.node_set
        is_leaving = node_set.metadata.deletion_timestamp is not None
        pods = self._gathering.pods(node_set.metadata.uid)
        if is_leaving and (found.is_orphaning or not NODE_SET.holds(found)):
            return None
        if is_leaving and not pods:
            await self._aftercare.leave(node_set)
            await self._claims.delete_all(node_set)
            await NODE_SET.let_go(self._kube, found)
            return None
        refusal = None if is_leaving else self._gathering.refusal(node_set)
        if refusal is not None and not pods:
            await self._tell(found, self._refused(found, refusal))
            return None
        if not is_leaving:
            found = await NODE_SET.hold(self._kube, self._node_sets, found)
        kept = KeptBelongings() if is_leaving else await self._belongings.keep(node_set)
        refusal = refusal or kept.refusal
        if conf.refused and not is_leaving:
            refusal = refusal or Refusal(reason="BadInput", text=conf.refused)
        key_step = self._key_step(node_set)  # once: a revision and its pods have the same
        kept_revisions = await self._revisions_of(node_set, pods, key_step)
        situation = self._gathering.situation(
            node_set,
            pods,
            revision=kept_revisions.hash,
            key_step=key_step,
            may_replace=refusal is None and kept_revisions.failure is None,
        )
        decided: Decided = [
            (each, table.decide(each.facts, self._policy)) for each in planning.workers(situation)
        ]
        acted = await self._act(situation, decided, refusal)
        planned = [each for each, _ in decided]
        care = await self._aftercare.see_to(situation, planned, is_sure=refusal is None)
        failed = () if kept_revisions.failure is None else (kept_revisions.failure,)
        failures = (*kept.failures, *failed, *acted.failures, *care.failures)
        acted = replace(acted, failures=failures)
        if acted.refused is not None:
            refusal = Refusal(reason="BadInput", text=acted.refused.text)
        facts = self._facts(found, situation, decided, refusal, acted)
        facts = replace(
            facts,
            conf=conf,
            collisions=kept_revisions.collisions,
            unserved=(*planning.unserved(node_set), *care.notes),
            deleted_claims=care.deleted_claims,
            reservation=care.reservation,
            is_reservation_known=care.is_reservation_known,
        )
        await self._tell(found, status.told(facts))
        _raise_first(acted)
        looks = [each.retry_after for _, each in decided if each.retry_after is not None]
        looks += [timedelta(seconds=LOOK_AGAIN_S), *care.looks]
        if acted.is_waiting:
            looks.append(timedelta(seconds=PATIENCE_S))
        if (due := status.due(facts)) is not None:
            looks.append(due)
        return min(looks)

    async def _revisions_of(
        self, node_set: NodeSetObject, pods: tuple[WorkerPodObject, ...], key_step: int
    ) -> KeptRevisions:
        in_use = {pod.metadata.labels.get(names.DIGEST_LABEL, "") for pod in pods}
        if node_set.metadata.deletion_timestamp is None:
            return await self._revisions.keep(node_set, in_use, key_step)
        status = node_set.status  # Kubernetes deletes them after it
        return KeptRevisions(hash=status.node_set_hash, collisions=status.collision_count)

    # -- act and tell -----------------------------------------------------------------------------

    async def _act(
        self, situation: NodeSetSituation, decided: Decided, refusal: Refusal | None
    ) -> Acted:
        node_set = situation.node_set
        pins = planning.pins(situation, [each for each, _ in decided]) or {}
        listed = self._gathering.listed(node_set)

        def make(key: WorkerKey) -> Mapping[str, Any] | Refused:
            if refusal is not None:
                return Refused((Fault("spec", refusal.text),))
            body = self._templates(node_set, key, situation.key_step)
            if isinstance(body, Refused):
                return body
            if kube_node := pins.get(str(key), ""):
                body = returning(body, kube_node)
            lost = planning.may_have_lost_jobs(node_set, key, listed)
            return planning.stamped(node_set, key, body, digest=situation.revision, lost_jobs=lost)

        acted = await self._actuator.carry_out(node_set, decided, make)
        return replace(acted, refused=None) if refusal is not None else acted

    def _facts(
        self,
        found: WatchedNodeSet,
        situation: NodeSetSituation,
        decided: Decided,
        refusal: Refusal | None,
        acted: Acted,
    ) -> StatusFacts:
        node_set = situation.node_set
        return StatusFacts(
            before=found.status,
            generation=node_set.metadata.generation,
            desired=situation.wanted,
            workers=decided,
            states=self._gathering.states(node_set),
            promised=troubles.promised_devices(node_set.spec.extra_conf),
            registered=self._registered(node_set),
            invalid=self._invalid(node_set),
            trouble=self._gathering.trouble(node_set),
            refusal=refusal,
            failures=tuple(_to_be_told(situation, acted)),
            digest=situation.revision,
            pins=planning.pins(situation, [each for each, _ in decided]),
            may_replace=situation.may_replace,
            strategy=planning.strategy(node_set),
            selector=names.selector(node_set.metadata.name),
            min_ready=timedelta(seconds=node_set.spec.min_ready_seconds),
            now=situation.now,
        )

    def _registered(self, node_set: NodeSetObject) -> Callable[[str], str]:
        """Return what tells the devices that a node has in its Slurm by the last reading."""
        listed = self._gathering.listed(node_set)

        def registered(node: str) -> str:
            found = listed(node) if listed is not None else None
            return found.gres if found is not None else ""

        return registered

    def _invalid(self, node_set: NodeSetObject) -> Callable[[str], str]:
        """Return what tells why a node has registered with less than it should; "" if it has not."""
        listed = self._gathering.listed(node_set)

        def invalid(node: str) -> str:
            found = listed(node) if listed is not None else None
            if found is None or "INVALID_REG" not in found.states:
                return ""
            return found.reason or "it has registered with less than its worker says of it"

        return invalid

    def _refused(self, found: WatchedNodeSet, refusal: Refusal) -> NodeSetStatus:
        generation = found.metadata.generation
        return status.refused(found.status, refusal, generation=generation, now=self._clock.now())

    async def _tell(self, found: WatchedNodeSet, after: NodeSetStatus) -> None:
        await NODE_SET.tell(self._kube, self._node_sets, found, after)

    # -- events -----------------------------------------------------------------------------------

    def _changed(self, old: WatchedNodeSet | None, new: WatchedNodeSet | None) -> None:
        for each in (old, new):
            if each is not None:
                self._queue.add(each.metadata.uid)
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            for each in (old, new):  # those that waited for its names
                for other in self._gathering.same_names(each) if each else ():
                    self._queue.add(other)
            for other in self._gathering.on_nodes():
                self._queue.add(other)

    def _pod_changed(self, old: WorkerPodObject | None, new: WorkerPodObject | None) -> None:
        for each in (old, new):
            if each is not None and each.metadata.controller_uid:
                self._queue.add(each.metadata.controller_uid)

    def _node_changed(self, old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> None:
        if old is None or new is None or _placing_of(old) != _placing_of(new):
            for uid in self._gathering.on_nodes():
                self._queue.add(uid)
        if old and new and _concerns_workers(old) == _concerns_workers(new):
            return
        for each in {node.name for node in (old, new) if node is not None}:
            for pod in self._by_kube_node.get(each):
                self._queue.add(pod.metadata.controller_uid)

    def _namespace(self, key: str) -> str:
        found = self._node_sets.get(key)
        return found.metadata.namespace if found else ""


def _concerns_workers(node: KubeNodeFacts) -> tuple[object, ...]:
    """Return what matters to the workers that are there."""
    cordoned = node.annotations.get(names.CORDON_REASON_ANNOTATION)
    return node.is_unschedulable, cordoned, node.annotations.get(TOPOLOGY_ANNOTATION)


def _placing_of(node: KubeNodeFacts) -> tuple[object, ...]:
    """Return what says whether it gets a worker."""
    host = node.annotations.get(HOST_ANNOTATION)
    return node.labels, node.taints, node.is_unschedulable, node.is_deleting, host


def _to_be_told(situation: NodeSetSituation, acted: Acted) -> Iterator[str]:
    """Yield what a person has to see to; what passes by itself is tried again and logged."""
    yield from dict.fromkeys(str(failure) for failure in acted.failures if not failure.transient)
    for name in planning.strays(situation):
        yield f"pod {name} is owned by it and has no number: delete it"
    yield from situation.on_nodes.faults if situation.on_nodes else ()


def _raise_first(acted: Acted) -> None:
    """Raise what failed, so that it is tried again; what a person has to see to comes last."""
    failures: list[PeerError] = sorted(acted.failures, key=lambda failure: not failure.transient)
    if failures:
        raise failures[0]
