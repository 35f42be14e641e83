"""Bring the daemons of a Controller from one key to the next: who has which step, and what follows. See `slurmoperator.keys.rings`.

Who has a key is read from the API server, not from a cache, and those are asked first who make pods: a StatefulSet or Deployment that
still has pods of an older template may make another one of it, and a NodeSet makes workers of its newest revision.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import msgspec

from slurmoperator.daemons.conditions import KEY_CONDITION
from slurmoperator.daemons.key_rings import KeyRing, KeyRings, is_named
from slurmoperator.daemons.part import WatchedPart
from slurmoperator.daemons.workload import WORKLOADS
from slurmoperator.keys import rotation
from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.keys.rotation import KeyHolder, RotationDecision, RotationFacts
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.owned import revisions
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject, ControllerStatus
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import lists, paths, resource
from slurmruntime.kube.apply import writes
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import ResourceKind

_NAMING: Final = ("Controller", "Accounting")
"""Kinds whose objects name a key."""
_OVER: Final = frozenset({"Succeeded", "Failed"})
_NEXT: Final = timedelta(seconds=1)
_WAITING: Final = timedelta(seconds=15)


class _Template(ObjectStruct, frozen=True):
    spec: MountingSpec = MountingSpec()


class _WorkloadSpec(ObjectStruct, frozen=True):
    template: _Template = _Template()
    replicas: int = 1


class _WorkloadStatus(ObjectStruct, frozen=True):
    replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class _Workload(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    @property
    def is_rolled(self) -> bool:
        """Whether it has all its pods, and all are of its template."""
        status, wanted = self.status, self.spec.replicas
        is_seen = status.observed_generation >= self.metadata.generation
        return is_seen and status.replicas == status.updated_replicas == wanted


class _PodStatus(ObjectStruct, frozen=True):
    phase: str = ""


class _Pod(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: MountingSpec = MountingSpec()
    status: _PodStatus = _PodStatus()


_workload = msgspec.json.Decoder(_Workload)
_pod = msgspec.json.Decoder(_Pod)


def _workloads(kind: str) -> ResourceKind[_Workload]:
    return ResourceKind(
        path=paths.collection("apps/v1", writes.PLURALS["apps/v1", kind]),
        read=lambda body: resource.decoded(_workload, kind, body),
        key=lambda found: found.metadata.uid,
        version=lambda found: found.metadata.resource_version,
    )


_WORKLOADS: Final = {kind: _workloads(kind) for kind in sorted(WORKLOADS)}
_PODS: Final = ResourceKind(
    path=paths.collection("v1", "pods"),
    read=lambda body: resource.decoded(_pod, "Pod", body),
    key=lambda found: found.metadata.uid,
    version=lambda found: found.metadata.resource_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAtKey:
    """What came of a look at a Controller's key."""

    decision: RotationDecision | None = None
    """None if it failed."""
    due: timedelta | None = None
    """When to look again although nothing happens."""


class KeyRotation:
    """Sees to the key of one Controller after the other."""

    def __init__(
        self,
        kube: KubeClient,
        key_rings: KeyRings,
        parts: Mapping[str, Cache[WatchedPart]],
        node_sets: Cache[WatchedNodeSet],
    ) -> None:
        """Prepare.

        Args:
            kube: the API server.
            key_rings: reads and writes steps.
            parts: all objects of the control plane, by kind and uid.
            node_sets: all of them, by uid.
        """
        self._kube = kube
        self._rings = key_rings
        self._parts = parts
        self._node_sets = node_sets

    async def look(self, found: WatchedPart, ring: KeyRing) -> LookedAtKey:
        """Write the next step of a Controller's key if it is due.

        Args:
            found: the Controller, which has been given the step in force.
            ring: of its key, as it was read then.

        Raises:
            KubeError: it is not known who has the key, or the step was not written, or nobody knows: look again.
        """
        meta = found.metadata
        facts = RotationFacts(step=ring.step, wanted=rotation.wanted_key(meta.annotations))
        if rotation.is_open(facts.step, facts.wanted, _told(found)):
            naming = self._naming(meta.namespace, ring.key)
            facts = replace(
                facts,
                elsewhere=[_called(each) for each in naming if _is_external(each)],
                holders=await self._holders(meta.namespace, ring, naming),
            )
        decision = rotation.decide(facts)
        if decision.writes is None:
            return LookedAtKey(decision=decision, due=_due(found, ring, decision))
        if (wrong := await self._rings.write(meta.namespace, ring, decision.writes)) is not None:
            failing = RotationDecision(truth="False", reason="Failing", message=wrong.text)
            return LookedAtKey(decision=failing, due=None)
        return LookedAtKey(decision=decision, due=_NEXT)

    def _naming(self, namespace: str, key: KeyOfObject) -> list[WatchedPart]:
        """Return the objects that name a key, and those that cannot be read and so may name any."""
        return [
            each
            for kind in _NAMING
            for each in self._parts[kind].values()
            if each.metadata.namespace == namespace
            and (
                each.whole is None
                or (
                    isinstance(each.whole, ControllerObject | AccountingObject)
                    and is_named(each.whole.spec.slurm_key_ref, key)
                )
            )
        ]

    async def _holders(
        self, namespace: str, ring: KeyRing, naming: Sequence[WatchedPart]
    ) -> list[KeyHolder]:
        """Return who has the key. Pods are many: they are read only when all that make them have the step in force."""
        makers = [
            *_told_steps(naming),
            *await self._of_node_sets(namespace, naming),
            *[each async for each in self._of_workloads(namespace, ring.key)],
        ]
        if any(maker.step != ring.step for maker in makers):
            return makers
        pods = await lists.listing(self._kube, _PODS, namespace=namespace)
        return [*makers, *_of_pods(pods, ring.key)]

    async def _of_node_sets(self, namespace: str, naming: Sequence[WatchedPart]) -> list[KeyHolder]:
        """Return which step the workers have that NodeSets make now; one that is deleted makes none."""
        controllers = {each.metadata.name for each in naming if each.kind == "Controller"}
        making = [
            each
            for each in self._node_sets.values()
            if each.whole is not None
            and each.metadata.namespace == namespace
            and each.metadata.deletion_timestamp is None
            and each.whole.spec.controller_ref.name in controllers
        ]
        if not making:
            return []
        steps = await revisions.newest_key_steps(self._kube, namespace)
        return [
            KeyHolder(name=_called(each), step=steps.get(each.metadata.uid))
            for each in making
            if each.metadata.uid in steps or not _is_refused(each)
        ]

    async def _of_workloads(self, namespace: str, key: KeyOfObject) -> AsyncIterator[KeyHolder]:
        for kind, watched in _WORKLOADS.items():
            for each in await lists.listing(self._kube, watched, namespace=namespace):
                steps = mounted_steps(each.spec.template.spec, key)
                if steps:
                    step = min(steps) if each.is_rolled and len(steps) == 1 else None
                    yield KeyHolder(name=f"{kind} {each.metadata.name}", step=step)


def _told_steps(naming: Sequence[WatchedPart]) -> Iterator[KeyHolder]:
    """Yield which step Controllers were told, which their NodeSets give to workers."""
    for each in naming:
        if isinstance(each.whole, ControllerObject):
            yield KeyHolder(name=_called(each), step=each.whole.status.slurm_key_step)
        elif each.whole is None:
            yield KeyHolder(name=f"{_called(each)} (it cannot be read)", step=None)


def _of_pods(pods: Sequence[_Pod], key: KeyOfObject) -> Iterator[KeyHolder]:
    for pod in pods:
        if pod.status.phase not in _OVER:
            for step in sorted(mounted_steps(pod.spec, key)):
                yield KeyHolder(name=f"pod {pod.metadata.name}", step=step)


def _due(found: WatchedPart, ring: KeyRing, decision: RotationDecision) -> timedelta | None:
    if decision.reason != "Waiting":
        return None
    status = found.status
    is_told = isinstance(status, ControllerStatus) and status.slurm_key_step == ring.step
    return _WAITING if is_told else _NEXT  # it is told after this look


def _is_external(found: WatchedPart) -> bool:
    whole = found.whole
    return isinstance(whole, ControllerObject | AccountingObject) and whole.spec.external


def _is_refused(found: WatchedNodeSet) -> bool:
    """Check whether a NodeSet was told that it gets no workers."""
    return any((c.type, c.status) == ("Accepted", "False") for c in found.status.conditions)


def _told(found: WatchedPart) -> str:
    """Return what is said of the key while it holds; "" if it does not."""
    return next(
        (
            condition.message
            for condition in found.status.conditions
            if (condition.type, condition.status) == (KEY_CONDITION, "True")
        ),
        "",
    )


def _called(found: WatchedPart | WatchedNodeSet) -> str:
    return f"{found.kind} {found.metadata.name}"
