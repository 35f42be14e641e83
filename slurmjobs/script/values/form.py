"""What a form of values is, and the form that takes any text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LONGEST_VALUE: Final = 16_384
"""Characters of one option's value; sbatch has no such bound."""
LONGEST_SHORT_VALUE: Final = 1024
"""Of one that is a number, a time, or a few words."""


class UnreadableValue(ValueError):
    """A text is not of the form that the option demands; the message says why, without the text."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueForm(Generic[T]):
    """One form of values: `read(write(value)) == value` for each value that `read` returns."""

    accepts: str
    """What it accepts, as a noun phrase that follows "expected"."""
    read: Callable[[str], T]
    """Raises UnreadableValue."""
    write: Callable[[T], str] = str
    longest: int = LONGEST_SHORT_VALUE
    """Characters that are read at all."""


def _same(text: str) -> str:
    return text


TEXT = ValueForm("any text", _same, longest=LONGEST_VALUE)
SHORT_TEXT = ValueForm("any text", _same)


def _file(text: str) -> str:
    return "/dev/null" if text.lower() == "none" else text


FILE = ValueForm("a file name, or none for /dev/null", _file, longest=LONGEST_VALUE)
