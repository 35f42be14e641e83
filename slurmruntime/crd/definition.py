"""Make a CustomResourceDefinition: one version, namespaced, with a status of its own."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from slurmruntime.crd.fields import RULES
from slurmruntime.crd.schema import Schema
from slurmruntime.model.objects import JsonDict


def definition(
    group: str,
    version: str,
    kind: str,
    plural: str,
    *,
    columns: Sequence[JsonDict],
    schema: Schema,
    names: Mapping[str, object] = MappingProxyType({}),
    scale: JsonDict | None = None,
) -> JsonDict:
    """Return the definition of a kind; `scale` has the paths of its number of replicas, if it has one."""
    subresources = {"status": {}} if scale is None else {"status": {}, "scale": scale}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                **names,
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "additionalPrinterColumns": list(columns),
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def object_schema(
    description: str, *, spec: Schema, status: Schema, rules: Sequence[JsonDict] = ()
) -> Schema:
    """Return the schema of a whole object, with rules about it."""
    return {
        "type": "object",
        **({RULES: list(rules)} if rules else {}),
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
