"""Turn typed fields into the schema of a CustomResourceDefinition.

Kubernetes takes structural schemas only: a type in every place, no references, no alternatives but those it has a
word of its own for, <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from slurmruntime.crd.fields import ObjectStruct

Schema = dict[str, Any]

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
FREE: Final = "x-kubernetes-preserve-unknown-fields"
"""What has no schema of ours, such as a container."""

_NULL: Final = {"type": "null"}
_PREFIX: Final = "#/"


def structural(
    kind: type[ObjectStruct],
    *,
    with_defaults: bool,
    given: Mapping[str, Schema] = MappingProxyType({}),
) -> Schema:
    """Return the schema of a type.

    Args:
        kind: The type.
        with_defaults: Whether the API server fills in what is absent.
        given: Fields of the type whose schema does not follow from their type.
    """
    (top,), components = msgspec.json.schema_components([kind], ref_template=_PREFIX + "{name}")
    found = _resolved(top, components)
    said = found["properties"]
    own = {name: each for name, each in said.items() if name not in given}
    found = _plain({**found, "properties": own}, components, with_defaults=with_defaults)
    for name, schema in given.items():
        found["properties"][name] = {**schema, "description": said[name]["description"]}
    return found


def _plain(
    node: Mapping[str, Any], components: Mapping[str, Schema], *, with_defaults: bool
) -> Schema:
    node = _without_alternatives(_resolved(node, components), components)
    found: Schema = {}
    for key, value in node.items():
        match key:
            case "title":
                continue
            case "default":
                if with_defaults and (value or value is False):
                    found[key] = value  # what is empty means the same as what is absent
            case "required":
                if value:
                    found[key] = value
            case "properties":
                found[key] = {
                    name: _plain(each, components, with_defaults=with_defaults)
                    for name, each in value.items()
                }
            case "items" | "additionalProperties":
                found[key] = _plain(value, components, with_defaults=with_defaults)
            case _:
                found[key] = value
    if "enum" in found:
        found["type"] = "string"
    return found


def _resolved(node: Mapping[str, Any], components: Mapping[str, Schema]) -> Schema:
    """Put the definition in the place of its name; what stands beside the name is stronger."""
    if "$ref" not in node:
        return dict(node)
    definition = components[node["$ref"].removeprefix(_PREFIX)]
    return {**definition, **{key: value for key, value in node.items() if key != "$ref"}}


def _without_alternatives(node: Schema, components: Mapping[str, Schema]) -> Schema:
    """Take the only alternative to null: an optional field is one that may be absent."""
    if node.get(INT_OR_STRING):
        return {key: value for key, value in node.items() if key not in ("anyOf", "type")}
    if "anyOf" not in node:
        return node
    (only,) = (each for each in node["anyOf"] if each != _NULL)
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**_resolved(only, components), **rest}
