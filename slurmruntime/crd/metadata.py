"""The part of `meta/v1 ObjectMeta` that we read of our own objects."""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from slurmruntime.crd.fields import Moment, ObjectStruct


class OwnerReference(ObjectStruct, frozen=True):
    """`meta/v1 OwnerReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMetadata(ObjectStruct, frozen=True):
    """Metadata of an object that may not have been stored yet: then it has no uid, and perhaps no name."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] | None = None
    """None if the list does not exist: a patch must create it then."""

    @property
    def full_name(self) -> str:
        """For people: namespace and name, or the prefix of the name it will get."""
        return f"{self.namespace}/{self.name or f'{self.generate_name}…'}"

    @property
    def controller_uid(self) -> str:
        """The uid of the controlling owner; "" without one."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")

    @property
    def key_as_owner(self) -> str:
        """The key by which its own objects are found: anybody may write its uid on an object of another namespace."""
        return f"{self.namespace}/{self.uid}"

    @property
    def controller_key(self) -> str:
        """The `key_as_owner` of the controlling owner; "" without one."""
        uid = self.controller_uid
        return f"{self.namespace}/{uid}" if uid else ""


class ObjectInNamespace(Protocol):
    """An object that others may own, or own others."""

    @property
    def metadata(self) -> ObjectMetadata:
        """Its own."""


def controllers(
    find: Callable[[str], ObjectInNamespace | None], *versions: ObjectInNamespace | None
) -> Iterator[str]:
    """Yield the uids of the controlling owners of an object's versions, as far as an owner of that uid is in its namespace."""
    for version in versions:
        owner = find(version.metadata.controller_uid) if version else None
        if version and owner and owner.metadata.key_as_owner == version.metadata.controller_key:
            yield owner.metadata.uid
