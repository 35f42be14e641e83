"""Generates the CustomResourceDefinitions of the six kinds and of SlurmCluster from their types."""

from slurmoperator.objects import names
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER, ClusterKind
from slurmruntime.crd.fields import RULES
from slurmruntime.crd.schema import Schema, structural
from slurmruntime.model.objects import JsonDict


def definitions() -> tuple[JsonDict, ...]:
    """Return all definitions, in the order of the kinds."""
    return tuple(definition(kind) for kind in (*KINDS, SLURM_CLUSTER))


def definition(kind: ClusterKind) -> JsonDict:
    """Return the definition of one kind."""
    subresources: JsonDict = {"status": {}}
    if kind.is_scaled:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.definition_name},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": list(kind.short_names),
                "categories": ["slurm"],
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "additionalPrinterColumns": [
                        {"name": name, "type": column_type, "jsonPath": path, "priority": priority}
                        for name, column_type, path, priority in kind.columns
                    ],
                    "schema": {"openAPIV3Schema": _schema(kind)},
                }
            ],
        },
    }


def _schema(kind: ClusterKind) -> Schema:
    spec = structural(kind.spec, with_defaults=True)
    spec[RULES] = [dict(rule) for rule in kind.rules]
    rules = [dict(name_rule) for name_rule in names.name_rules(kind.kind)]
    return {
        "type": "object",
        **({RULES: rules} if rules else {}),
        "description": (kind.object_type.__doc__ or "").strip(),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(kind.status, with_defaults=False),
        },
    }
