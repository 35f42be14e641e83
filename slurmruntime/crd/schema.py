"""Turn typed fields into the schema of a CustomResourceDefinition.

Kubernetes accepts structural schemas only: a type everywhere, no references, no alternatives except those that have a
keyword of their own, <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from slurmruntime.crd.fields import ObjectStruct

Schema = dict[str, Any]

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
FREE: Final = "x-kubernetes-preserve-unknown-fields"
"""Marks a field without a schema of ours, such as a container."""

_NULL: Final = {"type": "null"}
_PREFIX: Final = "#/"


def structural(
    kind: type[ObjectStruct],
    *,
    with_defaults: bool,
    replaced: Mapping[str, Schema] = MappingProxyType({}),
) -> Schema:
    """Return the schema of a type.

    Args:
        with_defaults: Whether the API server fills in what is absent.
        replaced: Schemas of fields for which it does not follow from their type.
    """
    (top,), components = msgspec.json.schema_components([kind], ref_template=_PREFIX + "{name}")
    resolved = _resolved(top, components)
    fields = resolved["properties"]
    own = {name: field for name, field in fields.items() if name not in replaced}
    plain = _plain({**resolved, "properties": own}, components, with_defaults=with_defaults)
    for name, schema in replaced.items():
        plain["properties"][name] = {**schema, "description": fields[name]["description"]}
    return plain


def _plain(
    node: Mapping[str, Any], components: Mapping[str, Schema], *, with_defaults: bool
) -> Schema:
    node = _without_alternatives(_resolved(node, components), components)
    plain: Schema = {}
    for key, value in node.items():
        match key:
            case "title":
                continue
            case "default":
                if with_defaults and (value or value is False):
                    plain[key] = value  # an empty default means the same as none
            case "required":
                if value:
                    plain[key] = value
            case "properties":
                plain[key] = {
                    name: _plain(field, components, with_defaults=with_defaults)
                    for name, field in value.items()
                }
            case "items" | "additionalProperties":
                plain[key] = _plain(value, components, with_defaults=with_defaults)
            case _:
                plain[key] = value
    if "enum" in plain:
        plain["type"] = "string"
    return plain


def _resolved(node: Mapping[str, Any], components: Mapping[str, Schema]) -> Schema:
    """Replace a reference by its definition; keys beside the reference take precedence."""
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
    (only,) = (alternative for alternative in node["anyOf"] if alternative != _NULL)
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**_resolved(only, components), **rest}
