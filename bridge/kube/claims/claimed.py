"""Read the resource claims of pods, as far as the user of a command may read them."""

from collections.abc import Mapping, Sequence

import msgspec

from bridge.domain.model.claims import by_class
from bridge.domain.model.claims.asking import MOST_CLAIMS, Asking, ClaimInHand
from bridge.domain.model.claims.values import ClaimSpec, DeviceClass, PodClaim, ResourceClaim
from bridge.domain.model.pods import Pod
from bridge.kube.claims import resource_claims
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.kube.claims.templates import ClaimTemplates
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError, Malformed, NotFound
from slurmruntime.model.objects import JsonObject

_CLAIM, _TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"


async def of_pod(client: KubeClient, pod: Pod) -> Mapping[str, ResourceClaim | None]:
    """Return a pod's claims by name, None for those that do not exist; unreadable ones are left out."""
    claims = ResourceClaims(client)
    by_name: dict[str, ResourceClaim | None] = {}
    for entry in pod.resource_claims[:MOST_CLAIMS]:
        try:
            if entry.claim:
                by_name[entry.claim] = await claims.get(pod.namespace, entry.claim)
        except NotFound:
            by_name[entry.claim] = None
        except KubeError:
            continue  # the pod is what was asked for
    return by_name


class ClaimsOfManifest:
    """Finds claims and templates in the manifest, or else in the cluster."""

    def __init__(self, client: KubeClient, documents: Sequence[JsonObject]) -> None:
        self._claims = ResourceClaims(client)
        self._templates = ClaimTemplates(client)
        self._documents = documents
        self._specs: dict[tuple[str, str, str], tuple[ClaimSpec | None, tuple[str, ...]]] = {}
        """The spec of a claim or a template, and the pods that have the claim; the pods of a gang share templates."""
        self._classes: dict[str, DeviceClass | None] = {}

    async def of(self, pod: Pod) -> Asking:
        """Return the claims of a pod that does not exist yet, and the classes they name.

        Raises KubeError if they could not be read, Forbidden where the caller may not.
        """
        claims = [
            await self._in_hand(index, entry, pod.namespace)
            for index, entry in enumerate(pod.resource_claims[: MOST_CLAIMS + 1])
        ]
        named = {
            request.device_class
            for claim in claims
            for request in (claim.spec.requests if claim.spec else ())
        }
        classes = [await self._class(name) for name in sorted(filter(None, named))]
        return Asking(claims=tuple(claims), classes={c.name: c for c in classes if c is not None})

    async def _in_hand(self, index: int, entry: PodClaim, namespace: str) -> ClaimInHand:
        kind, name = (_TEMPLATE, entry.template) if entry.template else (_CLAIM, entry.claim)
        if (kind, namespace, name) not in self._specs:
            self._specs[kind, namespace, name] = await self._read(kind, namespace, name)
        spec, others = self._specs[kind, namespace, name]
        return ClaimInHand(index=index, entry=entry, spec=spec, others=others)

    async def _read(
        self, kind: str, namespace: str, name: str
    ) -> tuple[ClaimSpec | None, tuple[str, ...]]:
        try:
            if (spec := self._in_manifest(kind, namespace, name)) is not None:
                return spec, ()
            if kind == _TEMPLATE:
                return await self._templates.get(namespace, name), ()
            claim = await self._claims.get(namespace, name)
        except NotFound:  # a template that the extender will create
            return (by_class.spec(name) if kind == _TEMPLATE else None), ()
        except Malformed as error:
            return ClaimSpec(unreadable=error.message), ()
        return claim.spec, claim.reserved_for

    def _in_manifest(self, kind: str, namespace: str, name: str) -> ClaimSpec | None:
        for document in self._documents:
            metadata = document.get("metadata")
            if document.get("kind") != kind or not isinstance(metadata, dict):
                continue
            if metadata.get("name") != name or metadata.get("namespace", namespace) != namespace:
                continue
            spec = document.get("spec") or {}
            inner = spec.get("spec") if kind == _TEMPLATE else spec
            return resource_claims.claim_spec(msgspec.json.encode(inner or {}))
        return None

    async def _class(self, name: str) -> DeviceClass | None:
        if name not in self._classes:
            try:
                self._classes[name] = await self._claims.device_class(name)
            except NotFound:
                self._classes[name] = None
        return self._classes[name]
