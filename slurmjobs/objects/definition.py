"""Generate the CustomResourceDefinition of SlurmJob from its types."""

from typing import Final

from slurmjobs.objects import slurmjob
from slurmjobs.objects.options_schema import options_schema
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import SPEC_RULES, SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd import definition as crd
from slurmruntime.crd.fields import RULES
from slurmruntime.crd.schema import Schema, structural
from slurmruntime.model.objects import JsonDict

NAME: Final = f"{slurmjob.PLURAL}.{slurmjob.GROUP}"

_COLUMN: Final = ("name", "type", "jsonPath", "description", "priority")
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
"""`-o wide` shows those with priority 1, too."""


def definition() -> JsonDict:
    """Return the CustomResourceDefinition."""
    return crd.definition(
        slurmjob.GROUP,
        slurmjob.VERSION,
        slurmjob.KIND,
        slurmjob.PLURAL,
        columns=[dict(zip(_COLUMN, column, strict=True)) for column in _COLUMNS],
        schema=_schema(),
        names={"shortNames": ["sj"], "categories": ["slurm"]},
    )


def _schema() -> Schema:
    spec = structural(SlurmJobSpec, with_defaults=True, replaced={"options": options_schema()})
    spec[RULES] = list(SPEC_RULES)
    status = structural(SlurmJobStatus, with_defaults=False)
    return crd.object_schema(SlurmJobObject.__doc__ or "", spec=spec, status=status)
