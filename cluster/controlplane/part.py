"""The objects of the control plane in the API server: how they are watched, and how they are told."""

from typing import Final

import msgspec

from bridge.crd.conditions import ObjectCondition
from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from bridge.kube import paths
from bridge.kube.client import JSON_PATCH, KubeClient
from bridge.kube.decode import Json, ResourceKind, malformed
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.parts import API_VERSION, ConditionsOnly
from cluster.objects.restapi import RestApiObject

PartObject = ControllerObject | AccountingObject | RestApiObject

_TYPES: Final[dict[str, type[PartObject]]] = {
    "Controller": ControllerObject,
    "Accounting": AccountingObject,
    "RestApi": RestApiObject,
}
PLURALS: Final = {"Controller": "controllers", "Accounting": "accountings", "RestApi": "restapis"}
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WatchedPart(msgspec.Struct, frozen=True, gc=False):
    """An object of the control plane, or what can be read of one in a shape that we do not accept."""

    kind: str
    metadata: ObjectMetadata
    conditions: tuple[ObjectCondition, ...]
    part: PartObject | None
    fault: str = ""
    """Why `part` is None."""


def _read(kind: str, body: Json) -> WatchedPart:
    try:
        found = msgspec.json.decode(body, type=_TYPES[kind])
    except _BROKEN as error:
        return _of_what_is_left(kind, body, str(error))
    return WatchedPart(
        kind=kind, metadata=found.metadata, conditions=found.status.conditions, part=found
    )


def _of_what_is_left(kind: str, body: Json, fault: str) -> WatchedPart:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except _BROKEN as error:
        raise malformed(kind, error) from error
    try:
        conditions = msgspec.json.decode(envelope.status, type=ConditionsOnly).conditions
    except _BROKEN:
        conditions = ()
    return WatchedPart(
        kind=kind, metadata=envelope.metadata, conditions=conditions, part=None, fault=fault
    )


def _watched(kind: str) -> ResourceKind[WatchedPart]:
    return ResourceKind(
        path=paths.collection(API_VERSION, PLURALS[kind]),
        read=lambda body: _read(kind, body),
        key=lambda found: found.metadata.uid,
        version=lambda found: found.metadata.resource_version,
        name=lambda found: found.metadata.full_name,
    )


PARTS: Final = {kind: _watched(kind) for kind in _TYPES}
"""How each kind is watched; objects have their uid as key."""


async def write_conditions(
    client: KubeClient, found: WatchedPart, conditions: tuple[ObjectCondition, ...]
) -> WatchedPart:
    """Write the conditions of this very version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    meta = found.metadata
    collection = paths.collection(API_VERSION, PLURALS[found.kind], meta.namespace)
    operations: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "add", "path": "/status", "value": ConditionsOnly(conditions=conditions)},
    ]
    path = f"{collection}{paths.of(meta.name)}/status"
    answer = await client.request("PATCH", path, body=operations, content_type=JSON_PATCH)
    return _read(found.kind, answer)
