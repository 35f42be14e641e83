"""Fields that others own are left to them: pure.

Who has written a field owns it, <https://kubernetes.io/docs/reference/using-api/server-side-apply/>. `kubectl scale`, an
autoscaler or a person may so take a field of an object that we have made; we ask for the rest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurmruntime.kube.apply import standing
from slurmruntime.kube.apply.standing import FoundMetadata

_OURS_ALWAYS = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class Yielded:
    """What is left to ask for."""

    body: Mapping[str, Any]
    left: tuple[str, ...]
    """Paths of fields that are others'."""


def to_owners(body: Mapping[str, Any], found: FoundMetadata | None, manager: str) -> Yielded:
    """Return a body without the fields that others own and we do not."""
    if found is None or (ours := standing.held_by(found, manager)) is None:
        return Yielded(body, ())
    theirs = [
        managed_field.fields_v1
        for managed_field in found.managed_fields
        if managed_field.manager != manager or managed_field.operation != "Apply"
    ]
    left: list[str] = []
    own = {key: each for key, each in body.items() if key not in _OURS_ALWAYS}
    kept = _without(own, ours, theirs, "", left)
    return Yielded({**{key: body[key] for key in _OURS_ALWAYS}, **kept}, tuple(left))


def without(body: Mapping[str, Any], fields: Collection[str]) -> Yielded:
    """Return a body without these fields, such as `.spec.replicas`, as a conflict names them."""
    left: list[str] = []

    def cut(node: Mapping[str, Any], at: str) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, each in node.items():
            where = f"{at}.{key}"
            if where in fields:
                left.append(where.removeprefix("."))
            else:
                kept[key] = cut(each, where) if isinstance(each, Mapping) else each
        return kept

    own = {key: each for key, each in body.items() if key not in _OURS_ALWAYS}
    return Yielded({**{key: body[key] for key in _OURS_ALWAYS}, **cut(own, "")}, tuple(left))


def _without(
    wanted: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Sequence[Mapping[str, Any]],
    at: str,
    left: list[str],
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, each in wanted.items():
        where, name = f"{at}.{key}".removeprefix("."), f"f:{key}"
        held = [part for other in theirs if (part := other.get(name)) is not None]
        own = ours.get(name)
        if not held:
            kept[key] = each
        elif isinstance(each, Mapping) and any(held):
            kept[key] = _without(each, own or {}, held, where, left)
        elif own is not None:
            kept[key] = each
        else:
            left.append(where)
    return kept
