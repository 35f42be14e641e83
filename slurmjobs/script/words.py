"""Split a directive into words, with sbatch's own rules for quotes, backslashes and comments.

Source: `get_argument` of sbatch's `opt.c`. They differ from a shell's: a backslash means the same in quotes, an
unquoted `#` begins a comment even inside a word, and a word that is only `""` ends the line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BLANKS: Final = " \t\n\v\f\r"
_PLAIN: Final = re.compile(r"[^ \t\n\v\f\r\\\"'#]+")
_IN_QUOTES: Final = re.compile(r"[^\\\"']+")
_COMPONENT = re.compile(r"(?:hetjob|packjob)(?=[ \t\n\v\f\r]|$)", re.IGNORECASE)


class UnreadableLine(ValueError):
    """A directive cannot be split into words; the message says why."""


@dataclass(frozen=True, slots=True)
class HeaderWord:
    """A word of the header, and the line it is in."""

    text: str
    line: int


def split(text: str) -> Iterator[str]:
    """Split the text after `#SBATCH` into words.

    Raises:
        UnreadableLine: If a quote is not closed, or a word begins with a colon.
    """
    position = 0
    while True:
        while position < len(text) and text[position] in BLANKS:
            position += 1
        if position == len(text) or _COMPONENT.match(text, position):
            return
        if text[position] == ":":
            raise UnreadableLine(
                "a word begins with a colon, which ends the options of a component"
            )
        word, position = _word(text, position)
        if not word:
            return
        yield word


def starts_component(text: str) -> bool:
    """Check whether a directive begins the next component of a heterogeneous job."""
    return _COMPONENT.match(text.lstrip(BLANKS)) is not None


def _word(text: str, position: int) -> tuple[str, int]:  # noqa: C901  # sbatch's is one loop, too
    """Read one word; return it and the position of its end."""
    pieces: list[str] = []
    quote = ""
    escaped = False
    while position < len(text):
        run = None if escaped else (_IN_QUOTES if quote else _PLAIN).match(text, position)
        if run:
            pieces.append(run[0])
            position = run.end()
            continue
        character = text[position]
        if not quote and character in BLANKS:
            break
        position += 1
        if escaped:
            escaped = False
        elif character == "\\":
            if text[position : position + 1] == " ":
                pieces.append(" ")
                position += 1
            else:
                escaped = True
            continue
        elif quote:
            if character == quote:
                quote = ""
                continue
        elif character in "\"'":
            quote = character
            continue
        elif character == "#":
            position = len(text)
            break
        pieces.append(character)
    if quote:
        raise UnreadableLine(f"the quote {quote} is not closed")
    return "".join(pieces), position
