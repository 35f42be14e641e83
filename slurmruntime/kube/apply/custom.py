"""Objects of kinds that are our own to serve: read although one is odd, told their status, and held by a finalizer.

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
from slurmruntime.kube.resource import Json, ResourceKind, malformed

_ORPHANING = "orphan"
"""Finalizer of the garbage collector."""
_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Whole(Protocol):
    @property
    def metadata(self) -> ObjectMetadata: ...
    @property
    def status(self) -> Any: ...


O = TypeVar("O", bound=_Whole)  # noqa: E741  # of an object
S = TypeVar("S", bound=ObjectStruct)


class _Envelope(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class Watched(msgspec.Struct, Generic[O, S], frozen=True, gc=False):
    """An object, or what can be read of one that is stored in a shape that we do not accept."""

    kind: str
    metadata: ObjectMetadata
    status: S
    whole: O | None
    fault: str = ""
    """Why `whole` is None."""

    @property
    def asked(self) -> tuple[object, ...]:
        """What changes when somebody wants something else; not what we say."""
        meta = self.metadata
        return meta.uid, meta.generation, meta.annotations, meta.deletion_timestamp, meta.finalizers

    @property
    def is_orphaning(self) -> bool:
        """Whether it is deleted without what was made for it: the garbage collector lets go of that first."""
        return _ORPHANING in (self.metadata.finalizers or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind(Generic[O, S]):
    """A kind, how its objects are read, and how they are written."""

    api_version: str
    kind: str
    plural: str
    object_type: type[O]
    status_type: type[S]
    finalizer: str = ""
    """By which we hold an object; "" if we hold none of this kind."""

    @property
    def watched(self) -> ResourceKind[Watched[O, S]]:
        """All of them, by uid, as a reflector reads them."""
        return ResourceKind(
            path=paths.collection(self.api_version, self.plural),
            read=self.read,
            key=lambda found: found.metadata.uid,
            version=lambda found: found.metadata.resource_version,
            name=lambda found: found.metadata.full_name,
        )

    def read(self, body: Json) -> Watched[O, S]:
        """Decode an object; one with a wrong field can still be told what is wrong.

        Raises:
            Malformed: not even its metadata can be read.
        """
        try:
            found = msgspec.json.decode(body, type=self.object_type)
        except _BROKEN as error:
            return self._what_is_left(body, str(error))
        return Watched(kind=self.kind, metadata=found.metadata, status=found.status, whole=found)

    def holds(self, found: Watched[O, S]) -> bool:
        """Check whether an object has our finalizer."""
        return bool(self.finalizer) and self.finalizer in (found.metadata.finalizers or ())

    async def tell(
        self, client: KubeClient, cache: Cache[Watched[O, S]], found: Watched[O, S], status: S
    ) -> None:
        """Write the whole status of this very version of the object, unless it has it already.

        Raises:
            Conflict: it has changed.
            NotFound: it is gone.
        """
        if status == found.status:
            return
        add: dict[str, object] = {"op": "add", "path": "/status", "value": status}
        after = await self._patch(client, found, add, subresource="/status")
        cache.observe(after, base=found.metadata.resource_version)

    async def hold(
        self, client: KubeClient, cache: Cache[Watched[O, S]], found: Watched[O, S]
    ) -> Watched[O, S]:
        """Put our finalizer on this very version of the object, and return it as it is then; like `tell`.

        This comes before anything is made that may not go at once with the object.
        """
        if not self.finalizer or self.holds(found):
            return found
        path, value = "/metadata/finalizers/-", self.finalizer
        add: dict[str, object] = {"op": "add", "path": path, "value": value}
        if not found.metadata.finalizers:
            add = {"op": "add", "path": "/metadata/finalizers", "value": [value]}
        after = await self._patch(client, found, add)
        cache.observe(after, base=found.metadata.resource_version)
        return after

    async def let_go(self, client: KubeClient, found: Watched[O, S]) -> None:
        """Take our finalizer, which it has, off this very version of the object; like `tell`."""
        index = (found.metadata.finalizers or ()).index(self.finalizer)
        await self._patch(client, found, {"op": "remove", "path": f"/metadata/finalizers/{index}"})

    def _what_is_left(self, body: Json, fault: str) -> Watched[O, S]:
        try:
            envelope = msgspec.json.decode(body, type=_Envelope)
        except _BROKEN as error:
            raise malformed(self.kind, error) from error
        try:
            status = msgspec.json.decode(envelope.status, type=self.status_type)
        except _BROKEN:
            status = self.status_type()
        return Watched(
            kind=self.kind, metadata=envelope.metadata, status=status, whole=None, fault=fault
        )

    async def _patch(
        self,
        client: KubeClient,
        found: Watched[O, S],
        operation: dict[str, object],
        *,
        subresource: str = "",
    ) -> Watched[O, S]:
        meta = found.metadata
        collection = paths.collection(self.api_version, self.plural, meta.namespace)
        path = collection + paths.of(meta.name) + subresource
        body: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            operation,
        ]
        return self.read(await client.request("PATCH", path, body=body, content_type=JSON_PATCH))
