"""Lay a user's part of a specification over ours, as `kubectl patch` does by default (strategic merge).

<https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/>. The rules are those of pods and
Services. Unlike the library that SchedMD's operator uses, false, 0 and "" are values: they win.
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
        "ports": ("containerPort", "port", "protocol"),
        "imagePullSecrets": ("name",),
        "hostAliases": ("ip",),
        "resourceClaims": ("name",),
        "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
        "schedulingGates": ("name",),
    }
)
"""Lists whose elements have an identity, and the fields that make it up."""
_APPENDED: Final = frozenset({"args", "tolerations", "searches"})
"""Lists to which the user adds: without our part of them a daemon would not start, or not where it should. All others are replaced."""
_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({"protocol": "TCP"})
_DIRECTIVE: Final = "$patch"
_HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "sleep", "tcpSocket"})
_ALTERNATIVES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "env": frozenset({"value", "valueFrom"}),
        "livenessProbe": _HANDLERS,
        "readinessProbe": _HANDLERS,
        "startupProbe": _HANDLERS,
        "postStart": _HANDLERS,
        "preStop": _HANDLERS,
    }
)
"""Fields of which an object has one: the user's displaces ours."""


def laid_over(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return our specification with theirs over it.

    A null takes a field away. `$patch: delete` in an element takes that element away, `$patch: replace` in an object replaces it as
    a whole; other directives are ignored.
    """
    return _over("", ours, theirs)


def _over(at: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    if theirs.get(_DIRECTIVE) == "replace":
        return _plain(theirs)
    merged = _without_alternatives(at, ours, theirs)
    for key, value in theirs.items():
        if key.startswith("$"):
            continue
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _over(key, below if isinstance(below, Mapping) else {}, value)
        elif isinstance(value, list) and key in _KEYS:
            merged[key] = _merged(key, below if isinstance(below, list) else [], value)
        elif isinstance(value, list) and isinstance(below, list) and key in _APPENDED:
            merged[key] = _appended(key, below, value, own_command=bool(theirs.get("command")))
        else:
            merged[key] = value
    return merged


def _without_alternatives(
    at: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ours without what the user has another kind of: two sources of a volume, say, are refused."""
    group = {*ours, *theirs} - {"name"} if at == "volumes" else _ALTERNATIVES.get(at, frozenset())
    if not any(theirs.get(key) is not None for key in group):
        return dict(ours)
    return {key: value for key, value in ours.items() if key not in group or key in theirs}


def _appended(
    of: str, ours: Sequence[Any], theirs: Sequence[Any], *, own_command: bool
) -> list[Any]:
    if of == "args":  # of our program, unless they run another one
        return [*theirs] if own_command else [*ours, *theirs]
    return [*ours, *(their for their in theirs if their not in ours)]


def _merged(of: str, ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Merge by identity: ours keep their places, theirs come after."""
    found: dict[tuple[object, ...], Any] = {_identity(of, our): our for our in ours}
    for their in theirs:
        identity = _identity(of, their)
        if not isinstance(their, Mapping):
            found[identity] = their
        elif their.get(_DIRECTIVE) == "delete":
            found.pop(identity, None)
        else:
            below = found.get(identity)
            found[identity] = _over(of, below if isinstance(below, Mapping) else {}, their)
    return list(found.values())


def _identity(of: str, element: Any) -> tuple[object, ...]:
    if not isinstance(element, Mapping):
        return (repr(element),)
    return tuple(repr(element.get(key, _DEFAULTS.get(key))) for key in _KEYS[of])


def _plain(theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in theirs.items() if not key.startswith("$")}
