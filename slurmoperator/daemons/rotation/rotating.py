"""Moves the daemons of a Controller from one key to the next, step by step. See `slurmoperator.keys.rings`.

The users of a key are read from the API server, not from a cache, and those that create pods come first: a StatefulSet or Deployment
that still has pods of an older template may create another one of it, and a NodeSet creates workers of its newest revision.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from slurmoperator.daemons.conditions import KEY_CONDITION
from slurmoperator.daemons.part import WatchedPart
from slurmoperator.daemons.rotation.key_rings import KeyRing, KeyRings, is_named
from slurmoperator.daemons.workload import WORKLOADS, DaemonWorkload
from slurmoperator.keys import rotation
from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.keys.rotation import KeyHolder, RotationDecision
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.revisions import storing
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject, ControllerStatus
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import lists, paths, resource
from slurmruntime.kube.apply import writes
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Refusal

_REFERRING: Final = ("Controller", "Accounting")
"""Kinds whose objects refer to a key."""
_OVER: Final = frozenset({"Succeeded", "Failed"})
_NEXT: Final = timedelta(seconds=1)
_WAITING: Final = timedelta(seconds=15)


class _PodStatus(ObjectStruct, frozen=True):
    phase: str = ""


class _Pod(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: MountingSpec = MountingSpec()
    status: _PodStatus = _PodStatus()


_WORKLOADS: Final = {
    kind: resource.own_kind(
        paths.collection("apps/v1", writes.PLURALS["apps/v1", kind]), kind, DaemonWorkload
    )
    for kind in sorted(WORKLOADS)
}
_PODS: Final = resource.own_kind(paths.collection("v1", "pods"), "Pod", _Pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationOutcome:
    """The outcome of one step of a rotation."""

    decision: RotationDecision | None = None
    """None if it failed."""
    due: timedelta | None = None
    """When to check again if no event comes first."""


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """Rotates the key of one Controller after the other."""

    kube: KubeClient
    rings: KeyRings
    parts: Mapping[str, Cache[WatchedPart]]
    """By kind and uid."""
    node_sets: Cache[WatchedNodeSet]

    async def advance(self, watched: WatchedPart, ring: KeyRing) -> RotationOutcome:
        """Write the next step of a Controller's key if it is due. Its bodies with the step in force have been applied.

        Raises:
            KubeError: the users of the key were not read, or the step was not written, or may or may not have been: try again.
        """
        meta = watched.metadata
        facts = rotation.requested(ring.step, meta.annotations)
        if rotation.is_open(facts.step, facts.wanted, _reported(watched)):
            referring = self._referring(meta.namespace, ring.key)
            facts = replace(
                facts,
                elsewhere=[_label(part) for part in referring if _is_external(part)],
                holders=await self._holders(meta.namespace, ring, referring),
            )
        decision = rotation.decide(facts)
        if decision.writes is None:
            return RotationOutcome(decision=decision, due=_due(watched, ring, decision))
        try:
            await self.rings.write(meta.namespace, ring, decision.writes)
        except Refusal as refusal:
            failing = RotationDecision(truth="False", reason="Failing", message=refusal.text)
            return RotationOutcome(decision=failing)
        return RotationOutcome(decision=decision, due=_NEXT)

    def _referring(self, namespace: str, key: KeyOfObject) -> list[WatchedPart]:
        """Return the objects that refer to a key, and those that cannot be read and so may refer to any."""
        return [
            part
            for kind in _REFERRING
            for part in self.parts[kind].values()
            if part.metadata.namespace == namespace
            and (
                part.parsed is None
                or (
                    isinstance(part.parsed, ControllerObject | AccountingObject)
                    and is_named(part.parsed.spec.slurm_key_ref, key)
                )
            )
        ]

    async def _holders(
        self, namespace: str, ring: KeyRing, referring: Sequence[WatchedPart]
    ) -> list[KeyHolder]:
        """Return the users of the key. Pods are many, so they are read only once all that create them have the step in force."""
        creators = [
            *_reported_steps(referring),
            *await self._of_node_sets(namespace, referring),
            *[holder async for holder in self._of_workloads(namespace, ring.key)],
        ]
        if any(creator.step != ring.step for creator in creators):
            return creators
        pods = await lists.listing(self.kube, _PODS, namespace=namespace)
        return [*creators, *_of_pods(pods, ring.key)]

    async def _of_node_sets(
        self, namespace: str, referring: Sequence[WatchedPart]
    ) -> list[KeyHolder]:
        """Return the step that new workers of each NodeSet get; a deleted NodeSet creates none."""
        controllers = {part.metadata.name for part in referring if part.kind == "Controller"}
        creating = [
            node_set
            for node_set in self.node_sets.values()
            if node_set.parsed is not None
            and node_set.metadata.namespace == namespace
            and node_set.metadata.deletion_timestamp is None
            and node_set.parsed.spec.controller_ref.name in controllers
        ]
        if not creating:
            return []
        steps = await storing.newest_key_steps(self.kube, namespace)
        return [
            KeyHolder(name=_label(node_set), step=steps.get(node_set.metadata.uid))
            for node_set in creating
            if node_set.metadata.uid in steps or not _is_refused(node_set)
        ]

    async def _of_workloads(self, namespace: str, key: KeyOfObject) -> AsyncIterator[KeyHolder]:
        for kind, resource_kind in _WORKLOADS.items():
            for workload in await lists.listing(self.kube, resource_kind, namespace=namespace):
                steps = mounted_steps(workload.spec.template.spec, key)
                if steps:
                    step = min(steps) if workload.is_rolled and len(steps) == 1 else None
                    yield KeyHolder(name=f"{kind} {workload.metadata.name}", step=step)


def _reported_steps(referring: Sequence[WatchedPart]) -> Iterator[KeyHolder]:
    """Yield the step in each Controller's status, which their NodeSets give to workers."""
    for part in referring:
        if isinstance(part.parsed, ControllerObject):
            yield KeyHolder(name=_label(part), step=part.parsed.status.slurm_key_step)
        elif part.parsed is None:
            yield KeyHolder(name=f"{_label(part)} (it cannot be read)", step=None)


def _of_pods(pods: Sequence[_Pod], key: KeyOfObject) -> Iterator[KeyHolder]:
    for pod in pods:
        if pod.status.phase not in _OVER:
            for step in sorted(mounted_steps(pod.spec, key)):
                yield KeyHolder(name=f"pod {pod.metadata.name}", step=step)


def _due(watched: WatchedPart, ring: KeyRing, decision: RotationDecision) -> timedelta | None:
    if decision.reason != "Waiting":
        return None
    status = watched.status
    is_reported = isinstance(status, ControllerStatus) and status.slurm_key_step == ring.step
    return _WAITING if is_reported else _NEXT  # the status is written after this step


def _is_external(watched: WatchedPart) -> bool:
    part = watched.parsed
    return isinstance(part, ControllerObject | AccountingObject) and part.spec.external


def _is_refused(node_set: WatchedNodeSet) -> bool:
    """Check whether a NodeSet is not accepted, and so gets no workers."""
    return any((c.type, c.status) == ("Accepted", "False") for c in node_set.status.conditions)


def _reported(watched: WatchedPart) -> str:
    """Return the message of the key's condition while that is True; "" if it is not."""
    return next(
        (
            condition.message
            for condition in watched.status.conditions
            if (condition.type, condition.status) == (KEY_CONDITION, "True")
        ),
        "",
    )


def _label(watched: WatchedPart | WatchedNodeSet) -> str:
    return f"{watched.kind} {watched.metadata.name}"
