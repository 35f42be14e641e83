"""Read and create the Secrets with keys; their contents are never changed."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from slurmoperator.keys import naming
from slurmoperator.keys.naming import KeyReference, MissingSecret, SecretFacts
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Fault

RandomBytes = Callable[[int], bytes]
"""Returns this many unpredictable bytes."""

MANAGED_BY: Final = "slurm-bridge"


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Secret)


async def ensure(
    kube: KubeClient,
    namespace: str,
    keys: Iterable[KeyReference],
    *,
    has_run: bool,
    random_bytes: RandomBytes,
) -> tuple[Fault, ...]:
    """Create the Secrets that are missing, and return what is wrong with the others; see `naming.decide`.

    Raises:
        KubeError: a Secret was not read or not created, or that is unknown: try again.
    """
    keys = tuple(keys)
    seen = {
        name: secret
        for name in sorted({key.secret for key in keys})
        if (secret := await read(kube, namespace, name)) is not None
    }
    missing, faults = naming.decide(keys, seen, has_run=has_run)
    created: dict[str, SecretFacts] = {}
    for missing_secret in missing:
        created[missing_secret.name] = await _create(kube, namespace, missing_secret, random_bytes)
    if not created:
        return faults
    return naming.decide(keys, {**seen, **created}, has_run=True)[1]


async def read(kube: KubeClient, namespace: str, name: str) -> SecretFacts | None:
    """Return the lengths of a Secret's values; None if there is no such Secret.

    Raises:
        KubeError: it was not read.
    """
    try:
        answer = await kube.request("GET", _collection(namespace) + paths.of(name))
    except errors.NotFound:
        return None
    secret = resource.decoded(_decoder, f"Secret {namespace}/{name}", answer)
    return SecretFacts(lengths={key: _length(value) for key, value in secret.data.items()})


async def _create(
    kube: KubeClient, namespace: str, secret: MissingSecret, random_bytes: RandomBytes
) -> SecretFacts:
    data = {key: random_bytes(length) for key, length in secret.lengths.items()}
    return await create(kube, secret_body(namespace, secret.name, data, is_immutable=True))


def secret_body(
    namespace: str, name: str, data: Mapping[str, bytes], *, is_immutable: bool
) -> Mapping[str, Any]:
    """Return a Secret without an owner, so that it outlives the objects that use it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": MANAGED_BY},
        },
        "type": "Opaque",
        **({"immutable": True} if is_immutable else {}),
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


async def create(kube: KubeClient, body: Mapping[str, Any]) -> SecretFacts:
    """Create a Secret and return its facts; if it exists by now, those of the existing one.

    Raises:
        KubeError: it was not created, or that is unknown: read again.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        await kube.request("POST", _collection(namespace), body=body)
    except errors.Conflict:
        existing = await read(kube, namespace, name)
        if existing is None:
            raise
        return existing
    return SecretFacts(lengths={key: _length(value) for key, value in body["data"].items()})


def _collection(namespace: str) -> str:
    return paths.collection("v1", "secrets", namespace)


def _length(encoded: str) -> int:
    """Return how many bytes a padded base64 text encodes."""
    return len(encoded) * 3 // 4 - encoded.count("=")


def decode(encoded: str) -> bytes | None:
    """Return the bytes that base64 encodes; None if it is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None


def text(secret: Mapping[str, str], reference: KeyOfObject, at: str) -> str | Fault:
    """Return a text from a Secret, or what is wrong with it."""
    if reference.key not in secret:
        return Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}")
    fault = Fault(f"{at}.key", f"expected text in {reference.key} of Secret {reference.name}")
    content = decode(secret[reference.key])
    try:
        return content.decode() if content is not None else fault
    except UnicodeDecodeError:
        return fault
