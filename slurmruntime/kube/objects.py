"""Read one object from the API server: a namespace, or any by apiVersion, kind and name.

These are quorum reads: without a `resourceVersion`, the API server returns the current state, not
the state of its cache.
"""

import msgspec

from slurmruntime.kube import errors, meta, paths
from slurmruntime.kube.client import JSON, METADATA_ONLY, KubeClient
from slurmruntime.kube.resource import decoded, kube_object
from slurmruntime.model.objects import WHOLE_KINDS, KubeObject

_resources = msgspec.json.Decoder(meta.ApiResourceList)


async def get_namespace(client: KubeClient, name: str) -> KubeObject:
    """Return the metadata of a namespace; raise NotFound if there is none of that name."""
    return kube_object(
        await client.request("GET", paths.of("api", "v1", "namespaces", name), accept=METADATA_ONLY)
    )


class Objects:
    """Reads objects of any kind the API server serves; caches each kind's resource name."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], meta.ApiResource] = {}

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject:
        """Return an object: its metadata and, for `WHOLE_KINDS`, its spec and status.

        Raises:
            NotFound: there is no such object, or the API server does not serve the kind.
            Forbidden: our role does not cover that kind.
        """
        resource = await self._resource(api_version, kind)
        where = paths.collection(
            api_version, resource.name, namespace if resource.namespaced else ""
        )
        accept = JSON if kind in WHOLE_KINDS else METADATA_ONLY
        body = await self._client.request("GET", where + paths.of(name), accept=accept)
        return kube_object(body, api_version, kind)

    async def serves(self, api_version: str, kind: str) -> bool:
        """Check whether the API server serves the kind now; "no" is not cached."""
        try:
            await self._resource(api_version, kind)
        except errors.NotFound:
            return False
        return True

    async def _resource(self, api_version: str, kind: str) -> meta.ApiResource:
        root = paths.collection(api_version)
        known = self._known.get((api_version, kind))
        if known is None:
            body = await self._client.request("GET", root)
            for offered in decoded(_resources, f"resources of {root}", body).resources:
                if "/" not in offered.name:  # not a subresource
                    self._known[api_version, offered.kind] = offered
            known = self._known.get((api_version, kind))
        if known is None:
            raise errors.NotFound(
                "GET", root, message=f"the API server does not serve kind {kind} in {api_version}"
            )
        return known
