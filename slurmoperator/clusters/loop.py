"""The reconcile loop over SlurmClusters: expand, apply, take away, tell."""

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
from slurmoperator.rendering.site import ELSEWHERE, ServedNamespaces
from slurmruntime.kube import errors, lists
from slurmruntime.kube.apply import standing, writes
from slurmruntime.kube.apply.belongings import Possessor, withdraw
from slurmruntime.kube.apply.standing import Standing, StandingVerdict
from slurmruntime.kube.cache import Cache, Index
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.errors import PeerError
from slurmruntime.values.oddities import Oddities

_log = structlog.get_logger(__name__)

MANAGER: Final = "slurm-bridge-cluster"
"""Our field manager on what is made for SlurmClusters."""
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
        served: ServedNamespaces,
        queue: WorkQueue[str],
        clock: Clock,
        metrics: Metrics,
        set_aside: Oddities,
    ) -> None:
        """Prepare the loop.

        Args:
            kube: the API server.
            clusters: all SlurmClusters, by uid.
            parts: objects of the control plane, by kind and uid.
            node_sets: all of them, by uid.
            served: whose SlurmClusters are seen to; of others it is only told that they are not.
            queue: of SlurmClusters' uids.
            clock: of the process.
            metrics: counts.
            set_aside: told of crashes.
        """
        self._kube = kube
        self._clusters = clusters
        self._parts = parts
        self._node_sets = node_sets
        self._served = served
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._set_aside = set_aside
        self._children: dict[str, Index[WatchedPart] | Index[WatchedNodeSet]] = {
            **{kind: cache.index(_owner_of) for kind, cache in parts.items()},
            "NodeSet": node_sets.index(_owner_of),
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile SlurmClusters until told to stop."""
        self._clusters.subscribe(self._changed)
        for cache in self._parts.values():
            cache.subscribe(self._child_changed)
        self._node_sets.subscribe(self._child_changed)
        await worker.run(
            self._queue,
            self.reconcile,
            name="clusters",
            count=1,
            stop=stop,
            metrics=self._metrics,
            aside=Aside(self._set_aside, "workload"),
        )

    async def reconcile(self, key: str) -> timedelta | None:
        """Look at one SlurmCluster and do what is needed.

        Return the delay until the next look if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        found = self._clusters.get(key)
        if found is None:
            return None
        bind_contextvars(slurm_cluster=found.metadata.full_name)
        try:
            return await self._look_at(found)
        except errors.NotFound:
            _log.debug("cluster.gone_already")
            return None

    async def _look_at(self, found: WatchedCluster) -> timedelta | None:
        elsewhere = self._served.fault(found.metadata.namespace)
        if found.metadata.deletion_timestamp is not None:
            return await self._let_go(found, elsewhere)
        if elsewhere or found.whole is None:
            reason = ELSEWHERE if elsewhere else "BadInput"
            facts = ClusterFacts(accepted=elsewhere or found.fault, accepted_reason=reason)
            await self._tell(found, facts)
            return None
        whole = found.whole
        found = await SLURM_CLUSTER.hold(self._kube, self._clusters, found)
        return await self._see_to(found, whole)

    async def _see_to(self, found: WatchedCluster, cluster: SlurmClusterObject) -> timedelta:
        wanted = expanding.expanded(cluster)
        left: list[str] = []
        late: list[str] = []
        failure: PeerError | None = None
        for body in wanted:
            try:
                kept = await self._keep(body, _possessor(found), left)
            except PeerError as error:
                failure = failure or error
                if not isinstance(error, errors.Conflict):  # which costs only this object
                    break
                continue
            if kept.standing is Standing.NOT_OURS:
                hint = f"delete it, choose another name for the SlurmCluster, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take over what nobody else controls"
                text = f"{kept.reason}; {hint}"
                await self._tell(found, ClusterFacts(accepted=text, accepted_reason="NotOurs"))
                return _WAITING
            if kept.standing is Standing.LEAVING:
                late.append(kept.reason)
        if failure is None and not late:
            unwanted = tuple(self._unwanted(found, wanted))
            failure = await withdraw(self._kube, unwanted, _possessor(found))
        facts = ClusterFacts(
            left=tuple(left),
            failures=(*late, *_to_be_told(failure)),
            parts=tuple(self._states(found, wanted)),
        )
        await self._tell(found, facts)
        if failure is not None:
            raise failure
        return _SETTLED if summary.is_ready(facts) else _WAITING

    async def _keep(
        self, body: Mapping[str, Any], of: Possessor, left: list[str]
    ) -> StandingVerdict:
        """Bring one object to what is wanted, unless it is not ours or being deleted; return how it stood.

        left: takes what is left to others, in words.
        """
        there = await writes.find(self._kube, body)
        yielded = yielding.Yielded(body, ())
        if not of.takes_over:
            yielded = yielding.to_owners(body, there, of.manager)
        verdict = standing.judge(
            there,
            yielded.body,
            owner_uid=of.uid,
            manager=of.manager,
            takes_over=of.takes_over,
        )
        if verdict.standing in (Standing.NOT_OURS, Standing.LEAVING):
            return verdict
        if verdict.standing is not Standing.IN_FORCE:
            yielded = await self._apply(yielded, there.uid if there else "", of)
        if yielded.left:
            what = f"{body['kind']} {body['metadata']['name']}"
            fields = ", ".join(yielded.left)
            left.append(f"{what}: {fields} is left to who has set it")
        return verdict

    async def _apply(self, yielded: yielding.Yielded, uid: str, of: Possessor) -> yielding.Yielded:
        """Apply a body; a field that somebody has taken just now is left to them."""

        async def applied(body: Mapping[str, Any]) -> None:
            yields = not of.takes_over
            await writes.apply(self._kube, body, manager=of.manager, uid=uid, yields=yields)

        try:
            await applied(yielded.body)
        except errors.Conflict as error:
            less = yielding.without(yielded.body, error.fields)
            if not less.left:
                raise
            await applied(less.body)
            yielded = yielding.Yielded(less.body, (*yielded.left, *less.left))
        _log.info("cluster.applied", applied=yielded.body["kind"])
        return yielded

    async def _let_go(self, found: WatchedCluster, elsewhere: str) -> timedelta | None:
        """Delete the workers of a deleted cluster, and keep all else until they are gone.

        They are read from the API server itself: those that no watch has told yet have jobs, too.

        elsewhere: why the cluster is not ours to serve; then nothing of it is deleted.
        """
        if not SLURM_CLUSTER.holds(found) or found.is_orphaning:
            return None
        uid, namespace = found.metadata.uid, found.metadata.namespace
        listed = await lists.listing(self._kube, NODE_SETS, namespace=namespace)
        node_sets = [each for each in listed if each.metadata.controller_uid == uid]
        if not node_sets:
            await SLURM_CLUSTER.let_go(self._kube, found)
            return None
        if elsewhere:
            await self._tell(found, ClusterFacts(accepted=elsewhere, accepted_reason=ELSEWHERE))
            return _SETTLED
        bodies = [_named("NodeSet", each) for each in node_sets]
        theirs = [body for body in bodies if not await self._is_ours(body, uid)]
        failure = await withdraw(self._kube, bodies, _possessor(found))
        waits = tuple(_waits([body for body in bodies if body not in theirs], theirs))
        facts = ClusterFacts(waits=waits, failures=tuple(_to_be_told(failure)))
        await self._tell(found, facts)
        if failure is not None:
            raise failure
        return _WAITING

    async def _is_ours(self, body: Mapping[str, Any], uid: str) -> bool:
        there = await writes.find(self._kube, body)
        return there is None or standing.is_ours(there, owner_uid=uid, manager=MANAGER)

    # -- what there is ----------------------------------------------------------------------------

    def _made(self, kind: str, uid: str) -> list[_Child]:
        return [*self._children[kind].get(uid)]

    def _unwanted(
        self, found: WatchedCluster, wanted: tuple[Mapping[str, Any], ...]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield what we may have made and want no more."""
        kept = {(each["kind"], each["metadata"]["name"]) for each in wanted}
        for kind in self._children:
            for each in self._made(kind, found.metadata.uid):
                if (kind, each.metadata.name) not in kept:
                    yield _named(kind, each)
        for extra in expanding.extras(found.metadata):
            if (extra["kind"], extra["metadata"]["name"]) not in kept:
                yield extra

    def _states(
        self, found: WatchedCluster, wanted: tuple[Mapping[str, Any], ...]
    ) -> Iterator[PartState]:
        for body in wanted:
            kind, name = body["kind"], body["metadata"]["name"]
            if kind not in self._children:
                continue
            of_kind = self._made(kind, found.metadata.uid)
            child = next((each for each in of_kind if each.metadata.name == name), None)
            if child is None:
                yield PartState(name=f"{kind} {name}")
                continue
            yield PartState(
                name=f"{kind} {name}",
                generation=child.metadata.generation,
                conditions=child.status.conditions,
                workers=child.status if isinstance(child.status, NodeSetStatus) else None,
            )

    async def _tell(self, found: WatchedCluster, facts: ClusterFacts) -> None:
        now, generation = self._clock.now(), found.metadata.generation
        after = summary.status(found.status, facts, generation=generation, now=now)
        await SLURM_CLUSTER.tell(self._kube, self._clusters, found, after)

    # -- events -----------------------------------------------------------------------------------

    def _changed(self, old: WatchedCluster | None, new: WatchedCluster | None) -> None:
        if old is not None and new is not None and old.asked == new.asked:
            return
        for each in (old, new):
            if each is not None:
                self._queue.add(each.metadata.uid)

    def _child_changed(self, old: _Child | None, new: _Child | None) -> None:
        for each in (old, new):
            if each is not None and self._clusters.get(each.metadata.controller_uid) is not None:
                self._queue.add(each.metadata.controller_uid)


def _owner_of(child: _Child) -> list[str]:
    return [child.metadata.controller_uid] if child.metadata.controller_uid else []


def _possessor(found: WatchedCluster) -> Possessor:
    takes_over = found.metadata.annotations.get(TAKE_OVER_ANNOTATION) == "true"
    return Possessor(uid=found.metadata.uid, manager=MANAGER, takes_over=takes_over)


def _named(kind: str, child: _Child) -> Mapping[str, Any]:
    metadata = {"name": child.metadata.name, "namespace": child.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _to_be_told(failure: PeerError | None) -> Iterator[str]:
    """Yield what does not pass by itself."""
    if isinstance(failure, errors.Conflict) and failure.fields:
        hint = f"give the fields back, or annotate the SlurmCluster with {TAKE_OVER_ANNOTATION}=true to take them over"
        yield f"{failure}; {hint}"
    elif failure is not None and not failure.transient:
        yield str(failure)


def _waits(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what a deleted cluster waits for."""
    if ours:
        yield f"it waits for the jobs on the workers of NodeSet {_names(ours)}"
    if theirs:
        what = f"NodeSet {_names(theirs)} belongs to it and is not ours to delete, because somebody else has taken it over"
        yield f"{what}: delete it, or take its owner reference off to keep it"


def _names(bodies: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted(body["metadata"]["name"] for body in bodies))
