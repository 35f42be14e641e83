"""Lay a user's part of a specification over ours, as `kubectl patch` does by default (strategic merge).

<https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/>. The rules are those of a pod's
specification. Unlike the library that SchedMD's operator uses, false, 0 and "" are values: they win.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

_KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "containers": ("name",),
        "initContainers": ("name",),
        "ephemeralContainers": ("name",),
        "env": ("name",),
        "volumes": ("name",),
        "volumeMounts": ("mountPath",),
        "volumeDevices": ("devicePath",),
        "ports": ("containerPort", "protocol"),
        "imagePullSecrets": ("name",),
        "hostAliases": ("ip",),
        "resourceClaims": ("name",),
        "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
        "schedulingGates": ("name",),
    }
)
"""Lists whose elements have an identity, and the fields that make it up. All other lists are replaced as a whole."""
_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({"protocol": "TCP"})
_DIRECTIVE: Final = "$patch"


def laid_over(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return our specification with theirs over it.

    A null takes a field away. `$patch: delete` in an element takes that element away, `$patch: replace` in an object replaces it as
    a whole; other directives are ignored.
    """
    if theirs.get(_DIRECTIVE) == "replace":
        return _plain(theirs)
    merged = dict(ours)
    for key, value in theirs.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = ours.get(key)
            merged[key] = laid_over(below if isinstance(below, Mapping) else {}, value)
        elif isinstance(value, list) and key in _KEYS:
            below = ours.get(key)
            merged[key] = _merged(key, below if isinstance(below, list) else [], value)
        else:
            merged[key] = value
    return merged


def _merged(of: str, ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Merge by identity: ours keep their places, theirs come after."""
    found: dict[tuple[object, ...], Any] = {_identity(of, each): each for each in ours}
    for each in theirs:
        identity = _identity(of, each)
        if not isinstance(each, Mapping):
            found[identity] = each
        elif each.get(_DIRECTIVE) == "delete":
            found.pop(identity, None)
        else:
            below = found.get(identity)
            found[identity] = laid_over(below if isinstance(below, Mapping) else {}, each)
    return list(found.values())


def _identity(of: str, element: Any) -> tuple[object, ...]:
    if not isinstance(element, Mapping):
        return (repr(element),)
    return tuple(repr(element.get(key, _DEFAULTS.get(key))) for key in _KEYS[of])


def _plain(theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in theirs.items() if not key.startswith("$")}
