"""The reconcile loop over SlurmClusters: expand, apply, delete, report."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog
from structlog.contextvars import bind_contextvars

from slurmoperator.clusters import expanding, summary, yielding
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTER, WatchedCluster
from slurmoperator.clusters.summary import ClusterFacts, PartState
from slurmoperator.daemons.part import WatchedPart
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.own.slurm_cluster import SlurmClusterObject
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.rendering.site import ELSEWHERE, NamespaceScope
from slurmruntime.kube import errors, lists
from slurmruntime.kube.apply import ownership, writes
from slurmruntime.kube.apply.owned_objects import ObjectOwner, withdraw
from slurmruntime.kube.apply.ownership import Ownership, OwnershipVerdict
from slurmruntime.kube.cache import Cache, Index
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Controller, Process, Watch
from slurmruntime.values.errors import PEER_ERRORS, PeerError

_log = structlog.get_logger(__name__)

MANAGER: Final = "slurm-bridge-cluster"
"""Our field manager on the objects of SlurmClusters."""
_SETTLED: Final = timedelta(seconds=60)
_WAITING: Final = timedelta(seconds=5)

_Child = WatchedPart | WatchedNodeSet


class ClusterLoop:
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
        self._clusters = clusters
        self._served = served
        self._clock = process.clock
        self._children: dict[str, Index[WatchedPart] | Index[WatchedNodeSet]] = {
            **{kind: cache.index(_owner_of) for kind, cache in parts.items()},
            "NodeSet": node_sets.index(_owner_of),
        }
        self._controller = Controller(
            "clusters",
            self.reconcile,
            [
                Watch(clusters, _changed),
                *(Watch(cache, self._owners) for cache in parts.values()),
                Watch(node_sets, self._owners),
            ],
            process=process,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile SlurmClusters until `stop` is set."""
        await self._controller.run(stop, workers=1)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one SlurmCluster.

        Return the delay until the next reconcile if no event comes first.

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
        return await self._act(watched, cluster)

    async def _act(self, watched: WatchedCluster, cluster: SlurmClusterObject) -> timedelta:
        desired = expanding.expand(cluster)
        foreign_fields: list[str] = []
        late: list[str] = []
        failure: PeerError | None = None
        for body in desired:
            try:
                verdict = await self._ensure(body, _object_owner(watched), foreign_fields)
            except PEER_ERRORS as error:
                failure = failure or error
                if not isinstance(error, errors.Conflict):  # a conflict concerns only this object
                    break
                continue
            if verdict.ownership is Ownership.NOT_OURS:
                hint = f"delete it, choose another name for the SlurmCluster, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take over what no other controller owns"
                text = f"{verdict.reason}; {hint}"
                await self._report(watched, ClusterFacts(accepted=text, accepted_reason="NotOurs"))
                return _WAITING
            if verdict.ownership is Ownership.LEAVING:
                late.append(verdict.reason)
        if failure is None and not late:
            unwanted = tuple(self._unwanted(watched, desired))
            failure = await withdraw(self._kube, unwanted, _object_owner(watched))
        facts = ClusterFacts(
            foreign_fields=tuple(foreign_fields),
            failures=(*late, *_lasting(failure)),
            parts=tuple(self._states(watched, desired)),
        )
        await self._report(watched, facts)
        if failure is not None:
            raise failure
        return _SETTLED if summary.is_ready(facts) else _WAITING

    async def _ensure(
        self, body: Mapping[str, Any], owner: ObjectOwner, foreign_fields: list[str]
    ) -> OwnershipVerdict:
        """Apply one object, unless it is not ours or is being deleted; return its standing before.

        foreign_fields: gets a message about the fields that are left to others.
        """
        existing = await writes.find(self._kube, body)
        remaining = yielding.RemainingBody(body, ())
        if not owner.takes_over:
            remaining = yielding.drop_foreign_fields(body, existing, owner.manager)
        verdict = ownership.judge(
            existing,
            remaining.body,
            owner_uid=owner.uid,
            manager=owner.manager,
            takes_over=owner.takes_over,
        )
        if verdict.ownership in (Ownership.NOT_OURS, Ownership.LEAVING):
            return verdict
        if verdict.ownership is not Ownership.IN_FORCE:
            remaining = await self._apply(remaining, existing.uid if existing else "", owner)
        if remaining.foreign_fields:
            name = f"{body['kind']} {body['metadata']['name']}"
            fields = ", ".join(remaining.foreign_fields)
            foreign_fields.append(f"{name}: another manager owns {fields}, which is left as it is")
        return verdict

    async def _apply(
        self, remaining: yielding.RemainingBody, uid: str, owner: ObjectOwner
    ) -> yielding.RemainingBody:
        """Apply a body; a field that another manager has taken in the meantime is left to it."""

        async def apply(body: Mapping[str, Any]) -> None:
            yields = not owner.takes_over
            await writes.apply(self._kube, body, manager=owner.manager, uid=uid, yields=yields)

        try:
            await apply(remaining.body)
        except errors.Conflict as error:
            reduced = yielding.drop_fields(remaining.body, error.fields)
            if not reduced.foreign_fields:
                raise
            await apply(reduced.body)
            remaining = yielding.RemainingBody(
                reduced.body, (*remaining.foreign_fields, *reduced.foreign_fields)
            )
        _log.info("cluster.applied", applied=remaining.body["kind"])
        return remaining

    async def _release(self, watched: WatchedCluster, elsewhere: str) -> timedelta | None:
        """Delete the workers of a deleted cluster, and keep everything else until they are gone.

        The NodeSets are read from the API server itself: one that no watch has shown yet has jobs, too.

        elsewhere: why we do not serve the cluster's namespace; then nothing is deleted.
        """
        if not SLURM_CLUSTER.has_finalizer(watched) or watched.is_orphaning:
            return None
        uid, namespace = watched.metadata.uid, watched.metadata.namespace
        listed = await lists.listing(self._kube, NODE_SETS, namespace=namespace)
        node_sets = [node_set for node_set in listed if node_set.metadata.controller_uid == uid]
        if not node_sets:
            await SLURM_CLUSTER.remove_finalizer(self._kube, watched)
            return None
        if elsewhere:
            await self._report(watched, ClusterFacts(accepted=elsewhere, accepted_reason=ELSEWHERE))
            return _SETTLED
        bodies = [_identity("NodeSet", node_set) for node_set in node_sets]
        theirs = [body for body in bodies if not await self._is_ours(body, uid)]
        failure = await withdraw(self._kube, bodies, _object_owner(watched))
        waits = tuple(_waits([body for body in bodies if body not in theirs], theirs))
        facts = ClusterFacts(waits=waits, failures=tuple(_lasting(failure)))
        await self._report(watched, facts)
        if failure is not None:
            raise failure
        return _WAITING

    async def _is_ours(self, body: Mapping[str, Any], uid: str) -> bool:
        existing = await writes.find(self._kube, body)
        return existing is None or ownership.is_ours(existing, owner_uid=uid, manager=MANAGER)

    # -- existing objects -------------------------------------------------------------------------

    def _children_of(self, kind: str, uid: str) -> list[_Child]:
        return [*self._children[kind].get(uid)]

    def _unwanted(
        self, watched: WatchedCluster, desired: tuple[Mapping[str, Any], ...]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield objects that we may have created and that are no longer desired."""
        names = {(body["kind"], body["metadata"]["name"]) for body in desired}
        for kind in self._children:
            for child in self._children_of(kind, watched.metadata.uid):
                if (kind, child.metadata.name) not in names:
                    yield _identity(kind, child)
        for extra in expanding.extra_objects(watched.metadata):
            if (extra["kind"], extra["metadata"]["name"]) not in names:
                yield extra

    def _states(
        self, watched: WatchedCluster, desired: tuple[Mapping[str, Any], ...]
    ) -> Iterator[PartState]:
        for body in desired:
            kind, name = body["kind"], body["metadata"]["name"]
            if kind not in self._children:
                continue
            of_kind = self._children_of(kind, watched.metadata.uid)
            child = next((child for child in of_kind if child.metadata.name == name), None)
            if child is None:
                yield PartState(name=f"{kind} {name}")
                continue
            yield PartState(
                name=f"{kind} {name}",
                generation=child.metadata.generation,
                conditions=child.status.conditions,
                workers=child.status if isinstance(child.status, NodeSetStatus) else None,
            )

    async def _report(self, watched: WatchedCluster, facts: ClusterFacts) -> None:
        now, generation = self._clock.now(), watched.metadata.generation
        after = summary.status(watched.status, facts, generation=generation, now=now)
        await SLURM_CLUSTER.write_status(self._kube, self._clusters, watched, after)

    # -- events -----------------------------------------------------------------------------------

    def _owners(self, old: _Child | None, new: _Child | None) -> Iterator[str]:
        for version in (old, new):
            if (
                version is not None
                and self._clusters.get(version.metadata.controller_uid) is not None
            ):
                yield version.metadata.controller_uid


def _changed(old: WatchedCluster | None, new: WatchedCluster | None) -> Iterator[str]:
    if old is not None and new is not None and old.asked == new.asked:
        return
    for version in (old, new):
        if version is not None:
            yield version.metadata.uid


def _owner_of(child: _Child) -> list[str]:
    return [child.metadata.controller_uid] if child.metadata.controller_uid else []


def _object_owner(watched: WatchedCluster) -> ObjectOwner:
    takes_over = watched.metadata.annotations.get(TAKE_OVER_ANNOTATION) == "true"
    return ObjectOwner(uid=watched.metadata.uid, manager=MANAGER, takes_over=takes_over)


def _identity(kind: str, child: _Child) -> Mapping[str, Any]:
    metadata = {"name": child.metadata.name, "namespace": child.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _lasting(failure: PeerError | None) -> Iterator[str]:
    """Yield a message for a failure that does not pass by itself."""
    if isinstance(failure, errors.Conflict) and failure.fields:
        hint = f"release the fields, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take them over"
        yield f"{failure}; {hint}"
    elif failure is not None and not failure.transient:
        yield str(failure)


def _waits(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if ours:
        yield f"waiting for the jobs on the workers of NodeSet {_names(ours)}"
    if theirs:
        blocker = f"NodeSet {_names(theirs)} belongs to it, but another manager has taken it over"
        yield f"{blocker}: delete it, or remove its owner reference to keep it"


def _names(bodies: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted(body["metadata"]["name"] for body in bodies))
