"""The owners of a pod: its controllers, and the objects that declare the size of a group.

Objects are read on demand and cached briefly; nothing is watched, because a kind may be installed at
any time. An edit of a live owner is seen when the cache entry expires.
"""

from collections import OrderedDict
from collections.abc import Sequence

import structlog

from bridge.domain.model.pods import Pod
from bridge.domain.request.overrides import effectless
from bridge.domain.workloads import claims
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import Membership
from extender.memory import MOST, Memory, size_of
from slurmruntime.kube import errors
from slurmruntime.kube.objects import Objects
from slurmruntime.model.objects import KubeObject, Owner, Reference
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import EventRecorder, EventType

_log = structlog.get_logger(__name__)

_MOST_OWNERS = 5
"""Pod → ReplicaSet → Deployment, pod → Job → JobSet → …: deeper chains are a loop."""

_CACHED_S = 30.0
_GONE = "it no longer exists"
_SIZE_CACHED_S = 2.0
"""A gang's members arrive within a moment, and each asks for the size."""


class Owners:
    """The chain of controllers above a pod; reading it may raise KubeError."""

    def __init__(self, objects: Objects, clock: Clock, events: EventRecorder | None = None) -> None:
        """events: for warnings about annotations of an owner that have no effect."""
        self._events = events
        self._warned: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The warnings that were sent, by uid of the owner."""
        self._objects = objects
        self._clock = clock
        self._read_owners = Memory[tuple[str, Owner], KubeObject | None](_CACHED_S, size=size_of)
        """By namespace and the complete reference, because a pod may claim any uid for its owner."""
        self._failures = Memory[tuple[str, Owner], str](_CACHED_S)
        """Why reading failed, by the same key; for groups, by their kind. Many pods may ask for the same."""
        self._sizes = Memory[Reference, KubeObject | None](_SIZE_CACHED_S, size=size_of)

    async def membership(self, pod: Pod) -> Membership:
        """Return the workload of a pod."""
        owners = await self.chain(pod) if claims.needs_owners(pod) else []
        await self._warn_about(pod, owners)
        member = claims.of(pod, owners)
        missing = owners[-1].owner if owners else pod.owner
        if claims.needs_owners(pod) and missing is not None and len(owners) < _MOST_OWNERS:
            why = self._why_failed((pod.namespace, missing), self._clock.monotonic())
            return claims.beneath(member, pod, owners, missing, why=why or _GONE)
        group = member.declared_by
        if group is None or not claims.is_unconfirmed(member):
            return member
        declared, why = await self._confirm(group)
        return claims.settled(member, pod, declared, unread=why)

    async def _warn_about(self, pod: Pod, owners: Sequence[KubeObject]) -> None:
        """Send warnings about annotations without effect: the creator of an owner does not see the webhook's warnings."""
        if self._events is None or not owners:
            return
        sources = [(owners[0], "its pods: ", pod.annotations)]
        sources += [(owner, "", owner.annotations) for owner in owners]
        for subject, prefix, annotations in sources:
            text = "; ".join(effectless(annotations))
            key = (subject.uid, prefix + text)
            if not text or key in self._warned:
                continue
            self._warned[key] = None
            while len(self._warned) > MOST:
                self._warned.popitem(last=False)
            await self._events.record(
                subject.about,
                EventType.WARNING,
                action="Review",
                reason="AnnotationIgnored",
                note=prefix + text,
            )

    async def _confirm(self, group: Reference) -> tuple[KubeObject | None, str]:
        now = self._clock.monotonic()
        kind = Owner(api_version=group.api_version, kind=group.kind, name="", uid="")
        key = (group.namespace, kind)
        if why := self._why_failed(key, now):
            return None, why
        try:
            if await self._objects.serves(group.api_version, group.kind):
                return await self._get(group), ""
            why = f"the API server does not serve {group.kind} in {group.api_version}"
        except errors.Forbidden as error:
            why = error.message
        self._failures.put(key, why, now)
        _log.warning("pod_group.unreadable", group=group.name, error=why)
        return None, why

    def _why_failed(self, key: tuple[str, Owner], now: float) -> str:
        return self._failures.get(key) if self._failures.has(key, now) else ""

    async def declared(self, member: Membership) -> KubeObject | None:
        """Read the object that declares a group's size; None if there is none we may read."""
        return None if member.declared_by is None else await self._cached_group(member.declared_by)

    async def groups(self, pod: Pod) -> list[KubeObject]:
        """Return the PodGroup that the pod names and the Workload behind it, if readable."""
        named = claims.declaring(pod)
        group = await self._cached_group(named) if named is not None else None
        if group is None:
            return []
        behind = pod_group.workload_of(group)
        workload = await self._cached_group(behind) if behind is not None else None
        return [group, workload] if workload is not None else [group]

    async def chain(self, pod: Pod) -> list[KubeObject]:
        """Return the controllers above the pod, nearest first.

        The list ends at one that is gone or unreadable.
        """
        chain: list[KubeObject] = []
        owner = pod.owner
        while owner is not None and len(chain) < _MOST_OWNERS:
            above = await self._read(owner, pod.namespace)
            if above is None:
                break
            chain.append(above)
            owner = above.owner
        return chain

    async def _cached_group(self, group: Reference) -> KubeObject | None:
        now = self._clock.monotonic()
        if self._sizes.has(group, now):
            return self._sizes.get(group)
        try:
            declared = await self._get(group)
        except errors.Forbidden:
            declared = None
        self._sizes.put(group, declared, now)
        return declared

    async def _get(self, group: Reference) -> KubeObject | None:
        try:
            return await self._objects.get(
                group.api_version, group.kind, group.namespace, group.name
            )
        except errors.NotFound:
            return None

    async def _read(self, owner: Owner, namespace: str) -> KubeObject | None:
        now = self._clock.monotonic()
        key = (namespace, owner)
        if self._read_owners.has(key, now):
            return self._read_owners.get(key)
        try:
            read_owner = await self._objects.get(
                owner.api_version, owner.kind, namespace, owner.name
            )
        except (errors.NotFound, errors.Forbidden) as error:
            _log.debug("owner.unread", kind=owner.kind, owner=owner.name, error=str(error))
            self._failures.put(key, error.message, now)
            read_owner = None
        if read_owner is not None and read_owner.uid != owner.uid:
            read_owner = None  # recreated under the same name; it did not create this pod
        self._read_owners.put(key, read_owner, now)
        return read_owner
