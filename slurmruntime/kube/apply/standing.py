"""Whether an object is ours to write, and whether it is still as we applied it: pure.

Source of the form of `managedFields`: <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.
"""

import enum
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

DIGEST_ANNOTATION: Final = "slurm-bridge.dev/applied"
"""On what we apply: a digest of all that we asked for. It changes if we ask for less, too."""

_DIGEST_LENGTH: Final = 16
_READ_ONLY: Final = frozenset({"name", "namespace", "uid"})
"""Of the metadata: nobody manages them."""


class FieldOwner(msgspec.Struct, rename="camel", frozen=True):
    """`meta/v1 ManagedFieldsEntry`."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = {}


class OwnerOfObject(msgspec.Struct, rename="camel", frozen=True):
    """`meta/v1 OwnerReference`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class FoundMetadata(msgspec.Struct, rename="camel", frozen=True):
    """The part of `meta/v1 ObjectMeta` that says whose an object is."""

    name: str
    uid: str
    namespace: str = ""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerOfObject, ...] = ()
    managed_fields: tuple[FieldOwner, ...] = ()
    deletion_timestamp: str | None = None
    resource_version: str = ""


class Standing(enum.Enum):
    """How an object stands to what we want there."""

    ABSENT = "absent"
    IN_FORCE = "in force"
    DIFFERENT = "different"
    LEAVING = "leaving"
    NOT_OURS = "not ours"
    NOT_SERVED = "not served"
    """The API server does not know its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVerdict:
    """How it stands, and why."""

    standing: Standing
    reason: str = ""
    """For people; "" if there is nothing to say."""


def digest(body: Mapping[str, Any]) -> str:
    """Return what only this body has; the order of its keys does not matter."""
    encoded = msgspec.json.encode(body, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:_DIGEST_LENGTH]


def stamped(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with its digest as an annotation."""
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), DIGEST_ANNOTATION: digest(body)}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def judge(
    found: FoundMetadata | None,
    body: Mapping[str, Any],
    *,
    owner_uid: str,
    manager: str,
    takes_over: bool,
) -> StandingVerdict:
    """Say how the object of this name stands to the body that we want there.

    Args:
        found: The object that has the name, if there is one.
        body: What we want, without its digest.
        owner_uid: Of the object that controls it.
        manager: The field manager that we apply as.
        takes_over: Whether we may take an object that nobody controls, or that another program
            made for the same owner. What somebody else controls stays theirs.
    """
    if found is None:
        return StandingVerdict(standing=Standing.ABSENT)
    controller = _controller(found)
    what = f"{body['kind']} {found.namespace}/{found.name}"
    if controller is not None and controller.uid != owner_uid:
        text = f"{what} belongs to {controller.kind} {controller.name}: delete it, or choose another name"
        return StandingVerdict(standing=Standing.NOT_OURS, reason=text)
    held = held_by(found, manager)
    if held is None and not takes_over:
        others = ", ".join(
            sorted(
                {
                    managed_field.manager
                    for managed_field in found.managed_fields
                    if managed_field.manager
                }
            )
        )
        text = f"{what} is there, and we did not make it (its fields are those of {others or 'nobody'})"
        return StandingVerdict(standing=Standing.NOT_OURS, reason=text)
    if found.deletion_timestamp is not None:
        return StandingVerdict(standing=Standing.LEAVING, reason=f"{what} is being deleted")
    if held is None or found.annotations.get(DIGEST_ANNOTATION) != digest(body):
        return StandingVerdict(standing=Standing.DIFFERENT)
    lost = next(lost_fields(stamped(body), held), None)
    if lost is not None:
        return StandingVerdict(
            standing=Standing.DIFFERENT, reason=f"somebody has changed {lost} of {what}"
        )
    return StandingVerdict(standing=Standing.IN_FORCE)


def is_ours(found: FoundMetadata, *, owner_uid: str, manager: str) -> bool:
    """Check whether we have made an object, and it still belongs to the one that it was made for.

    Both must hold before it is taken away: who handed it over to another owner, or removed the
    reference, keeps it.
    """
    controller = _controller(found)
    is_theirs = controller is None or controller.uid != owner_uid
    return not is_theirs and held_by(found, manager) is not None


def _controller(found: FoundMetadata) -> OwnerOfObject | None:
    return next(
        (
            owner_reference
            for owner_reference in found.owner_references
            if owner_reference.controller
        ),
        None,
    )


def held_by(found: FoundMetadata, manager: str) -> Mapping[str, Any] | None:
    """Return the fields that a manager has applied; None if it has applied nothing."""
    return next(
        (
            managed_field.fields_v1
            for managed_field in found.managed_fields
            if (managed_field.manager, managed_field.operation, managed_field.subresource)
            == (manager, "Apply", "")
        ),
        None,
    )


def lost_fields(body: Mapping[str, Any], held: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the body's fields that are not ours any more.

    Who gives a field another value owns it from then on, and one who removes it takes it from us,
    so values need not be compared. The API server would write some of them in another way.
    """
    metadata = {key: each for key, each in body["metadata"].items() if key not in _READ_ONLY}
    own = {key: each for key, each in body.items() if key not in ("apiVersion", "kind")}
    yield from _lost({**own, "metadata": metadata}, held, "")


def _lost(wanted: object, held: Mapping[str, Any], at: str) -> Iterator[str]:
    if not held:
        return  # it is held as a whole
    if isinstance(wanted, Mapping):
        for key, value in wanted.items():
            if _is_empty(value):
                continue  # the API server may leave it out
            where = f"{at}.{key}" if at else key
            if (part := held.get(f"f:{key}")) is None:
                yield where
            else:
                yield from _lost(value, part, where)
    elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
        for index, item in enumerate(wanted):
            if (part := _item(item, index, held)) is None:
                yield f"{at}[{index}]"
            else:
                yield from _lost(item, part, f"{at}[{index}]")


def _item(item: object, index: int, held: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what is held of one item of a list: by its keys, its value or its place."""
    for name, part in held.items():
        how, _, what = name.partition(":")
        if how == "k" and isinstance(item, Mapping):
            keys = msgspec.json.decode(what)
            shared = keys.keys() & item.keys()  # the API server adds the defaults of others
            if shared and all(keys[key] == item[key] for key in shared):
                return dict(part)
        elif (how == "v" and msgspec.json.decode(what) == item) or (
            how == "i" and what == str(index)
        ):
            return dict(part)
    return None


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)
