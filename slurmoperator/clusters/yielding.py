"""Leaves fields to the other managers that own them: pure.

The manager that writes a field owns it, <https://kubernetes.io/docs/reference/using-api/server-side-apply/>. In this way `kubectl scale`, an
autoscaler or a person may take over a field of an object that we created; we apply the rest.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.ownership import OwnershipMetadata
from slurmruntime.model.objects import JsonDict, JsonObject

_ALWAYS_OURS = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class RemainingBody:
    """A body without the fields of others."""

    body: JsonObject
    foreign_fields: tuple[str, ...]
    """Paths of the fields that others own, such as `spec.replicas`."""


def drop_foreign_fields(
    body: JsonObject, existing: OwnershipMetadata | None, manager: str
) -> RemainingBody:
    """Return a body without the fields that others own and we do not."""
    if existing is None or (ours := ownership.held_by(existing, manager)) is None:
        return RemainingBody(body, ())
    theirs = [
        managed_field.fields_v1
        for managed_field in existing.managed_fields
        if managed_field.manager != manager or managed_field.operation != "Apply"
    ]
    foreign = frozenset(_foreign(_content(body), ours, theirs, ""))
    return drop_fields(RemainingBody(body, ()), foreign)


def drop_fields(remaining: RemainingBody, fields: Collection[str]) -> RemainingBody:
    """Return a body without these fields, such as `spec.replicas`, too; those that it does not have do not count."""
    content = _content(remaining.body)
    dropped = tuple(path for path in _paths(content, "") if path in fields)
    always_ours = {key: remaining.body[key] for key in _ALWAYS_OURS}
    return RemainingBody(
        {**always_ours, **_without(content, "", frozenset(dropped))},
        (*remaining.foreign_fields, *dropped),
    )


def _content(body: JsonObject) -> JsonObject:
    return {key: value for key, value in body.items() if key not in _ALWAYS_OURS}


def _foreign(
    node: JsonObject, ours: JsonObject, theirs: Sequence[JsonObject], at: str
) -> Iterator[str]:
    """Yield the paths of the fields that only others own."""
    for key, value in node.items():
        path, name = f"{at}.{key}".removeprefix("."), f"f:{key}"
        of_others = [fields for other in theirs if (fields := other.get(name)) is not None]
        own = ours.get(name)
        if isinstance(value, Mapping) and any(of_others):
            yield from _foreign(value, own or {}, of_others, path)
        elif of_others and own is None:
            yield path


def _paths(node: JsonObject, at: str) -> Iterator[str]:
    for key, value in node.items():
        path = f"{at}.{key}".removeprefix(".")
        yield path
        if isinstance(value, Mapping):
            yield from _paths(value, path)


def _without(node: JsonObject, at: str, dropped: frozenset[str]) -> JsonDict:
    remaining: JsonDict = {}
    for key, value in node.items():
        path = f"{at}.{key}".removeprefix(".")
        if path not in dropped:
            is_inner = isinstance(value, Mapping)
            remaining[key] = _without(value, path, dropped) if is_inner else value
    return remaining
