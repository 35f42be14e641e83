r"""Read a file of Slurm's configuration, as `src/common/parse_config.c` does: `#` comments, `\` joins lines, `Key=Value`.

Users write these files: all that is done here takes time in proportion to a text's length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-+*/]?=\s*("[^"]*"|[^\s"]\S*|)(?=\s|$)')
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_OPENING, _CLOSING = "[(", "])"
LONGEST_LINE: Final = 8192
"""Characters; a line that is longer is a fault, and is not read further."""
_INCLUDE = re.compile(r"(?i)\s*include\s+(\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Setting:
    """One `Key=Value`."""

    key: str
    value: str
    """Without the quotation marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLine:
    """One line that says something."""

    number: int
    """Of its first line in the file, from 1."""
    text: str
    """As it was written, without comment, on one line."""
    settings: tuple[Setting, ...] = ()
    rest: str = ""
    """What could not be read; "" for a good line."""
    includes: str = ""
    """The file that it includes, or ""."""


def read(text: str) -> Iterator[ConfLine]:
    """Read a file, without its empty lines and comments."""
    joined: list[str] = []
    first = 0
    # Slurm ends a line at a line feed only: splitlines() would see more lines than it.
    for number, raw in enumerate(text.split("\n"), start=1):
        line = _COMMENT.sub(r"\1", raw, count=1).rstrip()
        first = first or number
        if is_continued(line):
            joined.append(line[:-1])
            continue
        whole, at = "".join((*joined, line)).strip(), first
        joined, first = [], 0
        if whole:
            yield _line(whole, at)
    if whole := "".join(joined).strip():
        yield _line(whole, first)


def is_continued(line: str) -> bool:
    """Check whether the next line belongs to this one: it ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def is_kept(line: str) -> bool:
    """Check whether a line that we write is read as it is: as one line, whole, and as nothing but settings."""
    found = tuple(read(line))
    if len(found) != 1 or found[0].text != line.strip() or found[0].rest:
        return False
    return bool(found[0].settings) and all(
        '"' not in setting.value for setting in found[0].settings
    )


def words(value: str) -> tuple[str, ...]:
    """Split a list such as `a,b=c`, in which a part may have brackets."""
    found: list[str] = []
    start = depth = 0
    for at, each in enumerate(value):
        if each in _OPENING:
            depth += 1
        elif each in _CLOSING:
            depth = max(depth - 1, 0)
        elif each == "," and not depth:
            found.append(value[start:at])
            start = at + 1
    found.append(value[start:])
    return tuple(filter(None, found))


def _line(text: str, number: int) -> ConfLine:
    if len(text) > LONGEST_LINE:
        return ConfLine(number=number, text=text)
    if included := _INCLUDE.match(text):
        return ConfLine(number=number, text=text, includes=included[1])
    settings: list[Setting] = []
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            return ConfLine(
                number=number, text=text, settings=tuple(settings), rest=text[at:].strip()
            )
        settings.append(Setting(found[1], found[2].strip('"')))
        at = found.end()
    return ConfLine(number=number, text=text, settings=tuple(settings))
