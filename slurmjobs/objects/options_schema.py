"""The schema of `spec.options`: one field for each option of sbatch that a job can be given."""

from typing import Any

from slurmjobs.script.getopt import Takes
from slurmjobs.script.options import BY_FIELD, OPTIONS, SbatchOption, Treatment
from slurmjobs.script.values.form import LONGEST_VALUE
from slurmruntime.crd.schema import Schema


def options_schema() -> Schema:
    """Return the schema of all options, by their names in fields."""
    kept = sorted((each for each in OPTIONS if each.treatment is Treatment.KEPT), key=_field)
    return {
        "type": "object",
        "properties": {each.field: _schema(each) for each in kept},
    }


def as_stored(name: str, value: str | bool) -> str | bool:  # noqa: FBT001  # a value of an option
    """Return a value as an object has it: "" for an option that stands without its value."""
    option = BY_FIELD.get(name)
    perhaps = option is not None and option.takes is Takes.PERHAPS
    return "" if perhaps and value is True else value


def _field(option: SbatchOption[Any]) -> str:
    return option.field


def _schema(option: SbatchOption[Any]) -> Schema:
    said = f"--{option.name}"
    if option.takes is Takes.NOTHING:
        return {"type": "boolean", "description": f"{said}."}
    accepts = option.form.accepts if option.form else "any text"
    alone = ', or "" for the option without a value' if option.takes is Takes.PERHAPS else ""
    return {
        "x-kubernetes-int-or-string": True,
        "maxLength": LONGEST_VALUE,
        "description": f"{said}: {accepts}{alone}.",
    }
