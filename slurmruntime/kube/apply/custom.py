"""Objects of our own kinds: decode them even if one is invalid, write their status, and add or remove our finalizer.

Each write is guarded by the uid and the version that were read.
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import paths
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.kube.resource import Json, OwnObject, ResourceKind, identity_of, malformed
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation

_ORPHANING = "orphan"
"""Finalizer of the garbage collector."""
_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Object(OwnObject, Protocol):
    @property
    def status(self) -> Any: ...


O = TypeVar("O", bound=_Object)  # noqa: E741  # of an object
S = TypeVar("S", bound=ObjectStruct)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class CustomObject(msgspec.Struct, Generic[O, S], frozen=True, gc=False):
    """An object; if it is stored in a shape that we do not accept, what can be read of it."""

    kind: str
    metadata: ObjectMetadata
    status: S
    parsed: O | None
    fault: str = ""
    """Why `parsed` is None."""

    @property
    def asked(self) -> tuple[object, ...]:
        """Changes if a user wants something else; does not change with the status that we write."""
        meta = self.metadata
        return meta.uid, meta.generation, meta.annotations, meta.deletion_timestamp, meta.finalizers

    @property
    def is_orphaning(self) -> bool:
        """Whether it is deleted without the objects it owns: the garbage collector removes their owner references first."""
        return _ORPHANING in (self.metadata.finalizers or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind(Generic[O, S]):
    """A kind, and how its objects are read and written."""

    api_version: str
    kind: str
    plural: str
    object_type: type[O]
    status_type: type[S]
    finalizer: str = ""
    """Our finalizer; "" if objects of this kind get none."""

    @property
    def watched(self) -> ResourceKind[CustomObject[O, S]]:
        """All objects of the kind, by uid, for a reflector."""
        return ResourceKind(
            path=paths.collection(self.api_version, self.plural),
            read=self.read,
            identify=lambda watched: identity_of(watched.metadata),
        )

    def read(self, body: Json) -> CustomObject[O, S]:
        """Decode an object; if a field is invalid, the result still has metadata and status, so the fault can be reported.

        Raises:
            Malformed: not even its metadata can be read.
        """
        try:
            parsed = msgspec.json.decode(body, type=self.object_type)
        except _BROKEN as error:
            return self._without_spec(body, str(error))
        return CustomObject(
            kind=self.kind, metadata=parsed.metadata, status=parsed.status, parsed=parsed
        )

    def has_finalizer(self, watched: CustomObject[O, S]) -> bool:
        """Check whether an object has our finalizer."""
        return bool(self.finalizer) and self.finalizer in (watched.metadata.finalizers or ())

    async def write_status(
        self,
        client: KubeClient,
        cache: Cache[CustomObject[O, S]],
        watched: CustomObject[O, S],
        status: S,
    ) -> None:
        """Write the whole status of this very version of the object, unless it has it already.

        Raises:
            Conflict: it has changed.
            NotFound: it is gone.
        """
        if status == watched.status:
            return
        add = json_patch.add("/status", status)
        after = await self._patch(client, watched, add, subresource="/status")
        cache.observe(after, base=watched.metadata.resource_version)

    async def add_finalizer(
        self, client: KubeClient, cache: Cache[CustomObject[O, S]], watched: CustomObject[O, S]
    ) -> CustomObject[O, S]:
        """Add our finalizer to this very version of the object, and return the result; raises like `write_status`.

        Call it before creating anything that must not simply vanish with the object.
        """
        if not self.finalizer or self.has_finalizer(watched):
            return watched
        present = watched.metadata.finalizers
        add = json_patch.append("/metadata/finalizers", self.finalizer, to=present)
        after = await self._patch(client, watched, add)
        cache.observe(after, base=watched.metadata.resource_version)
        return after

    async def remove_finalizer(self, client: KubeClient, watched: CustomObject[O, S]) -> None:
        """Remove our finalizer, which it must have, from this very version of the object; raises like `write_status`."""
        index = (watched.metadata.finalizers or ()).index(self.finalizer)
        await self._patch(client, watched, json_patch.remove(f"/metadata/finalizers/{index}"))

    def _without_spec(self, body: Json, fault: str) -> CustomObject[O, S]:
        try:
            envelope = msgspec.json.decode(body, type=_Envelope)
        except _BROKEN as error:
            raise malformed(self.kind, error) from error
        try:
            status = msgspec.json.decode(envelope.status, type=self.status_type)
        except _BROKEN:
            status = self.status_type()
        return CustomObject(
            kind=self.kind, metadata=envelope.metadata, status=status, parsed=None, fault=fault
        )

    async def _patch(
        self,
        client: KubeClient,
        watched: CustomObject[O, S],
        operation: Operation,
        *,
        subresource: str = "",
    ) -> CustomObject[O, S]:
        meta = watched.metadata
        collection = paths.collection(self.api_version, self.plural, meta.namespace)
        path = collection + paths.of(meta.name) + subresource
        body = [*json_patch.unchanged(meta.uid, meta.resource_version), operation]
        return self.read(await client.request("PATCH", path, body=body, content_type=JSON_PATCH))
