"""NodeSets in the API server: how they are watched and written, each write guarded."""

from typing import Final

import msgspec

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.kube import paths
from bridge.kube.client import JSON_PATCH, KubeClient
from bridge.kube.decode import Json, ResourceKind, malformed
from cluster.nodesets import names
from cluster.objects.nodeset import NodeSetObject, NodeSetStatus
from cluster.objects.parts import API_VERSION

PLURAL: Final = "nodesets"
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WatchedNodeSet(msgspec.Struct, frozen=True, gc=False):
    """A NodeSet, or what can be read of one that is stored in a shape that we do not accept."""

    metadata: ObjectMetadata
    status: NodeSetStatus
    node_set: NodeSetObject | None
    fault: str = ""
    """Why `node_set` is None."""


def read(body: Json) -> WatchedNodeSet:
    """Decode a NodeSet; one with a wrong field still gets a condition that says so.

    Raises:
        Malformed: not even its metadata can be read.
    """
    try:
        found = msgspec.json.decode(body, type=NodeSetObject)
    except _BROKEN as error:
        return _of_what_is_left(body, str(error))
    return WatchedNodeSet(metadata=found.metadata, status=found.status, node_set=found)


def _of_what_is_left(body: Json, fault: str) -> WatchedNodeSet:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except _BROKEN as error:
        raise malformed("NodeSet", error) from error
    try:
        status = msgspec.json.decode(envelope.status, type=NodeSetStatus)
    except _BROKEN:
        status = NodeSetStatus()
    return WatchedNodeSet(metadata=envelope.metadata, status=status, node_set=None, fault=fault)


NODE_SETS: Final = ResourceKind(
    path=paths.collection(API_VERSION, PLURAL),
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
    name=lambda found: found.metadata.full_name,
)
"""All NodeSets, by uid."""


async def write_status(
    client: KubeClient, found: WatchedNodeSet, status: NodeSetStatus
) -> WatchedNodeSet:
    """Write the whole status of this very version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    add: dict[str, object] = {"op": "add", "path": "/status", "value": status}
    return await _patch(client, found, [add], subresource="/status")


async def add_finalizer(client: KubeClient, found: WatchedNodeSet) -> WatchedNodeSet:
    """Put our finalizer on this very version of the object; like `write_status`."""
    path, value = "/metadata/finalizers/-", names.WORKERS_FINALIZER
    add: dict[str, object] = {"op": "add", "path": path, "value": value}
    if not found.metadata.finalizers:
        add = {"op": "add", "path": "/metadata/finalizers", "value": [value]}
    return await _patch(client, found, [add])


async def remove_finalizer(client: KubeClient, found: WatchedNodeSet) -> None:
    """Remove our finalizer from this very version of the object; like `write_status`."""
    index = (found.metadata.finalizers or ()).index(names.WORKERS_FINALIZER)
    await _patch(client, found, [{"op": "remove", "path": f"/metadata/finalizers/{index}"}])


async def _patch(
    client: KubeClient,
    found: WatchedNodeSet,
    operations: list[dict[str, object]],
    *,
    subresource: str = "",
) -> WatchedNodeSet:
    meta = found.metadata
    path = paths.collection(API_VERSION, PLURAL, meta.namespace) + paths.of(meta.name) + subresource
    guards: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
    ]
    return read(
        await client.request("PATCH", path, body=guards + operations, content_type=JSON_PATCH)
    )
