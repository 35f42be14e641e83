"""Devices that are being given, until the cache of claims shows it.

Between the decision and the watch event no cache knows of a gift. Without a reservation, a second
pod could be given the same device in that time.
"""

from collections.abc import Iterator
from dataclasses import replace

from bridge.domain.model.claims.giving import Gift
from bridge.domain.model.claims.values import ResourceClaim
from slurmruntime.values.ids import KubeNode

LASTS_S = 120.0
"""How long a gift counts that no cache shows: twice as long as the API server works on a request."""


class Reservations:
    """Claims as they will look when what is being written has arrived."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[float, ResourceClaim]] = {}

    def hold(self, claim: ResourceClaim, *, now: float) -> None:
        """Reserve the devices of a claim, in place of those reserved for it before.

        now: monotonic seconds.
        """
        self._held[claim.uid] = (now + LASTS_S, claim)

    def release(self, uid: str) -> None:
        """Drop a claim that surely was not written, or that has lost its devices again."""
        self._held.pop(uid, None)

    def shown(self, claim: ResourceClaim) -> None:
        """Drop a claim whose devices the cache shows: from here on the cache knows."""
        held = self._held.get(claim.uid)
        if held is not None and set(held[1].devices) <= set(claim.devices):
            del self._held[claim.uid]

    def claims(self, *, now: float) -> Iterator[ResourceClaim]:
        """Yield the claims that devices are reserved for; forget those that were never shown."""
        for uid in [uid for uid, (until, _) in self._held.items() if until <= now]:
            del self._held[uid]
        yield from [claim for _, claim in self._held.values()]


def as_allocated(gift: Gift, node: KubeNode) -> ResourceClaim:
    """Return a claim as it looks once it has its devices on that node."""
    return replace(gift.claim.without_spec, is_allocated=True, devices=gift.devices, node=node)
