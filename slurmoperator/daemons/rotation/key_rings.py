"""Reads and writes the Secrets with the steps of the daemons' keys. See `slurmoperator.keys.rings`.

The last step in the Secret is the one in force, even if a leader died between two writes; the Controller's status follows it. A write
is guarded by the version that was read, so of two writers, one has to decide again.
"""

import re
from dataclasses import dataclass
from typing import Final

from slurmoperator.daemons.part import WatchedPart
from slurmoperator.keys import rings, secrets
from slurmoperator.keys.naming import MADE_BYTES, KeyUse
from slurmoperator.keys.secrets import RandomBytes
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.kube import errors
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.secrets import Secret
from slurmruntime.values.faults import Fault, Refusal

_ANY_STEP: Final = re.compile(r".+\.[0-9]+\.jwks")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """A key and its steps."""

    key: KeyOfObject
    """The key that the objects refer to."""
    step: int
    """The step in force; 0 for that key itself."""
    secret: Secret | None
    """With the steps, as it was read; None if it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingReading:
    """What was read of the ring of a key."""

    key: KeyOfObject
    secret: Secret | None
    """With the steps; None if it does not exist."""
    reported: int
    """The last step that the status of a Controller shows."""


def ring_of(reading: RingReading) -> KeyRing:
    """Return a ring that daemons may get a key of: pure.

    Raises:
        Refusal: no daemon may get a key now.
    """
    key, secret = reading.key, reading.secret
    at = f"Secret {rings.ring_secret(key.name)}"
    step = rings.last_step(key.key, secret.data if secret else ())
    if step < reading.reported:
        text = (
            f"it has no {rings.ring_item(key.key, reading.reported)}, the key that the daemons use: restore it. They keep running, but "
            "none can be started. If the key is lost, delete all objects that use it and create them again"
        )
        raise Refusal(Fault(at, text))
    if secret and step and not _keys(key, step, secret):
        raise Refusal(Fault(at, f"{rings.ring_item(key.key, step)} was changed: restore it"))
    return KeyRing(key=key, step=step, secret=secret)


@dataclass(frozen=True, slots=True)
class KeyRings:
    """Reads and writes key rings."""

    kube: KubeClient
    controllers: Cache[WatchedPart]
    """Their status has the steps."""
    random_bytes: RandomBytes

    async def read(self, namespace: str, key: KeyOfObject) -> RingReading:
        """Read the ring of a key.

        Raises:
            KubeError: it was not read: try again.
        """
        secret = await self._read(namespace, rings.ring_secret(key.name))
        reported = self._reported_step(namespace, key)
        return RingReading(key=key, secret=secret, reported=reported)

    async def write(self, namespace: str, ring: KeyRing, step: int) -> None:
        """Write the next step and drop those that no daemon uses any more.

        All daemons use the step of the ring, which is as it was read.

        Raises:
            Refusal: the Secret is not as expected.
            KubeError: it was not written, or may or may not have been: try again.
        """
        keys = await self._keys_until(namespace, ring)
        for number in rings.accepted_keys(step) - keys.keys():
            keys[number] = self.random_bytes(MADE_BYTES[KeyUse.DAEMONS])
        item = {rings.ring_item(ring.key.key, step): rings.step_text(step, keys)}
        if ring.secret is None:
            name = rings.ring_secret(ring.key.name)
            await secrets.create(
                self.kube, secrets.secret_body(namespace, name, item, is_immutable=False)
            )
            return
        if foreign := [name for name in ring.secret.data if not _ANY_STEP.fullmatch(name)]:
            text = (
                f"it has {', '.join(sorted(foreign)[:3])}, so it is not slurm-operator's: delete it"
            )
            raise Refusal(Fault(f"Secret {ring.secret.name}", text))
        retained = {
            name: data
            for name, data in ring.secret.data.items()
            if (rings.step_of(ring.key.key, name) or step) >= ring.step
        }
        await kube_secrets.change(self.kube, namespace, ring.secret, {**retained, **item})

    async def _keys_until(self, namespace: str, ring: KeyRing) -> dict[int, bytes]:
        if ring.step and ring.secret is not None:
            return _keys(ring.key, ring.step, ring.secret)
        first = await self._read(namespace, ring.key.name)
        if first is None or ring.key.key not in first.data:
            text = f"it has no {ring.key.key}, the key that the daemons use: restore it"
            raise Refusal(Fault(f"Secret {ring.key.name}", text))
        return {1: first.data[ring.key.key]}

    async def _read(self, namespace: str, name: str) -> Secret | None:
        try:
            return await kube_secrets.get(self.kube, namespace, name)
        except errors.NotFound:
            return None

    def _reported_step(self, namespace: str, key: KeyOfObject) -> int:
        controllers = (
            controller.parsed
            for controller in self.controllers.values()
            if controller.metadata.namespace == namespace
            and isinstance(controller.parsed, ControllerObject)
        )
        return max(
            (
                controller.status.slurm_key_step
                for controller in controllers
                if is_named(controller.spec.slurm_key_ref, key)
            ),
            default=0,
        )


def is_named(reference: KeyOfObject | None, key: KeyOfObject) -> bool:
    """Check whether an object's reference is to this key."""
    return reference is not None and (reference.name, reference.key) == (key.name, key.key)


def _keys(key: KeyOfObject, step: int, secret: Secret) -> dict[int, bytes]:
    """Return the keys of a step; none if they are not those that this step must have."""
    return rings.keys_of(step, secret.data.get(rings.ring_item(key.key, step), b"")) or {}
