"""Read, apply, detach and delete the objects that we create; each write is guarded by the uid that was read."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from slurmruntime.kube import errors, meta, paths, resource
from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.ownership import OwnershipMetadata
from slurmruntime.kube.client import APPLY, JSON_PATCH, METADATA_ONLY, KubeClient
from slurmruntime.model import json_patch
from slurmruntime.model.objects import JsonObject

PLURALS: Final[Mapping[tuple[str, str], str]] = {
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "Secret"): "secrets",
    ("v1", "Service"): "services",
    ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicies",
    ("policy/v1", "PodDisruptionBudget"): "poddisruptionbudgets",
    ("monitoring.coreos.com/v1", "ServiceMonitor"): "servicemonitors",
    ("slinky.slurm.net/v1beta1", "Accounting"): "accountings",
    ("slinky.slurm.net/v1beta1", "Controller"): "controllers",
    ("slinky.slurm.net/v1beta1", "LoginSet"): "loginsets",
    ("slinky.slurm.net/v1beta1", "NodeSet"): "nodesets",
    ("slinky.slurm.net/v1beta1", "RestApi"): "restapis",
    ("slinky.slurm.net/v1beta1", "Token"): "tokens",
}
"""The kinds that we apply, by apiVersion and kind."""
OPTIONAL: Final = frozenset({("monitoring.coreos.com/v1", "ServiceMonitor")})
"""Those that an API server need not serve."""


class _Partial(msgspec.Struct, frozen=True):
    metadata: OwnershipMetadata


_partial = msgspec.json.Decoder(_Partial)
_served = msgspec.json.Decoder(meta.ApiResourceList)


async def find(client: KubeClient, body: JsonObject) -> OwnershipMetadata | None:
    """Return the metadata of the object that has the body's name now; None if there is none."""
    try:
        answer = await client.request("GET", path(body), accept=METADATA_ONLY)
    except errors.NotFound:
        return None
    return resource.decoded(_partial, str(body["kind"]), answer).metadata


async def apply(
    client: KubeClient,
    body: JsonObject,
    *,
    manager: str,
    uid: str = "",
    yields: bool = False,
) -> OwnershipMetadata:
    """Apply a body with its digest.

    Applying what is in force already changes nothing, so a lost reply does no harm.

    Args:
        uid: of the object that was read; its fields become ours. "" if there was none: then an
            object that another program has created since is not overwritten.
        yields: whether fields that others have set to another value stay theirs; then nothing is
            applied.

    Raises:
        Conflict: another object has the name now, or others own some fields (`fields`): read again.
        Rejected: the API server does not accept the body, or failed in a way that it does not
            explain (500).
        KubeError: it was not applied, or that is not known.
    """
    stamped = ownership.stamped(body)
    if uid:
        stamped["metadata"] = {**stamped["metadata"], "uid": uid}
    params = {
        "fieldManager": manager,
        "fieldValidation": "Strict",
        "force": "true" if uid and not yields else "false",
    }
    try:
        answer = await client.request(
            "PATCH",
            path(body),
            body=stamped,
            content_type=APPLY,
            params=params,
            accept=METADATA_ONLY,
        )
    except errors.Unavailable as error:
        if error.status != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        # This is how the API server refuses a field that its schema does not have (seen on 1.36).
        raise errors.Rejected(
            error.method,
            error.path,
            status=error.status,
            reason=error.reason,
            message=error.message,
        ) from error
    return resource.decoded(_partial, str(body["kind"]), answer).metadata


async def is_served(client: KubeClient, body: JsonObject) -> bool:
    """Check whether the API server serves the body's kind; for built-in kinds and our own this sends no request."""
    api_version, kind = body["apiVersion"], body["kind"]
    if (api_version, kind) not in OPTIONAL:
        return True
    try:
        answer = await client.request("GET", paths.collection(api_version))
    except errors.NotFound:
        return False
    served = resource.decoded(_served, api_version, answer).resources
    return any(offered.kind == kind for offered in served)


async def delete(client: KubeClient, body: JsonObject, *, uid: str, version: str = "") -> None:
    """Delete exactly this object, then what it owns; succeed if it is gone.

    Args:
        version: the resourceVersion that was read; "" for any.

    Raises:
        Conflict: it has changed since, or another one has its name: read again.
        KubeError: it was not deleted, or that is not known.
    """
    guards = {"uid": uid, **({"resourceVersion": version} if version else {})}
    options = {"preconditions": guards, "propagationPolicy": "Background"}
    try:
        await client.request("DELETE", path(body), body=options)
    except errors.NotFound:
        return


async def detach(client: KubeClient, body: JsonObject, *, owner_uid: str) -> None:
    """Remove an owner from an object, so that it outlives the owner; succeed if it is gone, or has another owner.

    The garbage collector does this for `--cascade=orphan`, but only to objects that its own watches have shown it. Those that it
    misses, it deletes with their owner.

    Raises:
        Conflict: the object has changed: read again.
        KubeError: it was not detached, or that is not known.
    """
    current = await find(client, body)
    owner_uids = [owner.uid for owner in current.owner_references] if current else []
    if current is None or owner_uid not in owner_uids:
        return
    remove = json_patch.remove(f"/metadata/ownerReferences/{owner_uids.index(owner_uid)}")
    unchanged = json_patch.unchanged(current.uid, current.resource_version)
    try:
        await client.request(
            "PATCH", path(body), body=[*unchanged, remove], content_type=JSON_PATCH
        )
    except errors.NotFound:
        return


def path(body: JsonObject) -> str:
    """Return the path of an object; raise KeyError if we apply no such kind, NotFound for an odd name."""
    metadata = body["metadata"]
    plural = PLURALS[body["apiVersion"], body["kind"]]
    collection = paths.collection(body["apiVersion"], plural, metadata["namespace"])
    return collection + paths.of(metadata["name"])
