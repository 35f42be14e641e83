"""Read a docker-bake.json: the images, and how each is built.

Of bake's features (https://docs.docker.com/build/bake/reference/) this supports variables with a default, groups, and targets
with `inherits`, `context`, `dockerfile`, `target`, `args` and `tags`. Everything else is refused, as it would have no effect here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError
from slurmruntime.model.objects import JsonDict, JsonObject

_KEYS = frozenset({"inherits", "context", "dockerfile", "target", "args", "tags"})
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BakeTarget:
    """One image."""

    name: str
    context: str
    """The folder that the Dockerfile copies from, relative to the bake file."""
    dockerfile: str
    """Relative to the context."""
    stage: str
    arguments: Mapping[str, str]
    tags: tuple[str, ...]


def read(
    file: Path, group: str = "default", variables: Mapping[str, str] | None = None
) -> tuple[BakeTarget, ...]:
    """Return the images of a group, in its order.

    Args:
        file: the bake file.
        group: which one.
        variables: values instead of the file's defaults.

    Raises:
        SandboxError: with everything that is not as expected.
    """
    try:
        document = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SandboxError(f"{file}: {error}") from error
    if faults := list(_faults(document, group)):
        raise SandboxError("\n".join(f"{file}: {fault}" for fault in faults))
    defaults = {name: variable["default"] for name, variable in document["variable"].items()}
    values = {**defaults, **(variables or {})}
    return tuple(
        _target(name, document["target"], values) for name in _members(group, document["group"])
    )


def _faults(document: JsonObject, wanted: str) -> Iterator[str]:
    parts = ("variable", "group", "target")
    if any(not isinstance(document.get(part), dict) for part in parts):
        yield f"expected the objects {', '.join(parts)}"
        return
    targets, groups = document["target"], document["group"]
    for name, target in targets.items():
        for fault in _target_faults(target, targets, document["variable"]):
            yield f"target.{name}: {fault}"
    for name, group in groups.items():
        for member in sorted({*group["targets"]} - {*targets, *groups}):
            yield f"group.{name}: there is no target or group {member}"
    if wanted not in groups:
        yield f"expected a group {wanted!r}, found {', '.join(sorted(groups))}"


def _target_faults(target: JsonObject, targets: JsonObject, variables: JsonObject) -> Iterator[str]:
    for key in sorted({*target} - _KEYS):
        yield f"{key} is not supported here"
    for other in sorted({*target.get("inherits", ())} - {*targets}):
        yield f"there is no target {other} to inherit"
    for variable in sorted({*_VARIABLE.findall(json.dumps(target))} - {*variables}):
        yield f"there is no variable {variable}"


def _members(group: str, groups: JsonObject) -> Iterator[str]:
    for name in groups[group]["targets"]:
        if name in groups:
            yield from _members(name, groups)
        else:
            yield name


def _target(name: str, targets: JsonObject, values: Mapping[str, str]) -> BakeTarget:
    merged = _merge(name, targets)
    return BakeTarget(
        name=name,
        context=_fill(merged.get("context", "."), values),
        dockerfile=_fill(merged.get("dockerfile", "Dockerfile"), values),
        stage=merged.get("target", ""),
        arguments={key: _fill(value, values) for key, value in merged["args"].items()},
        tags=tuple(_fill(tag, values) for tag in merged.get("tags", ())),
    )


def _merge(name: str, targets: JsonObject) -> JsonDict:
    """Merge a target with those that it inherits; later ones win, arguments are merged one by one."""
    merged: JsonDict = {"args": {}}
    for layer in (
        *(_merge(other, targets) for other in targets[name].get("inherits", ())),
        targets[name],
    ):
        merged |= {**layer, "args": {**merged["args"], **layer.get("args", {})}}
    return merged


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values[match[1]], text)
