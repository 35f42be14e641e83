"""Read and create the Secrets with keys; their contents are never changed."""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from slurmoperator.keys import naming
from slurmoperator.keys.naming import KeyReference, ValueLengths
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.faults import Fault, Refusal

RandomBytes = Callable[[int], bytes]
"""Returns this many unpredictable bytes."""

MANAGED_BY: Final = "slurm-bridge"


class DataObject(ObjectStruct, frozen=True):
    """A Secret, whose values are base64, or a ConfigMap."""

    metadata: ObjectMetadata = ObjectMetadata()
    data: dict[str, str] | None = None

    @property
    def values(self) -> dict[str, bytes]:
        """A Secret's contents, without what is not base64."""
        decoded = {key: decode(value) for key, value in (self.data or {}).items()}
        return {key: value for key, value in decoded.items() if value is not None}


_decoder = msgspec.json.Decoder(DataObject)


async def ensure(
    kube: KubeClient,
    namespace: str,
    keys: Iterable[KeyReference],
    *,
    has_run: bool,
    random_bytes: RandomBytes,
) -> None:
    """Create the Secrets that are missing; see `naming.find_missing`.

    Raises:
        Refusal: some are not as expected.
        KubeError: a Secret was not read or not created, or that is unknown: try again.
    """
    keys = tuple(keys)
    seen = {
        name: existing
        for name in sorted({key.secret for key in keys})
        if (existing := await read(kube, namespace, name)) is not None
    }
    for name, lengths in naming.find_missing(keys, seen, has_run=has_run).items():
        data = {key: random_bytes(length) for key, length in lengths.items()}
        seen[name] = await create(kube, secret_body(namespace, name, data, is_immutable=True))
    naming.find_missing(keys, seen, has_run=True)  # others may have created one in between


async def read(kube: KubeClient, namespace: str, name: str) -> ValueLengths | None:
    """Return the lengths of a Secret's values; None if there is no such Secret.

    Raises:
        KubeError: it was not read.
    """
    secret = await get(kube, "secrets", namespace, name)
    return None if secret is None else _lengths(secret.data or {})


async def get(kube: KubeClient, plural: str, namespace: str, name: str) -> DataObject | None:
    """Return a Secret or ConfigMap; None if it does not exist.

    Raises:
        KubeError: it was not read.
    """
    try:
        path = paths.collection("v1", plural, namespace) + paths.of(name)
        answer = await kube.request("GET", path)
    except errors.NotFound:
        return None
    return resource.decoded(_decoder, f"{plural} {namespace}/{name}", answer)


def secret_body(
    namespace: str, name: str, data: Mapping[str, bytes], *, is_immutable: bool
) -> JsonObject:
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


async def create(kube: KubeClient, body: JsonObject) -> ValueLengths:
    """Create a Secret and return the lengths of its values; if it exists by now, those of the existing one.

    Raises:
        KubeError: it was not created, or that is unknown: read again.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        await kube.request("POST", paths.collection("v1", "secrets", namespace), body=body)
    except errors.Conflict:
        existing = await read(kube, namespace, name)
        if existing is None:
            raise
        return existing
    return _lengths(body["data"])


def _lengths(data: Mapping[str, str]) -> ValueLengths:
    # Base64 is padded.
    return {key: len(text) * 3 // 4 - text.count("=") for key, text in data.items()}


def decode(encoded: str) -> bytes | None:
    """Return the bytes that base64 encodes; None if it is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:  # not base64, or not even ASCII
        return None


def text(secret: Mapping[str, str], reference: KeyOfObject, at: str) -> str:
    """Return a text from a Secret.

    Raises:
        Refusal: it has no such text.
    """
    if reference.key not in secret:
        raise Refusal(Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}"))
    try:
        return base64.b64decode(secret[reference.key], validate=True).decode()
    except ValueError as error:
        wrong = f"expected text in {reference.key} of Secret {reference.name}"
        raise Refusal(Fault(f"{at}.key", wrong)) from error
