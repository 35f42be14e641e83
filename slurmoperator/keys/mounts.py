"""Find which step of a key a pod has mounted: pure. See `rings`."""

from collections.abc import Iterator

from slurmoperator.keys import rings
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.fields import ObjectStruct


class _Item(ObjectStruct, frozen=True):
    key: str = ""


class _FromSecret(ObjectStruct, frozen=True):
    name: str = ""
    """In a projected volume."""
    secret_name: str = ""
    """In a volume of its own."""
    items: tuple[_Item, ...] | None = None
    """The keys of the Secret that are mounted; None for all."""


class _Source(ObjectStruct, frozen=True):
    secret: _FromSecret | None = None


class _ProjectionSources(ObjectStruct, frozen=True):
    sources: tuple[_Source, ...] | None = None


class PodVolume(ObjectStruct, frozen=True):
    """`core/v1 Volume`, only its Secrets."""

    secret: _FromSecret | None = None
    projected: _ProjectionSources | None = None


class MountingSpec(ObjectStruct, frozen=True):
    """`core/v1 PodSpec`, only its volumes with Secrets."""

    volumes: tuple[PodVolume, ...] | None = None


def mounted_steps(spec: MountingSpec, key: KeyOfObject) -> frozenset[int]:
    """Return the steps of a key that a pod has mounted; empty if it does not mount that key.

    A pod that mounts the whole Secret of the steps is not ours, and does not show which one it uses.
    """
    steps: set[int | None] = set()
    ring = rings.ring_secret(key.name)
    for secret in _secrets(spec):
        name = secret.name or secret.secret_name
        if name == key.name and (
            secret.items is None or any(item.key == key.key for item in secret.items)
        ):
            steps.add(0)
        if name == ring:
            steps |= {rings.step_of(key.key, item.key) for item in secret.items or ()}
    return frozenset(step for step in steps if step is not None)


def _secrets(spec: MountingSpec) -> Iterator[_FromSecret]:
    for volume in spec.volumes or ():
        if volume.secret is not None:
            yield volume.secret
        if volume.projected is not None:
            yield from (source.secret for source in volume.projected.sources or () if source.secret)
