"""What stands above a pod: its controllers, and the objects that declare the size of a group.

Objects are read on demand and cached briefly, so nothing is watched: a kind may be installed at any
time. An edit of a live owner is seen when the cache entry expires.
"""

from collections import OrderedDict
from typing import TypeVar

import structlog

from bridge.domain.model.objects import KubeObject, Reference
from bridge.domain.model.pods import Owner, Pod
from bridge.domain.workloads import claims
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import Membership
from bridge.kube import errors
from bridge.kube.objects import Objects
from bridge.process.clock import Clock

_log = structlog.get_logger(__name__)

K = TypeVar("K")
V = TypeVar("V")

_DEEPEST = 5
"""Pod → ReplicaSet → Deployment, pod → Job → JobSet → …: deeper chains are a loop."""

_REMEMBERED = 4096
_REMEMBERED_S = 30.0
_SIZE_REMEMBERED_S = 2.0
"""A gang's members arrive within a moment, and each asks for the size."""


class Owners:
    """The chain of controllers above a pod."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._known: OrderedDict[tuple[str, Owner], tuple[float, KubeObject | None]] = OrderedDict()
        """By namespace and the whole reference: a pod may name any uid as its owner's."""
        self._sizes: OrderedDict[Reference, tuple[float, KubeObject | None]] = OrderedDict()

    async def membership(self, pod: Pod) -> Membership:
        """Return which workload a pod belongs to.

        Raises:
            KubeError: the API server could not be asked.
        """
        owners = await self.chain(pod) if claims.needs_owners(pod) else []
        member = claims.of(pod, owners)
        group = member.declared_by
        if group is None or not claims.is_unconfirmed(member):
            return member
        is_served = await self._objects.serves(group.api_version, group.kind)
        try:
            declared = await self._get(group) if is_served else None
        except errors.Forbidden as error:
            _log.warning("pod_group.unreadable", group=member.name, error=str(error))
            declared, is_served = None, False
        return claims.settled(member, pod, declared, is_served=is_served)

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
        if group in self._sizes and now - self._sizes[group][0] < _SIZE_REMEMBERED_S:
            return self._sizes[group][1]
        try:
            found = await self._get(group)
        except errors.Forbidden:
            found = None
        _remember(self._sizes, group, (now, found))
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
        if key in self._known and now - self._known[key][0] < _REMEMBERED_S:
            return self._known[key][1]
        try:
            found = await self._objects.get(owner.api_version, owner.kind, namespace, owner.name)
        except (errors.NotFound, errors.Forbidden) as error:
            _log.debug("owner.unread", kind=owner.kind, owner=owner.name, error=str(error))
            found = None
        if found is not None and found.uid != owner.uid:
            found = None  # re-created under the same name: not the one that created this pod
        _remember(self._known, key, (now, found))
        return found


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)
