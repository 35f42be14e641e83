"""Declarations of a command's options and arguments, without Typer, whose import is slow.

`slurmcli.line.plain_words` reads them quickly for plain command lines, and Typer for all others.
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
    show_default: str | bool = True
    """What the help shows as default, if not the value itself."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument by position."""

    help: str
    metavar: str


class BadOperand(Exception):
    """An unusable argument; the message tells the user why."""


def declaration_of(annotation: Any) -> tuple[Any, Option | Operand | None]:
    """Return a parameter's type and its declaration; None if it is declared for Typer alone."""
    plain, *more = get_args(annotation) or (annotation,)
    return plain, next(
        (metadata for metadata in more if isinstance(metadata, Option | Operand)), None
    )


def names_of(parameter: str, option: Option) -> tuple[str, ...]:
    """Return an option's names on the command line."""
    return option.names or (f"--{parameter.replace('_', '-')}",)
