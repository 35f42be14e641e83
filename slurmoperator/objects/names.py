"""Names that an object must not have, because what is made for it could not have its name."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.parts import MOST_REPLICAS
from slurmruntime.crd.fields import rule
from slurmruntime.values.faults import Fault

_DNS: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""Of a Service; names of objects may have dots and begin with a digit."""
LONGEST: Final[Mapping[str, int]] = {
    "Controller": 52 - len("-controller"),
    "Accounting": 52 - len("-accounting"),
    "RestApi": 63 - len("-restapi"),
    "LoginSet": 63,
}
"""Characters of a name, by kind. A StatefulSet puts its name and 11 characters more into a label, which has 63; a Service has 63."""
LONGEST_HOST: Final = 63
"""Characters of a worker's host name, which begins with its NodeSet's name and a hyphen, or with the prefix that its template names."""
NUMBER_DIGITS: Final = len(str(MOST_REPLICAS - 1))
"""Of the last worker that a NodeSet can be scaled to."""

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
        f"expected a shorter name, template.spec.hostname or ordinalPadding: with a number of {NUMBER_DIGITS} digits or"
        f" of ordinalPadding, a worker's host name has at most {LONGEST_HOST} characters",
    ),
)


def name_rules(kind: str) -> tuple[Mapping[str, str], ...]:
    """Return what an API server checks of an object's name; nothing for other kinds."""
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
    """Find what is wrong with a name."""
    longest = LONGEST[kind]
    if len(name) > longest or not re.fullmatch(_DNS.strip("^$"), name):
        yield Fault("metadata.name", f"{_expected(longest)}; found {name}")


def _expected(longest: int) -> str:
    return (
        f"expected a name of at most {longest} small letters, digits and hyphens, a letter first: Services and pods"
        " are named after it"
    )
