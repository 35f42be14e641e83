"""The PVCs of workers: created before the worker, reused by its ordinal, deleted when unneeded.

That is after the last worker of a deleted NodeSet (`whenDeleted`), or when an ordinal has not been
desired for a while (`whenScaled`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import structlog

from slurmoperator.nodesets import names
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.nodesets.plan import look
from slurmoperator.nodesets.plan.look import Outcome
from slurmoperator.nodesets.volumes import unneeded
from slurmoperator.nodesets.volumes.unneeded import OrdinalClaim
from slurmoperator.nodesets.worker_pods import WORKER_PODS
from slurmoperator.objects.labels import INSTANCE_LABEL, MADE_BY_US
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, is_on_nodes
from slurmoperator.recent import RECHECK, RecentResults
from slurmoperator.rendering.node_sets.claims import (
    NODE_SET_UID_ANNOTATION,
    UNNEEDED_ANNOTATION,
    claim_bodies,
    claim_number,
)
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, lists, paths, resource
from slurmruntime.kube.client import JSON_PATCH, KubeClient

_log = structlog.get_logger(__name__)

_PLURAL: Final = "persistentvolumeclaims"
_UID_PATH: Final = f"/metadata/annotations/{NODE_SET_UID_ANNOTATION.replace('/', '~1')}"
_MARK_PATH: Final = f"/metadata/annotations/{UNNEEDED_ANNOTATION.replace('/', '~1')}"


class _ClaimObject(ObjectStruct, frozen=True):
    metadata: ObjectMetadata

    @property
    def is_ours(self) -> bool:
        """Whether we created it, for any NodeSet."""
        key, _, value = MADE_BY_US.partition("=")
        return self.metadata.labels.get(key) == value

    @property
    def instance(self) -> str:
        """The NodeSet that we created it for. Its own name does not tell: `a-b` with `c` and `a` with `b-c` have the same."""
        return self.metadata.labels.get(INSTANCE_LABEL, "")

    @property
    def node_set_uid(self) -> str | None:
        """The uid of the NodeSet that uses it."""
        return self.metadata.annotations.get(NODE_SET_UID_ANNOTATION)

    @property
    def mark(self) -> str | None:
        """Since when it has been unneeded, as written there."""
        return self.metadata.annotations.get(UNNEEDED_ANNOTATION)

    @property
    def unneeded_since(self) -> datetime | None:
        """The mark as a moment; None if there is none or it cannot be parsed."""
        try:
            since = datetime.fromisoformat(self.mark or "")
        except ValueError:
            return None
        return since if since.tzinfo else None


CLAIMS: Final = resource.own_kind(
    paths.collection("v1", _PLURAL), "PersistentVolumeClaim", _ClaimObject
)


def path(namespace: str, name: str) -> str:
    """Return the API path of a PVC."""
    return paths.collection("v1", _PLURAL, namespace) + paths.of(name)


class WorkerClaims:
    """Creates and deletes the PVCs of NodeSets' workers."""

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._checked = RecentResults[frozenset[int], bool](monotonic)
        """By the NodeSet's uid, for the ordinals that are needed."""

    async def create(self, node_set: NodeSetObject, key: WorkerKey) -> None:
        """Create all missing PVCs of a worker, before its pod is created.

        Raises:
            Conflict: one is being deleted: the worker waits until it is gone.
            Rejected: one belongs to another object, or was created for another NodeSet.
            KubeError: one was not created, or the outcome is unknown.
        """
        for body in claim_bodies(node_set, key):
            await self._create_one(node_set, body)

    async def _create_one(self, node_set: NodeSetObject, body: Mapping[str, Any]) -> None:
        meta = node_set.metadata
        collection = paths.collection("v1", _PLURAL, meta.namespace)
        where = path(meta.namespace, body["metadata"]["name"])
        try:
            await self._kube.request("POST", collection, body=body)
        except errors.Conflict as conflict:
            claim = CLAIMS.read(await self._kube.request("GET", where))
            label = f"PVC {claim.metadata.full_name}"
            if claim.metadata.deletion_timestamp is not None:
                text = f"{label} is being deleted; its worker starts when it is gone"
                raise errors.Conflict("POST", where, message=text) from conflict
            if owner := next(iter(claim.metadata.owner_references), None):
                text = f"{label} belongs to {owner.kind} {owner.name}: delete it, or rename the NodeSet"
                raise errors.Rejected("POST", where, message=text) from conflict
            if claim.is_ours and claim.instance != meta.name:
                text = f"{label} was made for NodeSet {claim.instance}: rename the template in volumeClaimTemplates"
                raise errors.Rejected("POST", where, message=text) from conflict
            # One that somebody else created is used as it is, and stays theirs.
            if claim.is_ours and (claim.node_set_uid != meta.uid or claim.mark is not None):
                await self._adopt(claim, meta.uid)
            return
        _log.info("claim.created", claim=body["metadata"]["name"])

    async def _adopt(self, claim: _ClaimObject, uid: str) -> None:
        """Take over a PVC of an earlier NodeSet of this name, and remove the mark of an unneeded one; a conflict if it has changed meanwhile."""
        operations: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/uid", "value": claim.metadata.uid},
            {"op": "test", "path": _UID_PATH, "value": claim.node_set_uid},
            {"op": "add", "path": _UID_PATH, "value": uid},
        ]
        if claim.mark is not None:
            operations.append({"op": "test", "path": _MARK_PATH, "value": claim.mark})
            operations.append({"op": "remove", "path": _MARK_PATH})
        where = path(claim.metadata.namespace, claim.metadata.name)
        try:
            await self._kube.request("PATCH", where, body=operations, content_type=JSON_PATCH)
        except errors.NotFound as gone:
            text = f"PVC {claim.metadata.full_name} was deleted; recreating it"
            raise errors.Conflict("PATCH", where, message=text) from gone

    async def delete_all(self, node_set: NodeSetObject) -> None:
        """Delete the PVCs of a deleted NodeSet without workers, if `whenDeleted` says so.

        Only those that we created for exactly this NodeSet go, in the version that was read: one that somebody else created, or that
        an earlier NodeSet left and none of its workers used, stays.

        Raises:
            KubeError: one was not deleted, or the outcome is unknown.
        """
        policy = node_set.spec.persistent_volume_claim_retention_policy
        if not node_set.spec.volume_claim_templates or policy is None:
            return
        if policy.when_deleted != "Delete":
            return
        for claim in await self._list_own(node_set):
            await self._delete(claim)

    async def delete_unneeded(
        self, node_set: NodeSetObject, *, needed: Collection[int], now: datetime
    ) -> Outcome:
        """Delete PVCs of ordinals not desired for a while, if `whenScaled` says so; return when to call it again.

        The decision is `unneeded`. An ordinal stays desired whatever happens to its worker: an update, a cordon
        or an eviction costs no volume. With one worker on each node, no PVC is deleted: a node may come back. `needed` are the
        ordinals of desired and of existing workers.

        Raises:
            Conflict: the NodeSet or one of the PVCs has changed meanwhile.
            KubeError: one was not marked or deleted, or the outcome is unknown.
        """
        meta, policy = node_set.metadata, node_set.spec.persistent_volume_claim_retention_policy
        deletes = policy is not None and policy.when_scaled == "Delete"
        if not deletes or not node_set.spec.volume_claim_templates or is_on_nodes(node_set):
            return Outcome()
        if self._checked.of(meta.uid, frozenset(needed)):
            return Outcome(delays=(self._checked.remaining(meta.uid),))
        claims = {claim.metadata.name: claim for claim in await self._list_own(node_set)}
        plan = unneeded.plan(_ordinal_claims(node_set, claims.values()), needed=needed, now=now)
        for name in sorted(plan.unmarked):
            await self._mark(claims[name], None)
        for name in sorted(plan.marked):
            await self._mark(claims[name], now)
        if plan.deleted:
            existing = await self._existing_ordinals(node_set)
            for name in sorted(plan.deleted):
                if claim_number(node_set, name) not in existing:
                    await self._delete(claims[name])
        wait = min(plan.requeue_after or RECHECK, RECHECK)
        self._checked.put(meta.uid, frozenset(needed), result=True, lasts=wait)
        return Outcome(delays=(wait,))

    async def _list_own(self, node_set: NodeSetObject) -> list[_ClaimObject]:
        """Return our PVCs for exactly this NodeSet that are not being deleted, uncached."""
        meta = node_set.metadata
        params = {"labelSelector": f"{names.selector(meta.name)},{MADE_BY_US}"}
        listed = await lists.listing(self._kube, CLAIMS, namespace=meta.namespace, params=params)
        return [
            claim
            for claim in listed
            if claim.node_set_uid == meta.uid and claim.metadata.deletion_timestamp is None
        ]

    async def _existing_ordinals(self, node_set: NodeSetObject) -> frozenset[int]:
        """Return the ordinals of existing workers, uncached; a conflict if the NodeSet has changed since the decision."""
        meta = node_set.metadata
        only = {"fieldSelector": f"metadata.name={meta.name}"}
        listed = await lists.listing(self._kube, NODE_SETS, namespace=meta.namespace, params=only)
        current = next((other.metadata for other in listed if other.metadata.uid == meta.uid), None)
        decided_on = (meta.generation, None)
        if current is None or (current.generation, current.deletion_timestamp) != decided_on:
            text = f"NodeSet {meta.full_name} has changed; checking its volumes again"
            raise errors.Conflict("GET", NODE_SETS.path, message=text)
        params = {"labelSelector": names.selector(meta.name)}
        pods = await lists.listing(self._kube, WORKER_PODS, namespace=meta.namespace, params=params)
        keys = (look.worker_key(meta.name, pod) for pod in pods)
        return frozenset(key for key in keys if isinstance(key, int))

    async def _mark(self, claim: _ClaimObject, since: datetime | None) -> None:
        """Mark exactly this version of a PVC as unneeded since a moment; None removes the mark."""
        meta, where = claim.metadata, path(claim.metadata.namespace, claim.metadata.name)
        value = since.replace(microsecond=0).isoformat() if since is not None else ""
        change: dict[str, object] = {"op": "add", "path": _MARK_PATH, "value": value}
        if since is None:
            change = {"op": "remove", "path": _MARK_PATH}
        body: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            change,
        ]
        with contextlib.suppress(errors.NotFound):
            await self._kube.request("PATCH", where, body=body, content_type=JSON_PATCH)
        _log.info("claim.marked", claim=meta.full_name, unneeded_since=value)

    async def _delete(self, claim: _ClaimObject) -> None:
        meta, where = claim.metadata, path(claim.metadata.namespace, claim.metadata.name)
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        with contextlib.suppress(errors.NotFound):
            await self._kube.request("DELETE", where, body={"preconditions": same})
        _log.info("claim.deleted", claim=meta.full_name)


def _ordinal_claims(
    node_set: NodeSetObject, claims: Collection[_ClaimObject]
) -> Iterator[OrdinalClaim]:
    for claim in claims:
        name, since = claim.metadata.name, claim.unneeded_since
        number = claim_number(node_set, name)
        if number is not None and not claim.metadata.owner_references:
            yield OrdinalClaim(name=name, number=number, unneeded_since=since)
