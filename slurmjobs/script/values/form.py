"""The form of an option's value, and the forms that accept any text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LONGEST_VALUE: Final = 16_384
"""Characters of one option's value; sbatch has no such bound."""
LONGEST_SHORT_VALUE: Final = 1024
"""Characters of a value that is a number, a time, or a few words."""


class UnreadableValue(ValueError):
    """A text does not have the option's form; the message says why, without repeating the text."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueForm(Generic[T]):
    """The form of an option's values."""

    accepts: str
    """What it accepts, as a noun phrase that follows "expected"."""
    read: Callable[[str], T]
    """Raises UnreadableValue."""
    longest: int = LONGEST_SHORT_VALUE


def _same(text: str) -> str:
    return text


def matching(accepts: str, pattern: str, why: str) -> ValueForm[str]:
    """Return the form of a text that matches a pattern, in any case; `why` says what is wrong with others."""
    compiled = re.compile(pattern, re.IGNORECASE)

    def read(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise UnreadableValue(why)
        return text

    return ValueForm(accepts, read)


TEXT = ValueForm("any text", _same, longest=LONGEST_VALUE)
SHORT_TEXT = ValueForm("any text", _same)

FILE = ValueForm(
    "a file name, or none for /dev/null",
    lambda text: "/dev/null" if text.lower() == "none" else text,
    longest=LONGEST_VALUE,
)
