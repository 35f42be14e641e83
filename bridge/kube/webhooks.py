"""Our own webhook configurations: which CA the API server shall trust when it calls us."""

import enum
from base64 import b64encode

import msgspec

from bridge.kube import decode, paths, wire
from bridge.kube.client import JSON_PATCH, KubeClient

_configuration = msgspec.json.Decoder(wire.WebhookConfiguration)


class WebhookKind(enum.Enum):
    """What the API calls them."""

    MUTATING = "mutatingwebhookconfigurations"
    VALIDATING = "validatingwebhookconfigurations"


async def set_ca_bundle(client: KubeClient, kind: WebhookKind, name: str, ca_pem: bytes) -> bool:
    """Make every webhook of a configuration trust these certificates; False if they did already.

    Args:
        client: the API server.
        kind: mutating or validating.
        name: the configuration's.
        ca_pem: one or more certificates; while a CA is replaced, both.

    Raises:
        NotFound: there is no such configuration.
        Conflict: its webhooks changed meanwhile.
    """
    path = paths.of("apis", "admissionregistration.k8s.io", "v1", kind.value, name)
    found = decode.decoded(_configuration, kind.value, await client.request("GET", path))
    bundle = b64encode(ca_pem).decode()
    operations: list[dict[str, object]] = []
    for index, webhook in enumerate(found.webhooks):
        if webhook.client_config.ca_bundle != bundle:
            at = f"/webhooks/{index}"
            operations += [
                {"op": "test", "path": f"{at}/name", "value": webhook.name},
                {"op": "add", "path": f"{at}/clientConfig/caBundle", "value": bundle},
            ]
    if operations:
        await client.request("PATCH", path, body=operations, content_type=JSON_PATCH)
    return bool(operations)
