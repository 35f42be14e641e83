"""Generates the CustomResourceDefinitions of the six kinds and of SlurmCluster from their types."""

from typing import Final

from slurmoperator.objects import names
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER, ClusterKind
from slurmruntime.crd import definition as crd
from slurmruntime.crd.fields import RULES
from slurmruntime.crd.schema import structural
from slurmruntime.model.objects import JsonDict

_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def definitions() -> tuple[JsonDict, ...]:
    """Return all definitions, in the order of the kinds."""
    return tuple(definition(kind) for kind in (*KINDS, SLURM_CLUSTER))


def definition(kind: ClusterKind) -> JsonDict:
    """Return the definition of one kind."""
    spec = structural(kind.type_of("spec"), with_defaults=True)
    spec[RULES] = [dict(rule) for rule in kind.rules]
    schema = crd.object_schema(
        (kind.object_type.__doc__ or "").strip(),
        spec=spec,
        status=structural(kind.type_of("status"), with_defaults=False),
        rules=[dict(name_rule) for name_rule in names.name_rules(kind.kind)],
    )
    return crd.definition(
        kind.group,
        kind.version,
        kind.kind,
        kind.plural,
        columns=[
            {"name": name, "type": column_type, "jsonPath": path, "priority": priority}
            for name, column_type, path, priority in kind.columns
        ],
        schema=schema,
        names={"shortNames": list(kind.short_names), "categories": ["slurm"]},
        scale=dict(_SCALE) if kind.is_scaled else None,
    )
