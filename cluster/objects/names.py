"""Names that an object must not have, because what is made for it could not have its name."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from bridge.crd.fields import rule
from bridge.domain.faults import Fault

_DNS: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""Of a Service; names of objects may have dots and begin with a digit."""
LONGEST: Final[Mapping[str, int]] = {
    "Controller": 52 - len("-controller"),
    "Accounting": 52 - len("-accounting"),
    "RestApi": 63 - len("-restapi"),
    "LoginSet": 63,
}
"""Characters of a name, by kind. A StatefulSet puts its name and 11 characters more into a label, which has 63; a Service has 63."""


def name_rules(kind: str) -> tuple[Mapping[str, str], ...]:
    """Return what an API server checks of an object's name; nothing for other kinds."""
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
