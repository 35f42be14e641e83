"""Gives a pod's claims the devices that Slurm gave its job, while the pod still has its gate.

Two writes for each claim: the finalizer, without which the devices would never be taken back, then
allocation and `reservedFor` in one. So a claim is never given without being reserved, and a process
that dies in between leaves either nothing or all of it; the next pass sees the same devices and
continues. The finalizer is written while Slurm works, if there is time: on a claim that is given
nothing it does no harm, because Kubernetes removes it when the claim is deleted. From then on,
Kubernetes' own resource claim controller owns the claim: it takes the devices back when the pod has
ended or is gone. kube-scheduler sees that the claim is allocated and reserved, and writes nothing.

No device is given twice. In this process, a gift is reserved in the same step in which it is decided,
until the cache shows it. A leader's first gift waits for a list of all claims, which shows what its
predecessor gave. A write of the predecessor that arrives even later does no harm: its pod is not
pinned before we have decided on it, too. And each write is conditional on the claim as it was read.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import structlog

from bridge.domain.gang import seating
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import asking, giving, inventory
from bridge.domain.model.claims.asking import Asking, ClaimInHand
from bridge.domain.model.claims.giving import CannotGive, Gift
from bridge.domain.model.claims.inventory import Inventory
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.reservations import Reservations, as_allocated
from bridge.domain.model.claims.values import DeviceClass, ResourceClaim, ResourceSlice
from bridge.domain.model.devices import exactness, gres
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.reconcile.actuator import NotGiven
from bridge.slurm import nodes
from bridge.slurm.allocated import devices
from extender.claims.asking import Templates
from extender.claims.known import KnownClaims
from extender.nodes import BridgedNodes
from slurmclient.watching.in_turn import in_turn
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.faults import Refusal
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode

_log = structlog.get_logger(__name__)

_MOST_WAITING = 4096
"""Maximum number of pods that changes of their node's devices wake. Beyond that, those that have waited
longest are forgotten: many of them are gone, and the others wait for their back-off."""

_DROPPED_AMONG = 2
"""Minimum number of claims with templates for which Kubernetes can drop the name of one when it writes another's."""

_AT_A_TIME = 16
"""Concurrent writes of finalizers for one gang."""


class Devices:
    """Reads what claims ask for and what Slurm gave, and writes the claims."""

    def __init__(
        self,
        known: KnownClaims,
        slurm: SlurmClient,
        *,
        slices: Cache[ResourceSlice],
        kube_nodes: Cache[KubeNodeFacts],
        profiles: Profiles,
        bridged: BridgedNodes,
        templates: Templates,
        clock: Clock,
        wake: Callable[[PodUid], None],
    ) -> None:
        self._claims = known.api
        self._known = known
        self._slurm = slurm
        self._in_pool = known.all.index(lambda claim: {device.pool for device in claim.devices})
        self._slices_of = slices.index(lambda slice_: [slice_.node] if slice_.node else [])
        self._kube_nodes = kube_nodes
        self._profiles = profiles
        self._bridged = bridged
        """Knows the GRES of nodes as of the last reading of Slurm."""
        self._templates = templates
        self._clock = clock
        self._wake = wake
        self._waiting: dict[PodUid, KubeNode] = {}
        """Pods that could not be given devices, and their nodes; queued again when the slices of the node change."""
        self._reserved = Reservations()
        self._listing = asyncio.Lock()
        self._has_listed = False
        known.all.subscribe(self._on_changed)
        slices.subscribe(self._on_published)

    async def give(self, pod: Pod, action: Assign, job: SlurmJob | None) -> None:
        """Give a pod's claims the devices that its job has on its node.

        Raises:
            NotGiven: Slurm and the node disagree, or a device still belongs to another claim.
            KubeError, SlurmError: decide again later.
        """
        try:
            try:
                await self._give(pod, action, job, afresh=False)
            except errors.Conflict:  # a claim was changed, and the watch has not shown it yet
                await self._give(pod, action, job, afresh=True)
        except NotGiven:
            await self._templates.recreate(pod)
            raise

    async def _give(self, pod: Pod, action: Assign, job: SlurmJob | None, *, afresh: bool) -> None:
        try:
            pod = await self._write_names(pod)
            await self._learn_from_predecessor()
            gifts, classes = await self._decide(pod, action, job, afresh=afresh)
            todo = [gift for gift in gifts if not giving.is_done(gift, pod.uid, action.kube_node)]
            self._reserve(gifts, action.kube_node)
        except CannotGive as error:
            self._remember_waiting(pod.uid, action.kube_node)
            raise NotGiven(str(error)) from error
        self._waiting.pop(pod.uid, None)
        node = action.kube_node
        written = await asyncio.gather(
            *(self._carry_out(pod, gift, classes, node) for gift in todo), return_exceptions=True
        )
        for failure in filter(None, written):  # the other claims keep what they got
            raise failure

    async def _write_names(self, pod: Pod) -> Pod:
        """Write the names of a pod's claims if Kubernetes might drop one of them.

        Kubernetes' resource claim controller (seen in 1.36) applies only those names that are missing
        in the pod's status, and thereby drops the others. If it ever sees one of two claims later than
        the other, it alternates between the two names for ever, tens of times a second.
        """
        if sum(bool(entry.template) for entry in pod.resource_claims) < _DROPPED_AMONG:
            return pod
        named_pod = self._known.with_claim_names(pod)
        by_entry = {
            claim.entry: claim.claim for claim in named_pod.resource_claims if claim.template
        }
        if not all(by_entry.values()):
            return pod
        await self._claims.name(pod, by_entry)
        return named_pod

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Write the finalizers of claims that may get devices; `give` repeats what fails here."""
        waiting = [
            claim
            for pod in pods
            for claim in self._known.of(pod).values()
            if claim.has_spec and not giving.is_protected(claim)
        ]
        if waiting:
            await in_turn(waiting, self._try_to_protect, at_a_time=_AT_A_TIME)

    async def _try_to_protect(self, claim: ResourceClaim) -> None:
        try:
            self._observe(claim, await self._claims.protect(claim))
        except errors.KubeError as error:
            _log.info("claim.not_prepared", claim=claim.name, error=str(error))

    async def take_back(self, pod: Pod) -> None:
        """Take back the devices of the claims of a pod without a placeholder.

        Kubernetes would not: to it, the pod still wants them. Claims whose write got no answer are
        included.

        Raises:
            KubeError: a claim could not be read or written, or was changed concurrently.
        """
        failure: errors.KubeError | None = None
        for name in sorted(self._claims_to_take_back(pod)):
            try:
                await self._take_back(pod, name)
            except errors.NotFound:
                pass
            except errors.KubeError as error:  # still take back its other claims
                failure = error
        if failure is not None:
            raise failure

    def _claims_to_take_back(self, pod: Pod) -> set[str]:
        wanted = {entry.claim for entry in pod.resource_claims if entry.claim}
        known = chain(
            self._known.of(pod).values(), self._reserved.claims(now=self._clock.monotonic())
        )
        return {
            claim.name
            for claim in known
            if claim.namespace == pod.namespace
            and claim.name in wanted
            and giving.may_take_back(claim, pod.uid)
        }

    async def _take_back(self, pod: Pod, name: str) -> None:
        claim = await self._claims.get(pod.namespace, name)
        if giving.may_take_back(claim, pod.uid):
            self._observe(claim, await self._claims.take_back(claim))
            self._reserved.release(claim.uid)
            _log.info("claim.taken_back", claim=name, pod=pod.full_name)

    async def _decide(
        self, pod: Pod, action: Assign, job: SlurmJob | None, *, afresh: bool
    ) -> tuple[Sequence[Gift], Mapping[str, DeviceClass]]:
        if nameless := [claim.entry for claim in pod.resource_claims if not claim.claim]:
            raise CannotGive(f"Kubernetes has not made the claim for {nameless[0]} yet")
        claim_names = (entry.claim for entry in pod.resource_claims)
        try:
            read = await asyncio.gather(
                *(self._known.get(pod.namespace, name, afresh=afresh) for name in claim_names)
            )
        except errors.NotFound as error:
            raise CannotGive(f"a claim of the pod no longer exists: {error.message}") from error
        classes = await self._known.classes_of(claim.spec for claim in read)
        claims_in_hand = [
            ClaimInHand(index=index, entry=entry, spec=claim.spec)
            for index, (entry, claim) in enumerate(zip(pod.resource_claims, read, strict=True))
        ]
        in_hand = Asking(claims=tuple(claims_in_hand), classes=classes)
        try:
            wanted = asking.gres(in_hand, self._profiles)
        except Refusal as refusal:
            raise CannotGive(refusal.text) from refusal
        # The node's label may have changed since the submit.
        kube_node = self._kube_nodes.get(action.kube_node)
        if kube_node is None:
            raise CannotGive(f"node {action.kube_node} no longer exists")
        present = inventory.of_node(self._slices_of.get(action.kube_node), self._profiles)
        job_devices, registered = await asyncio.gather(
            self._job_devices(action, job), self._registered(action.slurm_node, present, wanted)
        )
        if unsafe := exactness.why_not_claimed(gres.by_kind(wanted), kube_node, registered):
            raise CannotGive(unsafe)
        mine = giving.devices(
            giving.portion(job_devices, wanted, **seating.place(action)),
            present,
            gres.counted(registered),
        )
        return giving.deal(read, classes, self._profiles, mine), classes

    async def _job_devices(
        self, action: Assign, job: SlurmJob | None
    ) -> Mapping[str, Sequence[int]]:
        """Return the job's device indexes on the node, from the snapshot if it has them, else from Slurm."""
        if (
            job is not None
            and job.devices is not None
            and job.is_named(action.job_id, action.sluid)
        ):
            return job.devices.get(action.slurm_node, {})
        return await devices.of_job(
            self._slurm, action.job_id, action.slurm_node, sluid=action.sluid
        )

    async def _registered(self, node: SlurmNode, present: Inventory, wanted: Iterable[str]) -> str:
        """Return the node's GRES in Slurm, as last read if that agrees with the ResourceSlices."""
        known = self._bridged.gres(node)
        if known is not None and giving.agree(present, gres.counted(known), wanted):
            return known
        return (await nodes.node(self._slurm, node)).gres

    def _reserve(self, gifts: Sequence[Gift], node: KubeNode) -> None:
        """Reserve devices that are free, or raise CannotGive; there must be no await in between."""
        now = self._clock.monotonic()
        pools = {device.pool for gift in gifts for device in gift.devices}
        shown = (claim for pool in pools for claim in self._in_pool.get(pool))
        everyone = chain(shown, self._reserved.claims(now=now))
        if conflict := giving.in_the_way(gifts, everyone, node):
            raise CannotGive(conflict)
        for gift in gifts:
            self._hold(as_allocated(gift, node), now)

    def _hold(self, claim: ResourceClaim, now: float) -> None:
        cached = self._known.all.get(claim.uid)
        self._reserved.hold(claim, now=now)
        if cached is not None:
            self._reserved.shown(cached)

    async def _learn_from_predecessor(self) -> None:
        """Read all claims once: our cache may not show yet what the previous leader gave."""
        async with self._listing:
            if self._has_listed:
                return
            for claim in await self._claims.all():
                if claim.devices:
                    self._hold(claim, self._clock.monotonic())
            self._has_listed = True

    def _on_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is not None:
            self._reserved.shown(new)
        elif old is not None:
            self._reserved.release(old.uid)

    def _remember_waiting(self, pod: PodUid, node: KubeNode) -> None:
        self._waiting.pop(pod, None)
        if len(self._waiting) >= _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[pod] = node

    def _on_published(self, _old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Wake the pods that wait for devices of a node when its driver publishes some.

        A kubelet that starts deletes its node's slices for half a minute, while back-offs grow.
        """
        if new is None:
            return
        for uid in [uid for uid, node in self._waiting.items() if node == new.node]:
            del self._waiting[uid]
            self._wake(uid)

    async def _carry_out(
        self, pod: Pod, gift: Gift, classes: Mapping[str, DeviceClass], node: KubeNode
    ) -> None:
        claim, is_sent = gift.claim, False
        try:
            if claim.is_allocated:  # for an earlier job of this pod, and no kubelet has seen it
                claim = self._observe(claim, await self._claims.take_back(claim))
            # From now on Kubernetes will take devices back from it.
            claim = self._observe(claim, await self._claims.protect(claim))
            gift = Gift(claim=claim, results=gift.results)
            is_sent = True
            written = await self._claims.give(
                gift, classes, node=node, pod=pod.uid, pod_name=pod.name, at=self._clock.now()
            )
        except BaseException as error:
            if not is_sent or (isinstance(error, errors.KubeError) and not error.may_have_happened):
                self._reserved.release(claim.uid)
            raise
        self._observe(claim, written)
        _log.info(
            "claim.given", claim=claim.name, devices=[device.device for device in gift.devices]
        )

    def _observe(self, before: ResourceClaim, after: ResourceClaim) -> ResourceClaim:
        self._known.all.observe(after.for_cache, base=before.resource_version)
        return after
