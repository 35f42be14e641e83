"""SlurmClusters in the API server: how they are watched and written, each write guarded."""

from typing import Final

import msgspec

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.kube import paths
from bridge.kube.client import JSON_PATCH, KubeClient
from bridge.kube.decode import Json, ResourceKind, malformed
from cluster.objects.own.slurm_cluster import (
    API_VERSION,
    KIND,
    PLURAL,
    SlurmClusterObject,
    SlurmClusterStatus,
)

FINALIZER: Final = "slurm-bridge.dev/cluster"
"""Keeps a deleted SlurmCluster until its workers are gone."""
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WatchedCluster(msgspec.Struct, frozen=True, gc=False):
    """A SlurmCluster, or what can be read of one in a shape that we do not accept."""

    metadata: ObjectMetadata
    status: SlurmClusterStatus
    cluster: SlurmClusterObject | None
    fault: str = ""
    """Why `cluster` is None."""


def read(body: Json) -> WatchedCluster:
    """Decode one; with a wrong field it still gets a condition that says so.

    Raises:
        Malformed: not even its metadata can be read.
    """
    try:
        found = msgspec.json.decode(body, type=SlurmClusterObject)
    except _BROKEN as error:
        return _of_what_is_left(body, str(error))
    return WatchedCluster(metadata=found.metadata, status=found.status, cluster=found)


def _of_what_is_left(body: Json, fault: str) -> WatchedCluster:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except _BROKEN as error:
        raise malformed(KIND, error) from error
    try:
        status = msgspec.json.decode(envelope.status, type=SlurmClusterStatus)
    except _BROKEN:
        status = SlurmClusterStatus()
    return WatchedCluster(metadata=envelope.metadata, status=status, cluster=None, fault=fault)


SLURM_CLUSTERS: Final = ResourceKind(
    path=paths.collection(API_VERSION, PLURAL),
    read=read,
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
    name=lambda found: found.metadata.full_name,
)
"""All SlurmClusters, by uid."""


async def write_status(
    client: KubeClient, found: WatchedCluster, status: SlurmClusterStatus
) -> WatchedCluster:
    """Write the whole status of this very version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    add: dict[str, object] = {"op": "add", "path": "/status", "value": status}
    return await _patch(client, found, add, subresource="/status")


async def add_finalizer(client: KubeClient, found: WatchedCluster) -> WatchedCluster:
    """Put our finalizer on this very version of the object; like `write_status`."""
    add: dict[str, object] = {"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER}
    if not found.metadata.finalizers:
        add = {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}
    return await _patch(client, found, add)


async def remove_finalizer(client: KubeClient, found: WatchedCluster) -> None:
    """Remove our finalizer from this very version of the object; like `write_status`."""
    index = (found.metadata.finalizers or ()).index(FINALIZER)
    await _patch(client, found, {"op": "remove", "path": f"/metadata/finalizers/{index}"})


async def _patch(
    client: KubeClient,
    found: WatchedCluster,
    operation: dict[str, object],
    *,
    subresource: str = "",
) -> WatchedCluster:
    meta = found.metadata
    path = paths.collection(API_VERSION, PLURAL, meta.namespace) + paths.of(meta.name) + subresource
    guards: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
    ]
    body = [*guards, operation]
    return read(await client.request("PATCH", path, body=body, content_type=JSON_PATCH))
