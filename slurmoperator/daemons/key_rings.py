"""The Secrets with the steps of the daemons' keys: read, and given one step after the other. See `slurmoperator.keys.rings`.

The last step in the Secret is the one in force, whoever died between two writes; what a Controller is told follows it. A write is
guarded by the version that was read, so of two who decide, one decides anew.
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
from slurmruntime.values.faults import Fault

_ANY_STEP: Final = re.compile(r".+\.[0-9]+\.jwks")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """How far a key has come."""

    key: KeyOfObject
    """The one that the objects name."""
    step: int
    """In force; 0 for that key itself."""
    found: Secret | None
    """With the steps, as it was read; None if there is none."""


class KeyRings:
    """Reads and writes them."""

    def __init__(
        self, kube: KubeClient, controllers: Cache[WatchedPart], random_bytes: RandomBytes
    ) -> None:
        """Prepare.

        Args:
            kube: the API server.
            controllers: all Controllers, which were told the steps.
            random_bytes: the source of keys.
        """
        self._kube = kube
        self._controllers = controllers
        self._random_bytes = random_bytes

    async def of(self, namespace: str, key: KeyOfObject) -> KeyRing | Fault:
        """Return how far a key has come, or why nobody may be given one now.

        Raises:
            KubeError: it was not read: look again.
        """
        name = rings.ring_secret(key.name)
        found = await self._read(namespace, name)
        step = rings.last_step(key.key, found.data if found else ())
        told = self._told(namespace, key)
        if step < told:
            text = (
                f"it has no {rings.ring_item(key.key, told)}, and daemons run with that key: restore it; they run on, but none "
                "can be started. If it is lost, delete all objects that use it, and create them anew"
            )
            return Fault(f"Secret {name}", text)
        if found and step and not _keys(key, step, found):
            text = f"{rings.ring_item(key.key, step)} is not what was written there: restore it"
            return Fault(f"Secret {name}", text)
        return KeyRing(key=key, step=step, found=found)

    async def write(self, namespace: str, ring: KeyRing, step: int) -> Fault | None:
        """Write a step, and drop those that nobody has any more; return what is wrong with the Secret instead.

        Args:
            namespace: of the Secret.
            ring: as it was read.
            step: the next one. Everybody has the one in force.

        Raises:
            KubeError: it was not written, or nobody knows: look again.
        """
        keys = await self._keys_until(namespace, ring)
        if isinstance(keys, Fault):
            return keys
        for number in rings.known(step) - keys.keys():
            keys[number] = self._random_bytes(MADE_BYTES[KeyUse.DAEMONS])
        item = {rings.ring_item(ring.key.key, step): rings.step_text(step, keys)}
        if ring.found is None:
            name = rings.ring_secret(ring.key.name)
            await secrets.create(
                self._kube, secrets.secret_body(namespace, name, item, is_whole=False)
            )
            return None
        if others := [each for each in ring.found.data if not _ANY_STEP.fullmatch(each)]:
            text = f"it has {', '.join(sorted(others)[:3])}, so it is somebody else's: delete it"
            return Fault(f"Secret {ring.found.name}", text)
        kept = {
            each: data
            for each, data in ring.found.data.items()
            if (rings.step_of(ring.key.key, each) or step) >= ring.step
        }
        await kube_secrets.change(self._kube, namespace, ring.found, {**kept, **item})
        return None

    async def _keys_until(self, namespace: str, ring: KeyRing) -> dict[int, bytes] | Fault:
        """Return the keys of the step in force, by their numbers."""
        if ring.step and ring.found is not None:
            return _keys(ring.key, ring.step, ring.found)
        first = await self._read(namespace, ring.key.name)
        if first is None or ring.key.key not in first.data:
            text = f"there is no {ring.key.key} in it: restore it, the daemons have that key"
            return Fault(f"Secret {ring.key.name}", text)
        return {1: first.data[ring.key.key]}

    async def _read(self, namespace: str, name: str) -> Secret | None:
        try:
            return await kube_secrets.get(self._kube, namespace, name)
        except errors.NotFound:
            return None

    def _told(self, namespace: str, key: KeyOfObject) -> int:
        """Return the last step of a key that a Controller was told."""
        found = (
            controller.whole
            for controller in self._controllers.values()
            if controller.metadata.namespace == namespace
            and isinstance(controller.whole, ControllerObject)
        )
        return max(
            (
                each.status.slurm_key_step
                for each in found
                if is_named(each.spec.slurm_key_ref, key)
            ),
            default=0,
        )


def is_named(named: KeyOfObject | None, key: KeyOfObject) -> bool:
    """Check whether what an object names is this key."""
    return named is not None and (named.name, named.key) == (key.name, key.key)


def _keys(key: KeyOfObject, step: int, found: Secret) -> dict[int, bytes]:
    """Return the keys of a step; none if they are not what this step must have."""
    return rings.keys_of(step, found.data.get(rings.ring_item(key.key, step), b"")) or {}
