"""Generate the schema of `spec.options`: one field for each supported option of sbatch."""

from slurmjobs.script.getopt import Takes
from slurmjobs.script.options import BY_FIELD, OPTIONS, AnyOption, Treatment
from slurmjobs.script.values.form import LONGEST_VALUE
from slurmruntime.crd.schema import Schema


def options_schema() -> Schema:
    """Return the schema of all options, by their field names."""
    sent = (option for option in OPTIONS if option.treatment is Treatment.SENT)
    options = sorted(sent, key=lambda option: option.field)
    return {"type": "object", "properties": {option.field: _schema(option) for option in options}}


def as_stored(name: str, value: str | bool) -> str | bool:  # noqa: FBT001  # a value of an option
    """Return a value as objects store it: "" for an option without its optional value."""
    option = BY_FIELD.get(name)
    is_optional = option is not None and option.takes is Takes.PERHAPS
    return "" if is_optional and value is True else value


def _schema(option: AnyOption) -> Schema:
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
