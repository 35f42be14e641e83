"""Describe a kind of object of the API server: its collection, and how its JSON is decoded or rejected."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from slurmruntime.kube import meta, nesting
from slurmruntime.kube.errors import Malformed
from slurmruntime.model.objects import KubeObject, Owner
from slurmruntime.values import oddities
from slurmruntime.values.part import LONGEST_LIST_BYTES, Part

if TYPE_CHECKING:  # commands that read no object of ours need not load it
    from slurmruntime.crd.metadata import ObjectMetadata

T = TypeVar("T")
W = TypeVar("W")

Json = bytes | msgspec.Raw

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_any_object = msgspec.json.Decoder(meta.AnyObject)
_identified = msgspec.json.Decoder(meta.ObjectHeader)
_page = msgspec.json.Decoder(meta.Page)
_event = msgspec.json.Decoder(meta.WatchEvent)
_owners = Part(
    list[meta.OwnerReference], path="$.metadata.ownerReferences", longest_bytes=LONGEST_LIST_BYTES
)
_bookmark = msgspec.json.Decoder(meta.Bookmark)


class ObjectVersion(NamedTuple):
    """What tells one object, and one version of it, from others."""

    key: str
    """Its key in caches: its uid, or its name."""
    version: str
    """Its resourceVersion: opaque, compared for equality only."""
    name: str
    """Its name for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind(Generic[T]):
    """A kind of object that a reflector lists and watches, and how to decode it."""

    path: str
    read: Callable[[Json], T]
    identify: Callable[[T], ObjectVersion]
    called: oddities.Kind = "object"
    """Name of the kind in logs and metrics about objects that are set aside."""
    api_kind: str = ""
    """`Pod` or `Node` if Events may report an object that is set aside; else ""."""


class OwnObject(Protocol):
    """An object that a program of ours has made, or whose kind is ours."""

    @property
    def metadata(self) -> "ObjectMetadata":
        """The part of its metadata that we read."""


Own = TypeVar("Own", bound=OwnObject)


def own_kind(
    path: str,
    kind: str,
    read_as: type[Own],
    *,
    called: oddities.Kind = "object",
    api_kind: str = "",
) -> ResourceKind[Own]:
    """Return how objects of our own are read, by uid; `kind` is its name in errors."""
    decoder = msgspec.json.Decoder(read_as)
    return ResourceKind(
        path=path,
        read=lambda body: decoded(decoder, kind, body),
        identify=lambda own: identity_of(own.metadata),
        called=called,
        api_kind=api_kind,
    )


def identity_of(metadata: "ObjectMetadata") -> ObjectVersion:
    """Return what identifies an object of our own, by uid."""
    return ObjectVersion(metadata.uid, metadata.resource_version, metadata.full_name)


class Change(enum.Enum):
    """Type of a watch event.

    Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks>.
    """

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """No change; only the version advances."""
    ERROR = "ERROR"
    """The object is a `Status`."""


def page(path: str, body: bytes) -> meta.Page:
    """Split a page of a list into undecoded objects, so that the event loop can run in between."""
    return decoded(_page, f"list of {path}", body, cuts=True)


def event(path: str, line: bytes) -> tuple[Change, msgspec.Raw]:
    """Split a watch event into the type of change and the undecoded object."""
    happened = decoded(_event, f"watch event of {path}", line, cuts=True)
    try:
        return Change(happened.type), happened.object
    except ValueError as error:
        raise malformed(f"watch event of {path}", error) from error


def bookmark(path: str, body: msgspec.Raw) -> str:
    """Return the version in a bookmark."""
    return decoded(_bookmark, f"bookmark of {path}", body).metadata.resource_version


def identity(body: Json) -> meta.ObjectIdentity:
    """Decode only the identity of an object; for objects that cannot be decoded otherwise."""
    return decoded(_identified, "object", body).metadata


def decoded(decoder: msgspec.json.Decoder[W], what: str, body: Json, *, cuts: bool = False) -> W:
    """Decode JSON, with `cuts` without what is nested too deep; raise Malformed, with object and path."""
    try:
        return nesting.decode(decoder, body) if cuts else decoder.decode(body)
    except _UNREADABLE as error:
        raise malformed(f"{what} {name_in(body)}".strip(), error) from error


def malformed(what: str, error: Exception) -> Malformed:
    """Return the error for a response that cannot be decoded."""
    return Malformed("READ", what, reason="Malformed", message=str(error))


def name_in(body: Json) -> str:
    """Return the namespace and name in a body, or "" if it has none."""
    try:
        metadata = _identified.decode(body).metadata
    except _UNREADABLE:
        return ""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def kube_object(body: Json, api_version: str = "", kind: str = "") -> KubeObject:
    """Decode the metadata of any object, and its spec and status if they were requested."""
    wired = decoded(_any_object, "object", body)
    metadata = wired.metadata
    return KubeObject(
        api_version=api_version,
        kind=kind,
        spec=wired.spec,
        status=wired.status,
        uid=metadata.uid,
        name=metadata.name,
        namespace=metadata.namespace,
        resource_version=metadata.resource_version,
        labels=metadata.labels,
        annotations=metadata.annotations,
        owner=owner(metadata),
        is_deleting=metadata.deletion_timestamp is not None,
        size_bytes=len(bytes(body)),
    )


def read(what: str, decoder: msgspec.json.Decoder[W], translate: Callable[[W], T], body: Json) -> T:
    """Decode JSON and translate it; raise Malformed, with object and path, if either fails."""
    wired = decoded(decoder, what, body)
    try:
        return translate(wired)
    except (ValueError, ArithmeticError) as error:  # an invalid quantity
        raise malformed(f"{what} {name_in(body)}", error) from error


def owners(metadata: meta.Metadata) -> list[meta.OwnerReference]:
    """Return the owner references, none if longer than any honest ones; raise Malformed for odd ones."""
    try:
        return _owners.read(metadata.owner_references, absent=[], too_long=[])
    except _UNREADABLE as error:
        raise malformed(f"owners of {metadata.namespace}/{metadata.name}", error) from error


def owner(metadata: meta.Metadata) -> Owner | None:
    """Return the controlling owner, if there is one."""
    for reference in owners(metadata):
        if reference.controller:
            return Owner(
                api_version=reference.api_version,
                kind=reference.kind,
                name=reference.name,
                uid=reference.uid,
            )
    return None
