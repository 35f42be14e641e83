"""Resource claims and their classes, from the watches, and read where a watch does not show enough.

What it shows may be old. Each write to a claim holds only for the version that was decided on, so
old news costs a second look and gives nothing wrongly.
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
"""Classes that are read at once."""


class KnownClaims:
    """What is known of claims and classes without a request, or with one."""

    def __init__(
        self,
        claims: ResourceClaims,
        everyone: Cache[ResourceClaim],
        classes: Cache[DeviceClass],
    ) -> None:
        """everyone: all claims of the cluster."""
        self._claims = claims
        self.subscribe = everyone.subscribe
        """Calls back for every claim, then for every change."""
        self._named = everyone.index(lambda each: [f"{each.namespace}/{each.name}"])
        self._made_for = everyone.index(lambda each: [each.made_for[0]] if each.made_for[0] else [])
        self._classes = classes

    def shown(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim as the watch shows it; None if it shows none of that name, or two."""
        found = self._named.get(f"{namespace}/{name}")
        return found[0] if len(found) == 1 else None

    def of(self, pod: Pod) -> Mapping[str, ResourceClaim]:
        """Return a pod's claims by name, as far as the watch shows them."""
        shown = (
            self.shown(pod.namespace, resource_claim.claim)
            for resource_claim in pod.resource_claims
        )
        return {claim.name: claim for claim in shown if claim is not None}

    def named(self, pod: Pod) -> Pod:
        """Return a pod with the claims that Kubernetes has made for its entries, even if its status does not name them.

        Of two claims for one entry, none.
        """
        if all(resource_claim.claim for resource_claim in pod.resource_claims):
            return pod
        made: dict[str, list[str]] = {}
        for each in self._made_for.get(pod.uid):
            if each.namespace == pod.namespace:
                made.setdefault(each.made_for[1], []).append(each.name)
        only = {entry: claims[0] for entry, claims in made.items() if len(claims) == 1}
        entries = (
            replace(
                resource_claim, claim=resource_claim.claim or only.get(resource_claim.entry, "")
            )
            for resource_claim in pod.resource_claims
        )
        return replace(pod, resource_claims=tuple(entries))

    async def whole(self, namespace: str, name: str, *, afresh: bool = False) -> ResourceClaim:
        """Return a claim with what it asks for; read it if the watch does not show that much.

        afresh: read it in any case.

        Raises:
            NotFound: there is none of that name.
            KubeError: it could not be read.
        """
        found = None if afresh else self.shown(namespace, name)
        if found is not None and found.is_whole:
            return found
        return await self._claims.get(namespace, name)

    async def classes_of(self, specs: Iterable[ClaimSpec | None]) -> Mapping[str, DeviceClass]:
        """Return the classes that requests name, as far as they exist.

        Raises:
            KubeError: one could not be read.
        """
        named = {request.device_class for spec in specs if spec for request in spec.requests}
        found = await in_turn(sorted(filter(None, named)), self.device_class, at_a_time=_AT_A_TIME)
        return {name: each for name, each in found.items() if each is not None}

    async def device_class(self, name: str) -> DeviceClass | None:
        """Return a class; None if there is none. One that the watch does not show is asked for.

        Raises:
            KubeError: it could not be read.
        """
        if (shown := self._classes.get(name)) is not None:
            return shown
        try:
            return await self._claims.device_class(name)
        except errors.NotFound:
            return None
