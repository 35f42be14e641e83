"""Give a pod's claims the devices that Slurm gave its job, while the pod still has its gate.

Two writes for each claim: the finalizer, without which nobody would take the devices back, then
allocation and `reservedFor` in one. So a claim is never given without being reserved, and whoever
dies in between leaves either nothing or all of it; the next look finds the same devices and goes on.
From there on Kubernetes' own resource claim controller owns it: it takes the devices back when the
pod has ended or is gone. kube-scheduler finds the claim given and reserved, and writes nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from bridge.domain.faults import Refused
from bridge.domain.gang import seating
from bridge.domain.ids import KubeNode
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import asking, giving, inventory
from bridge.domain.model.claims.asking import Asking, ClaimInHand
from bridge.domain.model.claims.giving import CannotGive, Gift
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import DeviceClass, ResourceClaim, ResourceSlice
from bridge.domain.model.devices import gres
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import errors
from bridge.kube.cache import Cache
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.reconcile.actuator import NotGiven
from bridge.slurm import nodes
from bridge.slurm.allocated import devices
from bridge.slurm.client import SlurmClient

_log = structlog.get_logger(__name__)


class Devices:
    """Reads what was asked and what Slurm gave, and writes the claims."""

    def __init__(
        self,
        *,
        claims: ResourceClaims,
        slurm: SlurmClient,
        everyone: Cache[ResourceClaim],
        slices: Cache[ResourceSlice],
        profiles: Profiles,
    ) -> None:
        """everyone: all claims of the cluster, whose devices are taken."""
        self._claims = claims
        self._slurm = slurm
        self._everyone = everyone
        self._in_pool = everyone.index(lambda each: {found.pool for found in each.devices})
        self._slices_of = slices.index(lambda each: [each.node] if each.node else [])
        self._profiles = profiles

    async def give(self, pod: Pod, action: Assign, job: SlurmJob | None) -> None:
        """Give a pod's claims the devices that its job has on its node.

        Raises:
            NotGiven: Slurm and the node do not agree, or a device is still somebody else's.
            KubeError, SlurmError: decide again later.
        """
        try:
            gifts, classes = await self._decide(pod, action, job)
            todo = [gift for gift in gifts if not giving.is_done(gift, pod.uid, action.kube_node)]
        except CannotGive as error:
            raise NotGiven(str(error)) from error
        for gift in todo:
            await self._write(pod, gift, classes, action.kube_node)

    async def _decide(
        self, pod: Pod, action: Assign, job: SlurmJob | None
    ) -> tuple[Sequence[Gift], Mapping[str, DeviceClass]]:
        if nameless := [each.entry for each in pod.resource_claims if not each.claim]:
            raise CannotGive(f"Kubernetes has not made the claim for {nameless[0]} yet")
        read, slurm_node, given = await asyncio.gather(
            self._read(pod),
            nodes.node(self._slurm, action.slurm_node),
            devices.given(self._slurm, action.sluid or action.job_id, action.slurm_node),
        )
        classes = await self._classes(read)
        hand = [
            ClaimInHand(index=index, entry=entry, spec=claim.spec)
            for index, (entry, claim) in enumerate(zip(pod.resource_claims, read, strict=True))
        ]
        wanted = asking.gres(Asking(claims=tuple(hand), classes=classes), self._profiles)
        if isinstance(wanted, Refused):
            raise CannotGive(wanted.text)
        present = inventory.of_node(self._slices_of.get(action.kube_node), self._profiles)
        mine = giving.devices(
            giving.portion(given, wanted, **_place(action, job)),
            present,
            gres.counted(slurm_node.gres),
        )
        gifts = giving.deal(read, classes, self._profiles, mine)
        pools = {device.pool for gift in gifts for device in gift.devices}
        if held := giving.in_the_way(gifts, (c for p in pools for c in self._in_pool.get(p))):
            raise CannotGive(held)
        return gifts, classes

    async def _read(self, pod: Pod) -> Sequence[ResourceClaim]:
        try:
            return await asyncio.gather(
                *(self._claims.get(pod.namespace, each.claim) for each in pod.resource_claims)
            )
        except errors.NotFound as error:
            raise CannotGive(f"a claim of the pod is gone: {error.message}") from error

    async def _classes(self, read: Sequence[ResourceClaim]) -> Mapping[str, DeviceClass]:
        names = {request.device_class for each in read for request in each.spec.requests}
        found = await asyncio.gather(
            *(device_class(self._claims, name) for name in sorted(filter(None, names)))
        )
        return {each.name: each for each in found if each is not None}

    async def _write(
        self, pod: Pod, gift: Gift, classes: Mapping[str, DeviceClass], node: KubeNode
    ) -> None:
        claim = gift.claim
        if claim.is_allocated:  # for an earlier job of this pod, which no kubelet has seen
            claim = self._seen(claim, await self._claims.take_back(claim))
        claim = self._seen(claim, await self._claims.protect(claim))
        written = await self._claims.give(
            Gift(claim=claim, results=gift.results),
            classes,
            node=node,
            pod=pod.uid,
            pod_name=pod.name,
        )
        self._seen(claim, written)
        _log.info("claim.given", claim=claim.name, devices=[each.device for each in gift.devices])

    def _seen(self, before: ResourceClaim, after: ResourceClaim) -> ResourceClaim:
        """Make our own write visible to the next decision before the watch delivers it."""
        self._everyone.observe(after, base=before.resource_version)
        return after


async def device_class(claims: ResourceClaims, name: str) -> DeviceClass | None:
    """Return a class; None if there is none of that name."""
    try:
        return await claims.device_class(name)
    except errors.NotFound:
        return None


def _place(action: Assign, job: SlurmJob | None) -> dict[str, int]:
    """Return a member's place among those of its gang on its node, and their number; none without a gang."""
    if action.place is None or job is None:
        return {}
    slots = seating.slots(job)
    node = action.slurm_node
    return {"place": slots[: action.place.rank].count(node), "of": slots.count(node)}
