"""Leaves fields to the other managers that own them: pure.

The manager that writes a field owns it, <https://kubernetes.io/docs/reference/using-api/server-side-apply/>. In this way `kubectl scale`, an
autoscaler or a person may take over a field of an object that we created; we apply the rest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.ownership import OwnershipMetadata

_ALWAYS_OURS = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class RemainingBody:
    """A body without the fields of others."""

    body: Mapping[str, Any]
    foreign_fields: tuple[str, ...]
    """Paths of the fields that others own."""


def drop_foreign_fields(
    body: Mapping[str, Any], existing: OwnershipMetadata | None, manager: str
) -> RemainingBody:
    """Return a body without the fields that others own and we do not."""
    if existing is None or (ours := ownership.held_by(existing, manager)) is None:
        return RemainingBody(body, ())
    theirs = [
        managed_field.fields_v1
        for managed_field in existing.managed_fields
        if managed_field.manager != manager or managed_field.operation != "Apply"
    ]
    dropped: list[str] = []
    content = {key: value for key, value in body.items() if key not in _ALWAYS_OURS}
    remaining = _drop(content, ours, theirs, "", dropped)
    return RemainingBody({**{key: body[key] for key in _ALWAYS_OURS}, **remaining}, tuple(dropped))


def drop_fields(body: Mapping[str, Any], fields: Collection[str]) -> RemainingBody:
    """Return a body without these fields, such as `.spec.replicas`, as a conflict names them."""
    dropped: list[str] = []

    def drop(node: Mapping[str, Any], at: str) -> dict[str, Any]:
        remaining: dict[str, Any] = {}
        for key, value in node.items():
            path = f"{at}.{key}"
            if path in fields:
                dropped.append(path.removeprefix("."))
            else:
                remaining[key] = drop(value, path) if isinstance(value, Mapping) else value
        return remaining

    content = {key: value for key, value in body.items() if key not in _ALWAYS_OURS}
    return RemainingBody(
        {**{key: body[key] for key in _ALWAYS_OURS}, **drop(content, "")}, tuple(dropped)
    )


def _drop(
    node: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Sequence[Mapping[str, Any]],
    at: str,
    dropped: list[str],
) -> dict[str, Any]:
    """Return a node without the fields that only others own, whose paths are added to `dropped`."""
    remaining: dict[str, Any] = {}
    for key, value in node.items():
        path, name = f"{at}.{key}".removeprefix("."), f"f:{key}"
        of_others = [fields for other in theirs if (fields := other.get(name)) is not None]
        own = ours.get(name)
        if not of_others:
            remaining[key] = value
        elif isinstance(value, Mapping) and any(of_others):
            remaining[key] = _drop(value, own or {}, of_others, path, dropped)
        elif own is not None:
            remaining[key] = value
        else:
            dropped.append(path)
    return remaining
