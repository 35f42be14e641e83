"""What stands above a pod: its controllers, and the objects that declare the size of a group.

Objects are read on demand and cached briefly, so nothing is watched: a kind may be installed at any
time. An edit of a live owner is seen when the cache entry expires.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

import structlog

from bridge.domain.model.pods import Pod
from bridge.domain.request.overrides import effectless
from bridge.domain.workloads import claims
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import Membership
from extender.memory import MOST, Failures, Memory
from slurmruntime.kube import errors
from slurmruntime.kube.objects import Objects
from slurmruntime.model.objects import KubeObject, Owner, Reference
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PeerError

Warn = Callable[[KubeObject, str], Awaitable[None]]

_log = structlog.get_logger(__name__)

_DEEPEST = 5
"""Pod → ReplicaSet → Deployment, pod → Job → JobSet → …: deeper chains are a loop."""

_REMEMBERED_S = 30.0
_GONE = "it is gone"
_SIZE_REMEMBERED_S = 2.0
"""A gang's members arrive within a moment, and each asks for the size."""


class Owners:
    """The chain of controllers above a pod."""

    def __init__(self, objects: Objects, clock: Clock, warn: Warn | None = None) -> None:
        """warn: sends an Event about an owner, of what has no effect there."""
        self._warn = warn
        self._warned: OrderedDict[tuple[str, str], None] = OrderedDict()
        """What was said of which owner, by its uid."""
        self._objects = objects
        self._clock = clock
        self._known: Memory[tuple[str, Owner]] = Memory(_REMEMBERED_S)
        """By namespace and the whole reference: a pod may name any uid as its owner's."""
        self._unread: Failures[tuple[str, Owner]] = Failures(_REMEMBERED_S)
        """Likewise; of groups, by their kind."""
        self._sizes: Memory[Reference] = Memory(_SIZE_REMEMBERED_S)

    async def membership(self, pod: Pod) -> Membership:
        """Return which workload a pod belongs to.

        Raises:
            KubeError: the API server could not be asked.
        """
        owners = await self.chain(pod) if claims.needs_owners(pod) else []
        await self._warn_of(pod, owners)
        member = claims.of(pod, owners)
        missing = owners[-1].owner if owners else pod.owner
        if claims.needs_owners(pod) and missing is not None and len(owners) < _DEEPEST:
            key = (pod.namespace, missing)
            why = self._unread.get(key, self._clock.monotonic()) or _GONE
            return claims.beneath(member, pod, owners, missing, why=why)
        group = member.declared_by
        if group is None or not claims.is_unconfirmed(member):
            return member
        declared, why = await self._confirmed(group)
        return claims.settled(member, pod, declared, unread=why)

    async def _warn_of(self, pod: Pod, owners: Sequence[KubeObject]) -> None:
        """Tell of annotations without effect: who made an owner has not seen the webhook's warnings."""
        if self._warn is None or not owners:
            return
        sources = [(owners[0], "its pods: ", pod.annotations)]
        sources += [(owner, "", owner.annotations) for owner in owners]
        for about, whose, annotations in sources:
            text = "; ".join(effectless(annotations))
            key = (about.uid, whose + text)
            if not text or key in self._warned:
                continue
            self._warned[key] = None
            while len(self._warned) > MOST:
                self._warned.popitem(last=False)
            try:
                await self._warn(about, whose + text)
            except PeerError as error:
                _log.warning("event.lost", error=str(error))

    async def _confirmed(self, group: Reference) -> tuple[KubeObject | None, str]:
        """Read the object that declares a group; return why it cannot be, as well."""
        now = self._clock.monotonic()
        kind = Owner(api_version=group.api_version, kind=group.kind, name="", uid="")
        key = (group.namespace, kind)
        if why := self._unread.get(key, now):
            return None, why
        try:
            if await self._objects.serves(group.api_version, group.kind):
                return await self._get(group), ""
            why = f"the API server does not serve {group.kind} in {group.api_version}"
        except errors.Forbidden as error:
            why = error.message
        self._unread.put(key, why, now)
        _log.warning("pod_group.unreadable", group=group.name, error=why)
        return None, why

    async def declared(self, member: Membership) -> KubeObject | None:
        """Read the object that declares the size of a group, as it is now.

        None if there is none we may read.

        Raises:
            KubeError: the API server could not be asked.
        """
        return None if member.declared_by is None else await self._remembered(member.declared_by)

    async def groups(self, pod: Pod) -> list[KubeObject]:
        """Return the PodGroup that the pod names, and the Workload behind it, as far as they are readable.

        Raises:
            KubeError: the API server could not be asked.
        """
        named = claims.declaring(pod)
        group = await self._remembered(named) if named is not None else None
        if group is None:
            return []
        behind = pod_group.workload_of(group)
        workload = await self._remembered(behind) if behind is not None else None
        return [group, workload] if workload is not None else [group]

    async def chain(self, pod: Pod) -> list[KubeObject]:
        """List the controllers above the pod, nearest first.

        One that is gone or unreadable ends the list.

        Raises:
            KubeError: the API server could not be asked.
        """
        chain: list[KubeObject] = []
        owner = pod.owner
        while owner is not None and len(chain) < _DEEPEST:
            found = await self._read(owner, pod.namespace)
            if found is None:
                break
            chain.append(found)
            owner = found.owner
        return chain

    async def _remembered(self, group: Reference) -> KubeObject | None:
        now = self._clock.monotonic()
        if self._sizes.has(group, now):
            return self._sizes.get(group)
        try:
            found = await self._get(group)
        except errors.Forbidden:
            found = None
        self._sizes.put(group, found, now)
        return found

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
        if self._known.has(key, now):
            return self._known.get(key)
        try:
            found = await self._objects.get(owner.api_version, owner.kind, namespace, owner.name)
        except (errors.NotFound, errors.Forbidden) as error:
            _log.debug("owner.unread", kind=owner.kind, owner=owner.name, error=str(error))
            self._unread.put(key, error.message, now)
            found = None
        if found is not None and found.uid != owner.uid:
            found = None  # re-created under the same name: not the one that created this pod
        self._known.put(key, found, now)
        return found
