"""The claims of workers' volumes: there before the worker, used again by its number, and deleted only if nobody needs them any more.

That is after the last worker of a deleted NodeSet (`whenDeleted`), or when a number has not been wanted for a while (`whenScaled`).
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import structlog

from slurmoperator.nodesets import names, planning
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.nodesets.worker_pods import WORKER_PODS
from slurmoperator.objects.labels import INSTANCE_LABEL, MADE_BY_US
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey, is_on_nodes
from slurmoperator.rendering.node_sets.claims import (
    NODE_SET_UID_ANNOTATION,
    UNNEEDED_ANNOTATION,
    claim_bodies,
    claim_number,
)
from slurmoperator.workers import volumes
from slurmoperator.workers.volumes import HeldClaim
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, lists, paths, resource
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.kube.resource import ResourceKind

_log = structlog.get_logger(__name__)

_PLURAL: Final = "persistentvolumeclaims"
_UID_PATH: Final = f"/metadata/annotations/{NODE_SET_UID_ANNOTATION.replace('/', '~1')}"
_MARK_PATH: Final = f"/metadata/annotations/{UNNEEDED_ANNOTATION.replace('/', '~1')}"
_LOOK_AGAIN: Final = timedelta(minutes=1)
"""How often claims are listed while the same workers are needed: a NodeSet is looked at whenever one of its pods changes."""


class _ClaimObject(ObjectStruct, frozen=True):
    metadata: ObjectMetadata

    @property
    def is_ours(self) -> bool:
        """Check whether we have made it, for whichever NodeSet."""
        key, _, value = MADE_BY_US.partition("=")
        return self.metadata.labels.get(key) == value

    @property
    def instance(self) -> str:
        """The name of the NodeSet that we have made it for: `a-b` and `c` have claims of the same names as `a` and `b-c`."""
        return self.metadata.labels.get(INSTANCE_LABEL, "")

    @property
    def made_for(self) -> str | None:
        """The uid of the NodeSet that has it."""
        return self.metadata.annotations.get(NODE_SET_UID_ANNOTATION)

    @property
    def mark(self) -> str | None:
        """Since when nobody has needed it, as it stands there."""
        return self.metadata.annotations.get(UNNEEDED_ANNOTATION)

    @property
    def unneeded_since(self) -> datetime | None:
        """The same as a moment; None also for one that cannot be read."""
        try:
            found = datetime.fromisoformat(self.mark or "")
        except ValueError:
            return None
        return found if found.tzinfo else None


_decoder = msgspec.json.Decoder(_ClaimObject)


def read(body: resource.Json) -> _ClaimObject:
    """Decode a claim.

    Raises:
        Malformed: it is none.
    """
    return resource.decoded(_decoder, "PersistentVolumeClaim", body)


CLAIMS: Final = ResourceKind(
    path=paths.collection("v1", _PLURAL),
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
)


def path(namespace: str, name: str) -> str:
    """Return where a claim is."""
    return paths.collection("v1", _PLURAL, namespace) + paths.of(name)


class WorkerClaims:
    """Makes, finds and deletes the claims of NodeSets' workers."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._looked: dict[str, tuple[frozenset[int], datetime]] = {}
        """By the NodeSet's uid: the numbers that were needed at the last look, and when the next one is due."""

    def forget(self, uid: str) -> None:
        """Forget a NodeSet."""
        self._looked.pop(uid, None)

    async def make(self, node_set: NodeSetObject, key: WorkerKey) -> None:
        """See to it that all claims of a worker are there, before its pod is created.

        Raises:
            Conflict: one is being deleted: the worker waits for its end.
            Rejected: one belongs to another object, or was made for another NodeSet.
            KubeError: one was not made, or nobody knows.
        """
        for body in claim_bodies(node_set, key):
            await self._make_one(node_set, body)

    async def _make_one(self, node_set: NodeSetObject, body: Mapping[str, Any]) -> None:
        meta = node_set.metadata
        collection = paths.collection("v1", _PLURAL, meta.namespace)
        path = collection + paths.of(body["metadata"]["name"])
        try:
            await self._kube.request("POST", collection, body=body)
        except errors.Conflict as conflict:
            found = read(await self._kube.request("GET", path))
            what = f"claim {found.metadata.full_name}"
            if found.metadata.deletion_timestamp is not None:
                text = f"{what} is being deleted; its worker waits for its end"
                raise errors.Conflict("POST", path, message=text) from conflict
            if owner := next(
                (owner_reference for owner_reference in found.metadata.owner_references), None
            ):
                text = f"{what} belongs to {owner.kind} {owner.name}: delete it, or give the NodeSet another name"
                raise errors.Rejected("POST", path, message=text) from conflict
            if found.is_ours and found.instance != meta.name:
                text = f"{what} was made for NodeSet {found.instance}: give the template of volumeClaimTemplates another name"
                raise errors.Rejected("POST", path, message=text) from conflict
            # One that somebody else has made is used as it is, and stays theirs.
            if found.is_ours and (found.made_for != meta.uid or found.mark is not None):
                await self._take(found, path, meta.uid)
            return
        _log.info("claim.created", claim=body["metadata"]["name"])

    async def _take(self, found: _ClaimObject, path: str, uid: str) -> None:
        """Make one that an earlier NodeSet of this name has left this one's, and one that was not needed needed again.

        Raises:
            Conflict: it has changed or gone meanwhile.
        """
        operations: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid},
            {"op": "test", "path": _UID_PATH, "value": found.made_for},
            {"op": "add", "path": _UID_PATH, "value": uid},
        ]
        if found.mark is not None:
            operations.append({"op": "test", "path": _MARK_PATH, "value": found.mark})
            operations.append({"op": "remove", "path": _MARK_PATH})
        try:
            await self._kube.request("PATCH", path, body=operations, content_type=JSON_PATCH)
        except errors.NotFound as gone:
            text = f"claim {found.metadata.full_name} has just been deleted; it is made anew"
            raise errors.Conflict("PATCH", path, message=text) from gone

    async def delete_all(self, node_set: NodeSetObject) -> None:
        """Delete those of a deleted NodeSet whose workers have all gone, if `whenDeleted` says so.

        Only what we made for this very NodeSet goes, in the version that was read: one that somebody
        else has made, or that an earlier NodeSet left and none of its workers has used, stays.

        Raises:
            KubeError: one was not deleted, or nobody knows.
        """
        fate = node_set.spec.persistent_volume_claim_retention_policy
        if not node_set.spec.volume_claim_templates or fate is None:
            return
        if fate.when_deleted != "Delete":
            return
        for each in await self._own(node_set):
            await self._delete(each)

    async def delete_unneeded(
        self, node_set: NodeSetObject, *, needed: Collection[int], now: datetime
    ) -> timedelta | None:
        """Delete those of numbers that have not been wanted for a while, if `whenScaled` says so; see `slurmoperator.workers.volumes`.

        A number is wanted whatever becomes of its worker: an update, a cordon or an eviction costs no volume. Of workers
        on Kubernetes nodes, none goes: a node may come back.

        Args:
            node_set: whose workers.
            needed: the numbers of those that there are to be, and of those that are there.
            now: by the wall clock.

        Return when to look again.

        Raises:
            Conflict: the NodeSet has changed meanwhile, or one of the claims.
            KubeError: one was not marked or deleted, or nobody knows.
        """
        meta, fate = node_set.metadata, node_set.spec.persistent_volume_claim_retention_policy
        wants = fate is not None and fate.when_scaled == "Delete"
        if not wants or not node_set.spec.volume_claim_templates or is_on_nodes(node_set):
            self.forget(meta.uid)
            return None
        known, due = self._looked.get(meta.uid, (None, now))
        if known == frozenset(needed) and now < due:
            return due - now
        self.forget(meta.uid)
        found = {each.metadata.name: each for each in await self._own(node_set)}
        plan = volumes.plan(_held(node_set, found.values()), needed=needed, now=now)
        for name in sorted(plan.unmarked):
            await self._mark(found[name], None)
        for name in sorted(plan.marked):
            await self._mark(found[name], now)
        if plan.deleted:
            there = await self._numbers_there(node_set)
            for name in sorted(plan.deleted):
                if claim_number(node_set, name) not in there:
                    await self._delete(found[name])
        wait = min(plan.look_again or _LOOK_AGAIN, _LOOK_AGAIN)
        self._looked[meta.uid] = (frozenset(needed), now + wait)
        return wait

    async def _own(self, node_set: NodeSetObject) -> list[_ClaimObject]:
        """Return those that we made for this very NodeSet, and that nobody has deleted yet, as they are now."""
        meta = node_set.metadata
        params = {"labelSelector": f"{names.selector(meta.name)},{MADE_BY_US}"}
        listed = await lists.listing(self._kube, CLAIMS, namespace=meta.namespace, params=params)
        return [
            each
            for each in listed
            if each.made_for == meta.uid and each.metadata.deletion_timestamp is None
        ]

    async def _numbers_there(self, node_set: NodeSetObject) -> frozenset[int]:
        """Return the numbers of the workers that there are now, not by a cache.

        Raises:
            Conflict: the NodeSet is not the one that was decided about.
        """
        meta = node_set.metadata
        only = {"fieldSelector": f"metadata.name={meta.name}"}
        listed = await lists.listing(self._kube, NODE_SETS, namespace=meta.namespace, params=only)
        now = next((each.metadata for each in listed if each.metadata.uid == meta.uid), None)
        if now is None or now.generation != meta.generation or now.deletion_timestamp is not None:
            text = f"NodeSet {meta.full_name} has changed: its volumes are looked at again"
            raise errors.Conflict("GET", NODE_SETS.path, message=text)
        params = {"labelSelector": names.selector(meta.name)}
        pods = await lists.listing(self._kube, WORKER_PODS, namespace=meta.namespace, params=params)
        keys = (planning.worker_key(node_set, pod) for pod in pods)
        return frozenset(key for key in keys if isinstance(key, int))

    async def _mark(self, found: _ClaimObject, since: datetime | None) -> None:
        """Say on this very version of a claim since when nobody needs it; None: somebody does."""
        meta = found.metadata
        path = paths.collection("v1", _PLURAL, meta.namespace) + paths.of(meta.name)
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
            await self._kube.request("PATCH", path, body=body, content_type=JSON_PATCH)
        _log.info("claim.marked", claim=meta.full_name, unneeded_since=value)

    async def _delete(self, found: _ClaimObject) -> None:
        meta = found.metadata
        path = paths.collection("v1", _PLURAL, meta.namespace) + paths.of(meta.name)
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        with contextlib.suppress(errors.NotFound):
            await self._kube.request("DELETE", path, body={"preconditions": same})
        _log.info("claim.deleted", claim=meta.full_name)


def _held(node_set: NodeSetObject, found: Collection[_ClaimObject]) -> Iterator[HeldClaim]:
    """Yield those of workers with numbers."""
    for each in found:
        number = claim_number(node_set, each.metadata.name)
        if number is not None and not each.metadata.owner_references:
            yield HeldClaim(
                name=each.metadata.name, number=number, unneeded_since=each.unneeded_since
            )
