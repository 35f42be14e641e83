"""The reconcile loop over SlurmClusters: gather, plan, act, report."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars
from typing_extensions import override

from slurmoperator.clusters import expanding, planning, summary, yielding
from slurmoperator.clusters.planning import ClusterPlan, ClusterSituation, ObjectId, ObjectPlan
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTER, WatchedCluster
from slurmoperator.clusters.summary import ClusterFacts, PartState
from slurmoperator.clusters.yielding import RemainingBody
from slurmoperator.daemons.part import PARTS, WatchedPart
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.own.slurm_cluster import SlurmClusterObject
from slurmoperator.rendering.body import identity
from slurmoperator.rendering.site import ELSEWHERE, NamespaceScope
from slurmoperator.reports import StatusReports
from slurmruntime.crd.metadata import ObjectMetadata, controllers
from slurmruntime.kube import errors, lists
from slurmruntime.kube.apply import ownership, writes
from slurmruntime.kube.apply.owned_objects import ObjectOwner, withdraw
from slurmruntime.kube.apply.ownership import OwnershipMetadata
from slurmruntime.kube.cache import Cache, Index
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.errors import PEER_ERRORS, PeerError

_log = structlog.get_logger(__name__)

_SETTLED: Final = timedelta(seconds=60)
_WAITING: Final = timedelta(seconds=5)

_Child = WatchedPart | WatchedNodeSet


@dataclass(frozen=True, slots=True)
class _ObjectResult:
    """An object that is as it should be."""

    remaining: RemainingBody
    generation: int = 0
    """The one that was written in this look; 0 if nothing was."""


class ClusterLoop(Keys[str]):
    """Reconciles SlurmClusters during one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        clusters: Cache[WatchedCluster],
        parts: Mapping[str, Cache[WatchedPart]],
        node_sets: Cache[WatchedNodeSet],
        served: NamespaceScope,
        process: Process,
    ) -> None:
        """Prepare the loop. SlurmClusters outside the served namespaces only get a condition that says so."""
        self._kube = kube
        self._reports = StatusReports(kube, process)
        self._clusters = clusters
        self._served = served
        self._clock = process.clock
        self._children: dict[str, Index[WatchedPart] | Index[WatchedNodeSet]] = {
            **{kind: cache.index(_owner_of) for kind, cache in parts.items()},
            "NodeSet": node_sets.index(_owner_of),
        }
        owners = partial(controllers, clusters.get)
        self._controller = Controller(
            "clusters",
            self.reconcile,
            [
                Watch(clusters, _changed),
                *(Watch(cache, owners) for cache in parts.values()),
                Watch(node_sets, owners),
            ],
            process=process,
            keys=self,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile SlurmClusters until `stop` is set."""
        await self._controller.run(stop, workers=1)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one SlurmCluster; return the delay until the next time if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        watched = self._clusters.get(key)
        if watched is None:
            return None
        bind_contextvars(slurm_cluster=watched.metadata.full_name)
        try:
            return await self._reconcile(watched)
        except errors.NotFound:
            _log.debug("cluster.gone_already")
            return None

    async def _reconcile(self, watched: WatchedCluster) -> timedelta | None:
        elsewhere = self._served.fault(watched.metadata.namespace)
        if watched.metadata.deletion_timestamp is not None:
            return await self._release(watched, elsewhere)
        if elsewhere or watched.parsed is None:
            reason = ELSEWHERE if elsewhere else "BadInput"
            facts = ClusterFacts(accepted=elsewhere or watched.fault, accepted_reason=reason)
            await self._report(watched, facts)
            return None
        cluster = watched.parsed
        watched = await SLURM_CLUSTER.add_finalizer(self._kube, self._clusters, watched)
        return await self._look(watched, cluster)

    async def _look(self, watched: WatchedCluster, cluster: SlurmClusterObject) -> timedelta:
        situation = await self._gather(cluster)
        plan = planning.plan(situation)
        if plan.refused:
            refused = ClusterFacts(accepted=plan.refused, accepted_reason="NotOurs")
            await self._report(watched, refused)
            return _WAITING
        applied, failure = await self._act(plan, planning.object_owner(watched.metadata))
        facts = ClusterFacts(
            foreign_fields=tuple(_foreign_fields(applied)),
            failures=(*plan.late, *_lasting(failure)),
            parts=tuple(self._states(situation, applied)),
        )
        await self._report(watched, facts)
        if failure is not None:
            raise failure
        return _SETTLED if summary.is_ready(facts) else _WAITING

    async def _gather(self, cluster: SlurmClusterObject) -> ClusterSituation:
        desired = expanding.expand(cluster)
        existing: dict[ObjectId, OwnershipMetadata] = {}
        for body in desired:
            if (metadata := await writes.find(self._kube, body)) is not None:
                existing[planning.object_id(body)] = metadata
        children = [
            (kind, child.metadata.name)
            for kind, of_owner in self._children.items()
            for child in of_owner.get(cluster.metadata.key_as_owner)
        ]
        return ClusterSituation(
            cluster=cluster, desired=desired, existing=existing, children=children
        )

    async def _act(
        self, plan: ClusterPlan, owner: ObjectOwner
    ) -> tuple[list[_ObjectResult], PeerError | None]:
        """Apply the objects and delete what is unwanted; return what is as it should be, and the first failure."""
        applied: list[_ObjectResult] = []
        failure: PeerError | None = None
        for planned in plan.objects:
            try:
                applied.append(await self._apply(planned, owner))
            except errors.Conflict as error:  # it concerns only this object
                failure = failure or error
            except PEER_ERRORS as error:
                failure = failure or error
                break
        if failure is None:
            try:
                await withdraw(self._kube, plan.unwanted, owner)
            except PEER_ERRORS as error:
                failure = error
        return applied, failure

    async def _apply(self, planned: ObjectPlan, owner: ObjectOwner) -> _ObjectResult:
        """Apply an object; a field that another manager has taken in the meantime is left to it."""
        if planned.is_in_force:
            return _ObjectResult(planned.remaining)
        remaining = planned.remaining
        try:
            metadata = await self._write(remaining.body, planned.uid, owner)
        except errors.Conflict as error:
            fields = {path.removeprefix(".") for path in error.fields}
            remaining = yielding.drop_fields(remaining, fields)
            if remaining == planned.remaining:
                raise
            metadata = await self._write(remaining.body, planned.uid, owner)
        _log.info("cluster.applied", applied=remaining.body["kind"])
        return _ObjectResult(remaining, metadata.generation)

    async def _write(self, body: JsonObject, uid: str, owner: ObjectOwner) -> OwnershipMetadata:
        yields = not owner.takes_over
        return await writes.apply(self._kube, body, manager=owner.manager, uid=uid, yields=yields)

    async def _release(self, watched: WatchedCluster, elsewhere: str) -> timedelta | None:
        """Keep a deleted cluster until its workers are gone; `elsewhere` is why we do not serve its namespace."""
        if not SLURM_CLUSTER.has_finalizer(watched):
            return None
        if watched.is_orphaning:
            await self._detach(watched.metadata)
        # From the API server itself: a NodeSet that no watch has shown yet has jobs, too.
        elif node_sets := await self._node_sets_of(watched.metadata):
            return await self._empty(watched, node_sets, elsewhere)
        await SLURM_CLUSTER.remove_finalizer(self._kube, watched)
        return None

    async def _node_sets_of(self, cluster: ObjectMetadata) -> list[WatchedNodeSet]:
        listed = await lists.listing(self._kube, NODE_SETS, namespace=cluster.namespace)
        return [node_set for node_set in listed if node_set.metadata.controller_uid == cluster.uid]

    async def _empty(
        self, watched: WatchedCluster, node_sets: Sequence[WatchedNodeSet], elsewhere: str
    ) -> timedelta:
        """Delete the NodeSets of a deleted cluster, whose workers go when their jobs have ended; none where we do not serve it."""
        if elsewhere:
            await self._report(watched, ClusterFacts(accepted=elsewhere, accepted_reason=ELSEWHERE))
            return _SETTLED
        owner = planning.object_owner(watched.metadata)
        are_ours = {
            node_set.metadata.name: await self._is_ours(node_set, owner) for node_set in node_sets
        }
        plan = planning.plan_release(watched.metadata.namespace, are_ours)
        try:
            await withdraw(self._kube, plan.unwanted, owner)
        except PEER_ERRORS as error:
            facts = ClusterFacts(waits=plan.waits, failures=tuple(_lasting(error)))
            await self._report(watched, facts)
            raise
        await self._report(watched, ClusterFacts(waits=plan.waits))
        return _WAITING

    async def _detach(self, cluster: ObjectMetadata) -> None:
        """Detach everything from a cluster that is deleted with `--cascade=orphan`, whatever the garbage collector has seen."""
        namespace = cluster.namespace
        node_sets = await lists.listing(self._kube, NODE_SETS, namespace=namespace)
        bodies = [identity("NodeSet", namespace, node_set.metadata.name) for node_set in node_sets]
        for part_kind in PARTS.values():
            parts = await lists.listing(self._kube, part_kind, namespace=namespace)
            bodies += [identity(part.kind, namespace, part.metadata.name) for part in parts]
        for body in (*bodies, *expanding.extra_objects(cluster)):
            await writes.detach(self._kube, body, owner_uid=cluster.uid)

    async def _is_ours(self, node_set: WatchedNodeSet, owner: ObjectOwner) -> bool:
        meta = node_set.metadata
        existing = await writes.find(self._kube, identity("NodeSet", meta.namespace, meta.name))
        return existing is None or ownership.is_ours(
            existing, owner_uid=owner.uid, manager=owner.manager
        )

    # -- status -----------------------------------------------------------------------------------

    def _states(
        self, situation: ClusterSituation, applied: Sequence[_ObjectResult]
    ) -> Iterator[PartState]:
        """Yield the states of all parts; one that has just been applied has not reported on that."""
        generations = {
            planning.object_id(written.remaining.body): written.generation for written in applied
        }
        for body in situation.desired:
            kind, name = planning.object_id(body)
            if kind not in self._children:
                continue
            owner = situation.cluster.metadata.key_as_owner
            of_kind: list[_Child] = [*self._children[kind].get(owner)]
            child = next((child for child in of_kind if child.metadata.name == name), None)
            if child is None:
                yield PartState(name=f"{kind} {name}")
                continue
            yield PartState(
                name=f"{kind} {name}",
                generation=max(child.metadata.generation, generations.get((kind, name), 0)),
                conditions=child.status.conditions,
                workers=child.status if isinstance(child.status, NodeSetStatus) else None,
            )

    async def _report(self, watched: WatchedCluster, facts: ClusterFacts) -> None:
        now, generation = self._clock.now(), watched.metadata.generation
        after = summary.status(watched.status, facts, generation=generation, now=now)
        await self._reports.write(SLURM_CLUSTER, self._clusters, watched, after)

    # -- events -----------------------------------------------------------------------------------

    @override
    def lane(self, key: str, /) -> str:
        watched = self._clusters.get(key)
        return watched.metadata.namespace if watched else ""


def _changed(old: WatchedCluster | None, new: WatchedCluster | None) -> Iterator[str]:
    if old is not None and new is not None and old.asked == new.asked:
        return
    for version in (old, new):
        if version is not None:
            yield version.metadata.uid


def _owner_of(child: _Child) -> list[str]:
    return [child.metadata.controller_key] if child.metadata.controller_key else []


def _foreign_fields(applied: Sequence[_ObjectResult]) -> Iterator[str]:
    for written in applied:
        if written.remaining.foreign_fields:
            name = " ".join(planning.object_id(written.remaining.body))
            fields = ", ".join(written.remaining.foreign_fields)
            yield f"{name}: another manager owns {fields}, which is left as it is"


def _lasting(failure: PeerError | None) -> Iterator[str]:
    """Yield a message for a failure that does not pass by itself."""
    if isinstance(failure, errors.Conflict) and failure.fields:
        hint = f"release the fields, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take them over"
        yield f"{failure}; {hint}"
    elif failure is not None and not failure.transient:
        yield str(failure)
