"""Writes the Secrets with the steps of the daemons' keys, and reads who uses these. See `slurmoperator.keys.rings`.

The last step in the Secret is the one in force, even if a leader died between two writes; the Controller's status follows it. A write
is guarded by the version that was read, so of two writers, one has to decide again.

The users of a key are read from the API server, not from a cache, and those that create pods come first: a StatefulSet or Deployment
that still has pods of an older template may create another one of it, and a NodeSet creates workers of its newest revision.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from slurmoperator.daemons.part import WORKLOADS, DaemonWorkload, WatchedPart
from slurmoperator.keys import rings, rotation, secrets
from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.keys.naming import MADE_BYTES, KeyUse
from slurmoperator.keys.rotation import KeyHolder, KeyRing, RotationFacts
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.nodesets.revisions import storing
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import lists, paths, resource
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.apply import writes
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.secrets import Secret
from slurmruntime.values.faults import Fault, Refusal

_REFERRING: Final = ("Controller", "Accounting")
"""Kinds whose objects refer to a key."""
_OVER: Final = frozenset({"Succeeded", "Failed"})


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
class KeyRings:
    """Writes key rings, and reads who uses a key."""

    kube: KubeClient
    parts: Mapping[str, Cache[WatchedPart]]
    """By kind and uid; the status of Controllers has the steps."""
    node_sets: Cache[WatchedNodeSet]
    random_bytes: RandomBytes

    async def read_users(
        self, namespace: str, ring: KeyRing, requested: RotationFacts
    ) -> RotationFacts:
        """Add who uses a key to what is requested of it.

        Raises:
            KubeError: the users of the key were not read: try again.
        """
        referring = self._referring(namespace, ring.key)
        return replace(
            requested,
            elsewhere=tuple(
                _label(watched)
                for watched in referring
                if (part := _referring_object(watched)) and part.spec.external
            ),
            holders=tuple(await self._holders(namespace, ring, referring)),
            unwritable=ring.unwritable,
        )

    async def write(self, namespace: str, ring: KeyRing, step: int) -> None:
        """Write the next step of a ring that all daemons use as it was read, and drop the steps that none uses any more.

        Raises:
            Refusal: the first key is gone.
            KubeError: it was not written, or may or may not have been: try again.
        """
        keys = ring.keys() if ring.step else await self._first_key(namespace, ring.key)
        for number in rings.accepted_keys(step) - keys.keys():
            keys[number] = self.random_bytes(MADE_BYTES[KeyUse.DAEMONS])
        item = {rings.ring_item(ring.key.key, step): rings.step_text(step, keys)}
        name = rings.ring_secret(ring.key.name)
        if not ring.version:
            body = secrets.secret_body(namespace, name, item, is_immutable=False)
            await secrets.create(self.kube, body)
            return
        retained = {
            name: data
            for name, data in ring.steps.items()
            if (rings.step_of(ring.key.key, name) or step) >= ring.step
        }
        secret = Secret(name=name, version=ring.version, data=ring.steps)
        await kube_secrets.change(self.kube, namespace, secret, {**retained, **item})

    async def _first_key(self, namespace: str, key: KeyOfObject) -> dict[int, bytes]:
        first = await secrets.get(self.kube, "secrets", namespace, key.name)
        if first is None or key.key not in first.values:
            text = f"it has no {key.key}, the key that the daemons use: restore it"
            raise Refusal(Fault(f"Secret {key.name}", text))
        return {1: first.values[key.key]}

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
                    (parsed := _referring_object(part)) is not None
                    and rotation.names_key(parsed.spec.slurm_key_ref, key)
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
        return creators + [
            KeyHolder(name=f"pod {pod.metadata.name}", step=step)
            for pod in pods
            if pod.status.phase not in _OVER
            for step in sorted(mounted_steps(pod.spec, ring.key))
        ]

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


def _referring_object(watched: WatchedPart) -> ControllerObject | AccountingObject | None:
    part = watched.parsed
    return part if isinstance(part, ControllerObject | AccountingObject) else None


def _is_refused(node_set: WatchedNodeSet) -> bool:
    """Check whether a NodeSet is not accepted, and so gets no workers."""
    return any((c.type, c.status) == ("Accepted", "False") for c in node_set.status.conditions)


def _label(watched: WatchedPart | WatchedNodeSet) -> str:
    return f"{watched.kind} {watched.metadata.name}"
