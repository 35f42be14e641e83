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
from cluster.objects.loginset import LoginSetObject, LoginSetStatus
from cluster.objects.parts import API_VERSION, ConditionsOnly
from cluster.objects.restapi import RestApiObject
from cluster.objects.token import TokenObject, TokenStatus

PartObject = ControllerObject | AccountingObject | RestApiObject | LoginSetObject | TokenObject

_TYPES: Final[dict[str, tuple[type[PartObject], type[ConditionsOnly]]]] = {
    "Controller": (ControllerObject, ConditionsOnly),
    "Accounting": (AccountingObject, ConditionsOnly),
    "RestApi": (RestApiObject, ConditionsOnly),
    "LoginSet": (LoginSetObject, LoginSetStatus),
    "Token": (TokenObject, TokenStatus),
}
PLURALS: Final = {
    "Controller": "controllers",
    "Accounting": "accountings",
    "RestApi": "restapis",
    "LoginSet": "loginsets",
    "Token": "tokens",
}
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WatchedPart(msgspec.Struct, frozen=True, gc=False):
    """An object of the control plane, or what can be read of one in a shape that we do not accept."""

    kind: str
    metadata: ObjectMetadata
    status: ConditionsOnly
    """Of the kind's own type."""
    part: PartObject | None
    fault: str = ""
    """Why `part` is None."""

    @property
    def conditions(self) -> tuple[ObjectCondition, ...]:
        """What it was told."""
        return self.status.conditions


def _read(kind: str, body: Json) -> WatchedPart:
    try:
        found = msgspec.json.decode(body, type=_TYPES[kind][0])
    except _BROKEN as error:
        return _of_what_is_left(kind, body, str(error))
    return WatchedPart(kind=kind, metadata=found.metadata, status=found.status, part=found)


def _of_what_is_left(kind: str, body: Json, fault: str) -> WatchedPart:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except _BROKEN as error:
        raise malformed(kind, error) from error
    status_type = _TYPES[kind][1]
    try:
        status = msgspec.json.decode(envelope.status, type=status_type)
    except _BROKEN:
        status = status_type()
    return WatchedPart(kind=kind, metadata=envelope.metadata, status=status, part=None, fault=fault)


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


async def write_status(
    client: KubeClient, found: WatchedPart, status: ConditionsOnly
) -> WatchedPart:
    """Write the whole status of this very version of the object.

    Raises:
        Conflict: it has changed.
        NotFound: it is gone.
    """
    meta = found.metadata
    collection = paths.collection(API_VERSION, PLURALS[found.kind], meta.namespace)
    operations: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "add", "path": "/status", "value": status},
    ]
    path = f"{collection}{paths.of(meta.name)}/status"
    answer = await client.request("PATCH", path, body=operations, content_type=JSON_PATCH)
    return _read(found.kind, answer)
