"""How a command declares its options and arguments, without Typer: importing that takes a while.

Two read the declarations: `slurmcli.line.plain_words`, quickly, and Typer, for everything else.
"""

from dataclasses import dataclass
from typing import Any, get_args


@dataclass(frozen=True, slots=True)
class Option:
    """An option; a parameter's annotation carries it, as `Annotated[str, Option(…)]`."""

    names: tuple[str, ...] = ()
    """`("--output", "-o")`; () for the parameter's own name."""
    help: str | None = None
    metavar: str | None = None
    envvar: str | None = None
    """The variable that is used where the option is not given."""
    show_default: str | bool = True
    """What help shows as default, if not the value itself."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument by position."""

    help: str
    metavar: str


class BadOperand(Exception):
    """An argument that a command cannot work with; the message says why, for the person."""


def declared(annotation: Any) -> tuple[Any, Option | Operand | None]:
    """Return a parameter's type and its declaration; None if it is declared for Typer alone."""
    plain, *more = get_args(annotation) or (annotation,)
    return plain, next((one for one in more if isinstance(one, Option | Operand)), None)


def names_of(parameter: str, option: Option) -> tuple[str, ...]:
    """Return an option's names on the command line."""
    return option.names or (f"--{parameter.replace('_', '-')}",)
