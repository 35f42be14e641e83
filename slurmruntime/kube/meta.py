"""Schema of what all objects of the API server have in common: `meta/v1`, lists, and watch events.

Only the fields we use, under the API's names; others are skipped. The garbage collector does not track the
structs: they form no cycles and are short-lived. Source: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/>.
"""

from datetime import UTC, datetime

import msgspec

from slurmruntime.model.objects import JsonDict


class Struct(msgspec.Struct, rename="camel", gc=False):
    """Base of all structs: camelCase names, not tracked by the garbage collector."""


class OwnerReference(Struct):
    """`meta/v1 OwnerReference`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Metadata(Struct):
    """`meta/v1 ObjectMeta`."""

    name: str
    uid: str
    resource_version: str
    creation_timestamp: datetime
    namespace: str = ""
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: msgspec.Raw = msgspec.Raw()
    """A list of `OwnerReference`; see `resource.owners`."""
    finalizers: list[str] = []


class ObjectIdentity(Struct):
    """The part of `meta/v1 ObjectMeta` that every object has."""

    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class ObjectHeader(Struct):
    """Any object, of which only the identity is decoded."""

    metadata: ObjectIdentity


class Condition(Struct):
    """`core/v1 PodCondition`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class AnyObject(Struct):
    """`meta/v1 PartialObjectMetadata`, which fits every object; a few kinds add spec and status."""

    metadata: Metadata
    spec: JsonDict = {}
    status: JsonDict = {}


class ApiResource(Struct):
    """`meta/v1 APIResource`; subresources have a "/" in their name."""

    name: str
    kind: str
    namespaced: bool


class ApiResourceList(Struct):
    """`meta/v1 APIResourceList`."""

    resources: list[ApiResource]


class ListMetadata(Struct):
    """`meta/v1 ListMeta`."""

    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class Page(Struct):
    """Any list; items are decoded one by one, so that the event loop can run in between."""

    metadata: ListMetadata
    items: list[msgspec.Raw]


class WatchEvent(Struct):
    """`meta/v1 WatchEvent`."""

    type: str
    object: msgspec.Raw


class Bookmark(Struct):
    """The object of a BOOKMARK event: only a version."""

    metadata: ListMetadata


def rfc3339(moment: datetime) -> str:
    """Format an aware datetime for both `Time` and `MicroTime`, which requires all six digits."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
