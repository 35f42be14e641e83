"""Rules for names of objects: what is created for an object is named after it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.parts import MOST_REPLICAS
from slurmruntime.crd.fields import rule
from slurmruntime.values.faults import Fault

_DNS: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""Pattern for names of Services; names of other objects may have dots and begin with a digit."""
LONGEST: Final[Mapping[str, int]] = {
    "Controller": 52 - len("-controller"),
    "Accounting": 52 - len("-accounting"),
    "RestApi": 63 - len("-restapi"),
    "LoginSet": 63,
}
"""Maximum length of a name, by kind.

A StatefulSet puts its name and 11 more characters into a label, which is limited to 63; so are names of Services.
"""
LONGEST_HOST: Final = 63
"""Maximum length of a worker's host name, which begins with its NodeSet's name and a hyphen, or with its template's prefix."""
NUMBER_DIGITS: Final = len(str(MOST_REPLICAS - 1))
"""Digits in the ordinal of the last worker that a NodeSet can scale to."""

_PREFIX: Final = (
    "(has(self.spec.template) && has(self.spec.template.spec) && has(self.spec.template.spec.hostname)"
    " ? self.spec.template.spec.hostname : self.metadata.name + '-')"
)
_WORKER_RULES: Final = (
    rule(
        f"!{_PREFIX}.contains('.') && self.metadata.name.size() <= {LONGEST_HOST}",
        f"expected a name of at most {LONGEST_HOST} characters, without dots unless template.spec.hostname is set:"
        " workers are named after it",
    ),
    rule(
        f"{_PREFIX}.size() + (has(self.spec.ordinalPadding) && self.spec.ordinalPadding > {NUMBER_DIGITS}"
        f" ? self.spec.ordinalPadding : {NUMBER_DIGITS}) <= {LONGEST_HOST}",
        f"expected a shorter name, template.spec.hostname or ordinalPadding: with an ordinal of {NUMBER_DIGITS} digits or"
        f" of ordinalPadding digits, a worker's host name may have at most {LONGEST_HOST} characters",
    ),
)


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names of a list, and how many more it has."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def name_rules(kind: str) -> tuple[Mapping[str, str], ...]:
    """Return the CEL rules for an object's name; none for kinds without restrictions."""
    if kind == "NodeSet":
        return _WORKER_RULES
    if kind == slurm_cluster.KIND:
        return slurm_cluster.NAME_RULES
    longest = LONGEST.get(kind)
    if longest is None:
        return ()
    return (
        rule(
            f"self.metadata.name.size() <= {longest} && self.metadata.name.matches('{_DNS}')",
            _expected(longest),
        ),
    )


def faults(kind: str, name: str) -> Iterator[Fault]:
    """Yield what is wrong with a name."""
    longest = LONGEST[kind]
    if len(name) > longest or not re.fullmatch(_DNS.strip("^$"), name):
        yield Fault("metadata.name", f"{_expected(longest)}; found {name}")


def _expected(longest: int) -> str:
    return (
        f"expected a name of at most {longest} lowercase letters, digits and hyphens, starting with a letter: Services and pods"
        " are named after it"
    )
