"""Merging the specifications of several versions of the API."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from generate.decisions import CHANGED

JsonDict: TypeAlias = dict[str, Any]
"""A specification, or a part of one, as Slurm wrote it."""


@dataclass(slots=True)
class Specification:
    """What all versions have together; older ones only add what newer ones have dropped."""

    release: str = ""
    """Slurm's release, from the newest document."""
    schemas: dict[str, JsonDict] = field(default_factory=dict)
    """The properties of each object, by its name without the version."""
    arrays: dict[str, JsonDict] = field(default_factory=dict)
    """The items of each schema that is a list, by its name."""
    operations: dict[str, dict[int, JsonDict]] = field(default_factory=dict)
    """By name and version: the operation as specified, with `method` and `path`."""


def merge(documents: Mapping[int, JsonDict]) -> Specification:
    """Merge documents by version, the newest first."""
    found = Specification()
    for version in sorted(documents, reverse=True):
        document = documents[version]
        found.release = found.release or document["info"]["x-slurm"]["release"]
        for name, schema in document["components"]["schemas"].items():
            _add_schema(found, _short(name), schema)
        for path, methods in document["paths"].items():
            for method, said in methods.items():
                name = re.sub(r"_v\d{4}", "", said["operationId"])
                versions = found.operations.setdefault(name, {})
                versions[version] = {
                    **said,
                    "method": method.upper(),
                    "path": path.replace(f"v0.0.{version}", "{version}"),
                }
    return found


def type_conflicts(documents: Mapping[int, JsonDict]) -> Iterator[str]:
    """Describe each property whose type differs between versions, unless it is in `CHANGED`."""
    seen: dict[tuple[str, str], str] = {}
    for version, document in documents.items():
        one = merge({version: document})
        for schema, properties in one.schemas.items():
            for key, value in properties.items():
                kind = re.sub(r"\[.*", "[]", kind_of(one, value))
                if seen.setdefault((schema, key), kind) != kind and (schema, key) not in CHANGED:
                    yield f"{schema}.{key}: {seen[schema, key]} and, in v0.0.{version}, {kind}"


def kind_of(spec: Specification, value: JsonDict) -> str:
    """Return a plain type or the name of a schema; with [] for a list, `flags[]` for a list of enums."""
    if "$ref" in value:
        name = _short(value["$ref"])
        return _list_of(spec, spec.arrays[name]) if name in spec.arrays else name
    kind = str(value.get("type", "object"))
    return _list_of(spec, value["items"]) if kind == "array" else kind


def _list_of(spec: Specification, items: JsonDict) -> str:
    return "flags[]" if "enum" in items else f"{kind_of(spec, items)}[]"


def _add_schema(spec: Specification, name: str, schema: JsonDict) -> None:
    if schema.get("type") != "array":
        _add_object(spec, name, schema)
        return
    wrapper = f"{name}__list"  # so that an unnamed object among the items gets a name
    _add_object(spec, wrapper, {"properties": {"item": schema["items"]}})
    spec.arrays.setdefault(name, spec.schemas.pop(wrapper)["item"])


def _add_object(spec: Specification, name: str, schema: JsonDict) -> None:
    """Add an object's properties; name the unnamed objects among them."""
    known = spec.schemas.setdefault(name, {})
    for key, value in schema.get("properties", {}).items():
        inner = value.get("items", value) if value.get("type") == "array" else value
        if "properties" in inner:
            named = f"{name}__{key}"
            _add_object(spec, named, inner)
            reference = {"$ref": f"v0.0.00_{named}"}
            merged = {**value, "items": reference} if inner is not value else {**reference}
            known.setdefault(key, merged)
        else:
            known.setdefault(key, value)


def _short(name: str) -> str:
    return re.sub(r"^.*v0\.0\.\d\d_", "", name)
