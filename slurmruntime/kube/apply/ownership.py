"""Judge whether an object is ours to write, and whether it is still as we applied it: pure.

Source of the form of `managedFields`: <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.
"""

import enum
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.objects import JsonDict, JsonObject

DIGEST_ANNOTATION: Final = "slurm-bridge.dev/applied"
"""Set on what we apply: a digest of the whole body. So it also changes if the new body has less."""

_DIGEST_LENGTH: Final = 16
_READ_ONLY: Final = frozenset({"name", "namespace", "uid"})
"""Fields of the metadata that no manager owns."""


class FieldOwner(msgspec.Struct, rename="camel", frozen=True):
    """`meta/v1 ManagedFieldsEntry`."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: JsonDict = {}


class OwnershipMetadata(ObjectMetadata, frozen=True):
    """Metadata that also shows who owns the object's fields."""

    managed_fields: tuple[FieldOwner, ...] = ()


class Ownership(enum.Enum):
    """How the current object compares with the desired one."""

    ABSENT = "absent"
    IN_FORCE = "in force"
    DIFFERENT = "different"
    LEAVING = "leaving"
    NOT_OURS = "not ours"
    NOT_SERVED = "not served"
    """The API server does not know its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipVerdict:
    """The ownership of an object, with the reason."""

    ownership: Ownership
    reason: str = ""
    """For people; "" if there is none."""


def digest(body: JsonObject) -> str:
    """Return a digest of a body; the order of its keys does not matter."""
    encoded = msgspec.json.encode(body, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:_DIGEST_LENGTH]


def stamped(body: JsonObject) -> JsonDict:
    """Return the body with its digest as an annotation."""
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), DIGEST_ANNOTATION: digest(body)}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def judge(
    current: OwnershipMetadata | None,
    body: JsonObject,
    *,
    owner_uid: str,
    manager: str,
    takes_over: bool,
) -> OwnershipVerdict:
    """Compare the object with the body's name, if there is one, with the body.

    Args:
        takes_over: Whether we may take over an object that has no controller, or that another program
            created for the same owner. Objects with another controller stay theirs.
    """
    if current is None:
        return OwnershipVerdict(ownership=Ownership.ABSENT)
    controller = next((owner for owner in current.owner_references if owner.controller), None)
    what = f"{body['kind']} {current.namespace}/{current.name}"
    if controller is not None and controller.uid != owner_uid:
        text = f"{what} belongs to {controller.kind} {controller.name}: delete it, or choose another name"
        return OwnershipVerdict(ownership=Ownership.NOT_OURS, reason=text)
    held = held_by(current, manager)
    if held is None and not takes_over:
        managers = {field_owner.manager for field_owner in current.managed_fields}
        others = ", ".join(sorted(filter(None, managers)))
        text = (
            f"{what} exists already and was not created by us (field managers: {others or 'none'})"
        )
        return OwnershipVerdict(ownership=Ownership.NOT_OURS, reason=text)
    if current.deletion_timestamp is not None:
        return OwnershipVerdict(ownership=Ownership.LEAVING, reason=f"{what} is being deleted")
    if held is None or current.annotations.get(DIGEST_ANNOTATION) != digest(body):
        return OwnershipVerdict(ownership=Ownership.DIFFERENT)
    lost = next(lost_fields(stamped(body), held), None)
    if lost is not None:
        return OwnershipVerdict(
            ownership=Ownership.DIFFERENT, reason=f"another manager has changed {lost} of {what}"
        )
    return OwnershipVerdict(ownership=Ownership.IN_FORCE)


def is_ours(current: OwnershipMetadata, *, owner_uid: str, manager: str) -> bool:
    """Check whether we created an object, and it still belongs to the owner for which we did.

    Both must hold before it is deleted: an object that was handed over to another owner, or whose owner
    reference was removed, is kept.
    """
    return current.controller_uid == owner_uid and held_by(current, manager) is not None


def held_by(current: OwnershipMetadata, manager: str) -> JsonObject | None:
    """Return the fields that a manager has applied; None if it has applied nothing."""
    return next(
        (
            field_owner.fields_v1
            for field_owner in current.managed_fields
            if (field_owner.manager, field_owner.operation, field_owner.subresource)
            == (manager, "Apply", "")
        ),
        None,
    )


def lost_fields(body: JsonObject, held: JsonObject) -> Iterator[str]:
    """Yield the paths of the body's fields that are no longer ours.

    A manager that sets a field to another value owns it from then on, and one that removes it takes it from
    us, so values need not be compared. The API server writes some of them differently.
    """
    metadata = {key: value for key, value in body["metadata"].items() if key not in _READ_ONLY}
    own = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    yield from _lost({**own, "metadata": metadata}, held, "")


def _lost(wanted: object, held: JsonObject, at: str) -> Iterator[str]:
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


def _item(item: object, index: int, held: JsonObject) -> JsonObject | None:
    """Return the fields held of one item of a list, found by its keys, its value or its index."""
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
