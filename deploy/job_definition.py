"""Generate the CustomResourceDefinition of SlurmJob from its types and from the table of sbatch's options."""

from typing import Final

from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.spec import SPEC_RULES, SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmjobs.script.getopt import Takes
from slurmjobs.script.options import OPTIONS, AnyOption, Treatment
from slurmjobs.script.values.form import LONGEST_VALUE
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
    spec = structural(SlurmJobSpec, with_defaults=True, replaced={"options": _options_schema()})
    spec[RULES] = list(SPEC_RULES)
    status = structural(SlurmJobStatus, with_defaults=False)
    return crd.object_schema(SlurmJobObject.__doc__ or "", spec=spec, status=status)


def _options_schema() -> Schema:
    """Return the schema of all options, by their field names."""
    sent = (option for option in OPTIONS if option.treatment is Treatment.SENT)
    options = sorted(sent, key=lambda option: option.field)
    return {
        "type": "object",
        "properties": {option.field: _option_schema(option) for option in options},
    }


def _option_schema(option: AnyOption) -> Schema:
    flag = f"--{option.name}"
    if option.takes is Takes.NOTHING:
        return {"type": "boolean", "description": f"{flag}."}
    accepts = option.form.accepts if option.form else "any text"
    no_value = ', or "" for the option without a value' if option.takes is Takes.PERHAPS else ""
    return {
        "x-kubernetes-int-or-string": True,
        "maxLength": LONGEST_VALUE,
        "description": f"{flag}: {accepts}{no_value}.",
    }
