"""Resource claims and their classes, from the watches, or read where a watch does not show enough.

The watch may be stale. Each write to a claim is conditional on the version that was decided on, so
stale data costs a retry and never gives a device wrongly.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bridge.domain.model.claims.values import ClaimSpec, DeviceClass, ResourceClaim
from bridge.domain.model.pods import Pod
from bridge.kube.claims.resource_claims import ResourceClaims
from slurmclient.watching.in_turn import in_turn
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache

_AT_A_TIME = 16
"""Concurrent reads of classes."""


class KnownClaims:
    """Claims and classes, from the cache or by a request, which may raise KubeError."""

    def __init__(
        self, claims: ResourceClaims, all_claims: Cache[ResourceClaim], classes: Cache[DeviceClass]
    ) -> None:
        self.api = claims
        """Reads and writes claims."""
        self.all = all_claims
        """All claims of the cluster, as far as the watch shows them."""
        self._by_name = all_claims.index(lambda claim: [f"{claim.namespace}/{claim.name}"])
        self._by_pod = all_claims.index(
            lambda claim: [claim.made_for[0]] if claim.made_for[0] else []
        )
        self._classes = classes

    def cached(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim as the watch shows it; None if it shows none of that name, or two."""
        matches = self._by_name.get(f"{namespace}/{name}")
        return matches[0] if len(matches) == 1 else None

    def of(self, pod: Pod) -> Mapping[str, ResourceClaim]:
        """Return a pod's claims by name, as far as the watch shows them."""
        claims = (self.cached(pod.namespace, entry.claim) for entry in pod.resource_claims)
        return {claim.name: claim for claim in claims if claim is not None}

    def with_claim_names(self, pod: Pod) -> Pod:
        """Return a pod with the claims of its entries, though its status may not name them yet.

        If Kubernetes has created two claims for one entry, it gets none of them.
        """
        if all(resource_claim.claim for resource_claim in pod.resource_claims):
            return pod
        by_entry: dict[str, list[str]] = {}
        for claim in self._by_pod.get(pod.uid):
            if claim.namespace == pod.namespace:
                by_entry.setdefault(claim.made_for[1], []).append(claim.name)
        unique = {name: claims[0] for name, claims in by_entry.items() if len(claims) == 1}
        pod_claims = (
            replace(entry, claim=entry.claim or unique.get(entry.entry, ""))
            for entry in pod.resource_claims
        )
        return replace(pod, resource_claims=tuple(pod_claims))

    async def get(self, namespace: str, name: str, *, afresh: bool = False) -> ResourceClaim:
        """Return a claim with its spec; read it `afresh`, or if the watch does not show that.

        Raises NotFound if there is none of that name.
        """
        cached = None if afresh else self.cached(namespace, name)
        if cached is not None and cached.has_spec:
            return cached
        return await self.api.get(namespace, name)

    async def classes_of(self, specs: Iterable[ClaimSpec | None]) -> Mapping[str, DeviceClass]:
        """Return the classes that exist among those that the requests name."""
        names = {request.device_class for spec in specs if spec for request in spec.requests}
        classes = await in_turn(
            sorted(filter(None, names)), self.device_class, at_a_time=_AT_A_TIME
        )
        return {
            name: device_class for name, device_class in classes.items() if device_class is not None
        }

    async def device_class(self, name: str) -> DeviceClass | None:
        """Return a class; read it if the watch does not show it. None if it does not exist."""
        if (cached := self._classes.get(name)) is not None:
            return cached
        try:
            return await self.api.device_class(name)
        except errors.NotFound:
            return None
