"""Merges a user's overrides into our specification, as `kubectl patch` does by default (strategic merge).

<https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/>. The rules are those of pods and
Services. Unlike in the library that SchedMD's operator uses, false, 0 and "" are values: they override ours.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from slurmruntime.model.objects import JsonDict, JsonObject

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
"""Lists whose elements have an identity, and the fields that form it."""
_APPENDED: Final = frozenset({"args", "tolerations", "searches"})
"""Lists that the user's elements are appended to: without ours, a daemon would not start, or not in the right place. Others are replaced."""
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
"""Mutually exclusive fields of an object: the user's replaces ours."""


def merge(ours: JsonObject, theirs: JsonObject) -> JsonDict:
    """Return our specification with the user's merged into it.

    A null removes a field. `$patch: delete` in an element removes that element, `$patch: replace` in an object replaces the
    whole object; other directives are ignored.
    """
    return _over("", ours, theirs)


def _over(at: str, ours: JsonObject, theirs: JsonObject) -> JsonDict:
    if theirs.get(_DIRECTIVE) == "replace":
        return {key: value for key, value in theirs.items() if not key.startswith("$")}
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


def _without_alternatives(at: str, ours: JsonObject, theirs: JsonObject) -> JsonDict:
    """Return ours without alternatives to what the user sets: two sources of a volume, for example, are invalid."""
    group = {*ours, *theirs} - {"name"} if at == "volumes" else _ALTERNATIVES.get(at, frozenset())
    if not any(theirs.get(key) is not None for key in group):
        return dict(ours)
    return {key: value for key, value in ours.items() if key not in group or key in theirs}


def _appended(
    of: str, ours: Sequence[object], theirs: Sequence[object], *, own_command: bool
) -> list[object]:
    if of == "args":  # for our program, unless the user runs another one
        return [*theirs] if own_command else [*ours, *theirs]
    return [*ours, *(element for element in theirs if element not in ours)]


def _merged(of: str, ours: Sequence[object], theirs: Sequence[object]) -> list[object]:
    """Merge by identity: our elements keep their positions, new ones follow."""
    merged: dict[tuple[object, ...], object] = {_identity(of, element): element for element in ours}
    for element in theirs:
        identity = _identity(of, element)
        if not isinstance(element, Mapping):
            merged[identity] = element
        elif element.get(_DIRECTIVE) == "delete":
            merged.pop(identity, None)
        else:
            below = merged.get(identity)
            merged[identity] = _over(of, below if isinstance(below, Mapping) else {}, element)
    return list(merged.values())


def _identity(of: str, element: object) -> tuple[object, ...]:
    if not isinstance(element, Mapping):
        return (repr(element),)
    return tuple(repr(element.get(key, _DEFAULTS.get(key))) for key in _KEYS[of])
