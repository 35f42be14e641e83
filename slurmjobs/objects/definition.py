"""Generate the CustomResourceDefinition of SlurmJob from its types."""

from typing import Final

from slurmjobs.objects import slurmjob
from slurmjobs.objects.options_schema import options_schema
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import SPEC_RULES, SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd.fields import RULES
from slurmruntime.crd.schema import Schema, structural
from slurmruntime.model.objects import JsonDict

NAME: Final = f"{slurmjob.PLURAL}.{slurmjob.GROUP}"

_COLUMNS: Final = (
    ("State", "string", ".status.state", "The job's state in Slurm.", 0),
    ("JobID", "integer", ".status.jobId", "Id of the Slurm job.", 0),
    ("Nodes", "string", ".status.nodes", "The job's nodes.", 0),
    ("Reason", "string", ".status.reason", "Why it waits or how it ended.", 0),
    ("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.", 0),
    ("Phase", "string", ".status.phase", "Pending, Running, Succeeded or Failed.", 1),
    ("User", "string", ".status.user", "The job's Slurm user.", 1),
    ("Exit", "integer", ".status.exitCode", "The script's exit code.", 1),
    ("Message", "string", ".status.message", "What is happening, and what to do.", 1),
)
"""Name, type, path, description, and priority: `-o wide` shows those with 1, too."""


def definition() -> JsonDict:
    """Return the CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": slurmjob.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": slurmjob.KIND,
                "listKind": f"{slurmjob.KIND}List",
                "plural": slurmjob.PLURAL,
                "singular": slurmjob.KIND.lower(),
                "shortNames": ["sj"],
                "categories": ["slurm"],
            },
            "versions": [
                {
                    "name": slurmjob.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, description: str, priority: int) -> JsonDict:
    return {
        "name": name,
        "type": kind,
        "jsonPath": path,
        "description": description,
        "priority": priority,
    }


def _schema() -> Schema:
    spec = structural(SlurmJobSpec, with_defaults=True, replaced={"options": options_schema()})
    spec[RULES] = list(SPEC_RULES)
    return {
        "type": "object",
        "description": SlurmJobObject.__doc__,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(SlurmJobStatus, with_defaults=False),
        },
    }
