"""Read and create the Secrets with keys; what stands there is never changed."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from slurmoperator.keys import naming
from slurmoperator.keys.naming import NamedKey, SecretToMake, SeenSecret
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Fault

RandomBytes = Callable[[int], bytes]
"""Returns so many bytes that nobody can guess."""

MANAGED_BY: Final = "slurm-bridge"


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Secret)


async def ensure(
    kube: KubeClient,
    namespace: str,
    keys: Iterable[NamedKey],
    *,
    has_run: bool,
    random_bytes: RandomBytes,
) -> tuple[Fault, ...]:
    """Make the Secrets that are to be made, and return what is wrong with the others.

    Args:
        kube: the API server.
        namespace: of the object that names them.
        keys: all that one object names.
        has_run: see `naming.decide`.
        random_bytes: the source of keys.

    Raises:
        KubeError: a Secret was not read or not made, or nobody knows: look again.
    """
    keys = tuple(keys)
    seen = {
        name: secret
        for name in sorted({key.secret for key in keys})
        if (secret := await read(kube, namespace, name)) is not None
    }
    to_make, faults = naming.decide(keys, seen, has_run=has_run)
    made: dict[str, SeenSecret] = {}
    for each in to_make:
        made[each.name] = await _make(kube, namespace, each, random_bytes)
    if not made:
        return faults
    return naming.decide(keys, {**seen, **made}, has_run=True)[1]


async def read(kube: KubeClient, namespace: str, name: str) -> SeenSecret | None:
    """Return how long a Secret's parts are; None if there is no such Secret.

    Raises:
        KubeError: it was not read.
    """
    try:
        answer = await kube.request("GET", _collection(namespace) + paths.of(name))
    except errors.NotFound:
        return None
    found = resource.decoded(_decoder, f"Secret {namespace}/{name}", answer)
    return SeenSecret(lengths={key: _length(value) for key, value in found.data.items()})


async def _make(
    kube: KubeClient, namespace: str, secret: SecretToMake, random_bytes: RandomBytes
) -> SeenSecret:
    data = {key: random_bytes(length) for key, length in secret.lengths.items()}
    return await create(kube, secret_body(namespace, secret.name, data, is_whole=True))


def secret_body(
    namespace: str, name: str, data: Mapping[str, bytes], *, is_whole: bool
) -> Mapping[str, Any]:
    """Return a Secret that nobody owns, so that it outlives those who use it.

    Args:
        namespace: of the Secret.
        name: its name.
        data: its contents.
        is_whole: nothing will be added to it.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": MANAGED_BY},
        },
        "type": "Opaque",
        **({"immutable": True} if is_whole else {}),
        "data": {key: base64.b64encode(each).decode() for key, each in data.items()},
    }


async def create(kube: KubeClient, body: Mapping[str, Any]) -> SeenSecret:
    """Create a Secret; if somebody else has done so meanwhile, theirs counts.

    Raises:
        KubeError: it was not created, or nobody knows: read again.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        await kube.request("POST", _collection(namespace), body=body)
    except errors.Conflict:
        found = await read(kube, namespace, name)
        if found is None:
            raise
        return found
    return SeenSecret(lengths={key: _length(value) for key, value in body["data"].items()})


def _collection(namespace: str) -> str:
    return paths.collection("v1", "secrets", namespace)


def _length(encoded: str) -> int:
    """Return how many bytes there are in base64 with padding."""
    return len(encoded) * 3 // 4 - encoded.count("=")


def decoded(encoded: str) -> bytes | None:
    """Return what base64 stands for; None if it is none."""
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None


def text(secret: Mapping[str, str], reference: KeyOfObject, at: str) -> str | Fault:
    """Return the text that stands in a Secret, or what is wrong with it."""
    if reference.key not in secret:
        return Fault(f"{at}.key", f"Secret {reference.name} has no {reference.key}")
    wrong = Fault(f"{at}.key", f"expected text in {reference.key} of Secret {reference.name}")
    found = decoded(secret[reference.key])
    try:
        return found.decode() if found is not None else wrong
    except UnicodeDecodeError:
        return wrong
