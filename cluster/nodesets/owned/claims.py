"""The claims of workers' volumes: there before the worker, used again by its number, deleted only after their NodeSet's workers."""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.kube import decode, errors, lists, paths
from bridge.kube.client import JSON_PATCH, KubeClient
from bridge.kube.decode import ResourceKind
from cluster.nodesets import names
from cluster.objects.labels import INSTANCE_LABEL, MADE_BY_US
from cluster.objects.nodeset import NodeSetObject
from cluster.objects.workers import WorkerKey
from cluster.rendering.node_sets.claims import NODE_SET_UID_ANNOTATION, claim_bodies

_log = structlog.get_logger(__name__)

_PLURAL: Final = "persistentvolumeclaims"
_UID_PATH: Final = f"/metadata/annotations/{NODE_SET_UID_ANNOTATION.replace('/', '~1')}"


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


_decoder = msgspec.json.Decoder(_ClaimObject)


def read(body: decode.Json) -> _ClaimObject:
    """Decode a claim.

    Raises:
        Malformed: it is none.
    """
    return decode.decoded(_decoder, "PersistentVolumeClaim", body)


_CLAIMS: Final = ResourceKind(
    path=paths.collection("v1", _PLURAL),
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
)


class WorkerClaims:
    """Makes, finds and deletes the claims of NodeSets' workers."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

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
            if owner := next((each for each in found.metadata.owner_references), None):
                text = f"{what} belongs to {owner.kind} {owner.name}: delete it, or give the NodeSet another name"
                raise errors.Rejected("POST", path, message=text) from conflict
            if found.is_ours and found.instance != meta.name:
                text = f"{what} was made for NodeSet {found.instance}: give the template of volumeClaimTemplates another name"
                raise errors.Rejected("POST", path, message=text) from conflict
            # One that somebody else has made is used as it is, and stays theirs.
            if found.is_ours and found.made_for != meta.uid:
                await self._take(found, path, meta.uid)
            return
        _log.info("claim.created", claim=body["metadata"]["name"])

    async def _take(self, found: _ClaimObject, path: str, uid: str) -> None:
        """Mark one that an earlier NodeSet of this name has left as this one's."""
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid},
            {"op": "test", "path": _UID_PATH, "value": found.made_for},
            {"op": "add", "path": _UID_PATH, "value": uid},
        ]
        await self._kube.request("PATCH", path, body=operations, content_type=JSON_PATCH)

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
        meta = node_set.metadata
        params = {"labelSelector": f"{names.selector(meta.name)},{MADE_BY_US}"}
        listed = await lists.listing(self._kube, _CLAIMS, namespace=meta.namespace, params=params)
        for each in listed:
            if each.made_for == meta.uid and each.metadata.deletion_timestamp is None:
                await self._delete(each)

    async def _delete(self, found: _ClaimObject) -> None:
        meta = found.metadata
        path = paths.collection("v1", _PLURAL, meta.namespace) + paths.of(meta.name)
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        with contextlib.suppress(errors.NotFound):
            await self._kube.request("DELETE", path, body={"preconditions": same})
        _log.info("claim.deleted", claim=meta.full_name)
