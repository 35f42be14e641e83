"""Generate the CustomResourceDefinitions of Sylabs' kinds from their types; without short names, which are ours."""

from typing import Final

from slurmjobs.objects.spec import SCRIPT_RULES
from slurmjobs.sylabs.job import KINDS, VERSION, SylabsKind
from slurmjobs.sylabs.spec import MOST_LABELS, SylabsStatus
from slurmruntime.crd import definition as crd
from slurmruntime.crd.fields import RULES, rule
from slurmruntime.crd.schema import Schema, structural
from slurmruntime.model.objects import JsonDict

_ANY: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""A value that the API server stores and nothing reads."""

_SECRET: Final = {"description": "Accepted, but never read."} | _ANY

_COLUMNS: Final = (
    ("Age", "date", ".metadata.creationTimestamp"),
    ("Status", "string", ".status.status"),
    ("JobID", "integer", ".status.jobId"),
    ("Reason", "string", ".status.reason"),
)
"""Sylabs' own columns, then two of ours."""


def definitions() -> tuple[JsonDict, ...]:
    """Return the definitions of all three kinds."""
    return tuple(_definition(kind) for kind in KINDS)


def _definition(kind: SylabsKind) -> JsonDict:
    columns = [{"name": name, "type": of, "jsonPath": path} for name, of, path in _COLUMNS]
    return crd.definition(
        kind.group, VERSION, kind.kind, kind.plural, columns=columns, schema=_schema(kind)
    )


def _schema(kind: SylabsKind) -> Schema:
    labels = {"maxProperties": MOST_LABELS, "additionalProperties": _VALUE, "type": "object"}
    spec = structural(kind.spec, with_defaults=False, replaced={"nodeSelector": labels})
    properties = spec["properties"]
    if "batch" in properties:
        properties["batch"][RULES] = list(SCRIPT_RULES)
    if "ssh" in properties:
        properties["ssh"]["properties"] |= {"key": _SECRET, "password": _SECRET}
    if "podSecurityContext" in properties:
        properties["podSecurityContext"] = {**_ANY, "description": "It has no effect."}
    spec[RULES] = [
        rule("self == oldSelf", f"cannot be changed after creation: create another {kind.kind}")
    ]
    return crd.object_schema(
        f"{kind.spec.__doc__} slurm-bridge treats it like its own SlurmJobs.",
        spec=spec,
        status=structural(SylabsStatus, with_defaults=False),
    )


_VALUE: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
"""Text or a number: no structural schema can express that, so the webhook checks it."""
