"""Read and write the caBundle of our webhook configurations: the CAs by which the API server trusts us."""

import base64
import binascii
import enum
from dataclasses import dataclass

import msgspec

from slurmruntime.kube import meta, paths, resource
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.model import json_patch


class WebhookKind(enum.Enum):
    """The two kinds of webhook configuration, by their plurals."""

    MUTATING = "mutatingwebhookconfigurations"
    VALIDATING = "validatingwebhookconfigurations"


class _ClientConfig(meta.Struct):
    ca_bundle: str = ""


class _Webhook(meta.Struct):
    name: str
    client_config: _ClientConfig


class _Configuration(meta.Struct):
    metadata: meta.ObjectIdentity
    webhooks: list[_Webhook] = msgspec.field(default_factory=list)


_configuration = msgspec.json.Decoder(_Configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The CA bundles of one webhook configuration, as they were read."""

    kind: WebhookKind
    name: str
    webhooks: tuple[str, ...]
    bundles: tuple[bytes, ...]
    """PEM, one for each webhook; b"" if there is none yet."""


async def get(client: KubeClient, kind: WebhookKind, name: str) -> Trust:
    """Return the CA bundles of a configuration; raise NotFound if there is none of that name."""
    body = await client.request("GET", _path(kind, name))
    configuration = resource.decoded(_configuration, kind.value, body)
    try:
        bundles = tuple(base64.b64decode(w.client_config.ca_bundle) for w in configuration.webhooks)
    except binascii.Error as error:
        raise resource.malformed(f"{kind.value} {name}", error) from error
    webhooks = tuple(webhook.name for webhook in configuration.webhooks)
    return Trust(kind=kind, name=name, webhooks=webhooks, bundles=bundles)


async def publish(client: KubeClient, trust: Trust, bundle: bytes) -> None:
    """Make the API server trust these CAs for all webhooks; raise Conflict if the webhooks have changed."""
    encoded = base64.b64encode(bundle).decode()
    patch: list[json_patch.Operation] = []
    for index, webhook in enumerate(trust.webhooks):
        patch += [
            json_patch.test(f"/webhooks/{index}/name", webhook),
            json_patch.add(f"/webhooks/{index}/clientConfig/caBundle", encoded),
        ]
    path = _path(trust.kind, trust.name)
    await client.request("PATCH", path, body=patch, content_type=JSON_PATCH)


def _path(kind: WebhookKind, name: str) -> str:
    return paths.of("apis", "admissionregistration.k8s.io", "v1", kind.value, name)
