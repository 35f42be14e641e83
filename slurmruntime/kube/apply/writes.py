"""Read, apply and delete the objects that we make; each write is guarded by the uid of what was read."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.apply import standing
from slurmruntime.kube.apply.standing import FoundMetadata
from slurmruntime.kube.client import APPLY, METADATA_ONLY, KubeClient

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
"""Those of them that an API server need not know."""


class _Found(msgspec.Struct, frozen=True):
    metadata: FoundMetadata


class _Resource(msgspec.Struct, frozen=True):
    kind: str = ""


class _Served(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


_found = msgspec.json.Decoder(_Found)
_served = msgspec.json.Decoder(_Served)


async def find(client: KubeClient, body: Mapping[str, Any]) -> FoundMetadata | None:
    """Return the metadata of the object that has the body's name now; None if there is none."""
    try:
        answer = await client.request("GET", path(body), accept=METADATA_ONLY)
    except errors.NotFound:
        return None
    return resource.decoded(_found, str(body["kind"]), answer).metadata


async def apply(
    client: KubeClient,
    body: Mapping[str, Any],
    *,
    manager: str,
    uid: str = "",
    yields: bool = False,
) -> FoundMetadata:
    """Apply a body with its digest.

    Applying what is in force already changes nothing, so a lost reply does no harm.

    Args:
        client: the API server.
        body: apiVersion, kind, metadata and all that we want.
        manager: our field manager.
        uid: of the object that was found; its fields become ours. "" if there was none: then
            nothing of an object that somebody else has created meanwhile is overwritten.
        yields: whether fields that others have given another value stay theirs, too: then nothing is applied.

    Raises:
        Conflict: another object has the name now, or fields are those of others (`fields`): read again.
        Rejected: the API server does not accept the body, or failed in a way that it does not
            explain (500).
        KubeError: it was not applied, or nobody knows.
    """
    whole = standing.stamped(body)
    if uid:
        whole["metadata"] = {**whole["metadata"], "uid": uid}
    params = {
        "fieldManager": manager,
        "fieldValidation": "Strict",
        "force": "true" if uid and not yields else "false",
    }
    try:
        answer = await client.request(
            "PATCH",
            path(body),
            body=whole,
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
    return resource.decoded(_found, str(body["kind"]), answer).metadata


async def is_served(client: KubeClient, body: Mapping[str, Any]) -> bool:
    """Check whether the API server knows the body's kind; of those that are always there, it is not asked."""
    api_version, kind = body["apiVersion"], body["kind"]
    if (api_version, kind) not in OPTIONAL:
        return True
    try:
        answer = await client.request("GET", paths.collection(api_version))
    except errors.NotFound:
        return False
    return any(
        each.kind == kind for each in resource.decoded(_served, api_version, answer).resources
    )


async def delete(
    client: KubeClient, body: Mapping[str, Any], *, uid: str, version: str = ""
) -> None:
    """Delete this very object, and what it owns after it; succeed if it is gone.

    Args:
        client: the API server.
        body: its apiVersion, kind, name and namespace.
        uid: of the object that was found.
        version: the resourceVersion that was found; "" if it does not matter what has changed since.

    Raises:
        Conflict: it has changed since, or another one has its name: read again.
        KubeError: it was not deleted, or nobody knows.
    """
    guards = {"uid": uid, **({"resourceVersion": version} if version else {})}
    options = {"preconditions": guards, "propagationPolicy": "Background"}
    try:
        await client.request("DELETE", path(body), body=options)
    except errors.NotFound:
        return


def path(body: Mapping[str, Any]) -> str:
    """Return where an object stands.

    Raises:
        KeyError: we apply no objects of that kind.
        NotFound: it cannot have that name.
    """
    metadata = body["metadata"]
    plural = PLURALS[body["apiVersion"], body["kind"]]
    collection = paths.collection(body["apiVersion"], plural, metadata["namespace"])
    return collection + paths.of(metadata["name"])
