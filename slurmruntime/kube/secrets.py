"""Read and write Secrets of our own namespace; a write is guarded by the version that was read."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from slurmruntime.kube import meta, paths, resource
from slurmruntime.kube.client import MERGE_PATCH, KubeClient


class _Secret(meta.Struct):
    """`core/v1 Secret`."""

    metadata: meta.ObjectIdentity
    data: dict[str, str] = msgspec.field(default_factory=dict)


_secret = msgspec.json.Decoder(_Secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A Secret as it was read."""

    name: str
    version: str
    data: Mapping[str, bytes] = field(repr=False)


async def get(client: KubeClient, namespace: str, name: str) -> Secret:
    """Return a Secret; raise NotFound if there is none of that name."""
    return _read(await client.request("GET", _path(namespace, name)))


async def change(
    client: KubeClient, namespace: str, secret: Secret, data: Mapping[str, bytes]
) -> Secret:
    """Replace all data of a Secret, and return the new one; raise Conflict if it was written since."""
    gone = dict.fromkeys(secret.data.keys() - data.keys())
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    body = {"metadata": {"resourceVersion": secret.version}, "data": {**gone, **encoded}}
    path = _path(namespace, secret.name)
    return _read(await client.request("PATCH", path, body=body, content_type=MERGE_PATCH))


def _read(body: bytes) -> Secret:
    wired = resource.decoded(_secret, "Secret", body)
    try:
        data = {key: base64.b64decode(value) for key, value in wired.data.items()}
    except binascii.Error as error:
        raise resource.malformed(f"Secret {wired.metadata.name}", error) from error
    return Secret(name=wired.metadata.name, version=wired.metadata.resource_version, data=data)


def _path(namespace: str, name: str) -> str:
    return paths.of("api", "v1", "namespaces", namespace, "secrets", name)
