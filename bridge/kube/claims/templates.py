"""Read templates of claims, and create those that are missing."""

import msgspec

from bridge.domain.model.claims.values import ClaimSpec
from bridge.kube.claims import resource_claims
from bridge.kube.claims.resource_claims import API
from slurmruntime.kube import errors, meta, paths, resource
from slurmruntime.kube.client import KubeClient


class _TemplateSpec(meta.Struct):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Template(meta.Struct):
    spec: _TemplateSpec = msgspec.field(default_factory=_TemplateSpec)


_templates = msgspec.json.Decoder(_Template)


class ClaimTemplates:
    """Reads templates from the API server, never from a cache."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, namespace: str, name: str) -> ClaimSpec:
        """Return what a template's claims ask for.

        Raises NotFound if there is none of that name, or KubeError if it could not be read.
        """
        return _read(name, await self._client.request("GET", _path(namespace) + paths.of(name)))

    async def create(self, namespace: str, name: str, spec: ClaimSpec) -> ClaimSpec:
        """Create a template, unless it exists by now; return what its claims ask for.

        Raises KubeError if it could not be created.
        """
        try:
            body = _body(name, spec)
            return _read(name, await self._client.request("POST", _path(namespace), body=body))
        except errors.Conflict:
            return await self.get(namespace, name)


def _read(name: str, body: resource.Json) -> ClaimSpec:
    wired = resource.decoded(_templates, f"template {name}", body)
    return resource_claims.claim_spec(wired.spec.spec)


def _path(namespace: str) -> str:
    return paths.collection(API, "resourceclaimtemplates", namespace)


def _body(name: str, spec: ClaimSpec) -> dict[str, object]:
    requests = [
        {
            "name": request.name,
            "exactly": {"deviceClassName": request.device_class, "count": request.count},
        }
        for request in spec.requests
    ]
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "slurm-bridge"}},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
