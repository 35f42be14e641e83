r"""Read a file of Slurm's configuration, as `src/common/parse_config.c` does: `#` comments, `\` joins lines, `Key=Value`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-+*/]?=\s*("[^"]*"|[^\s"]\S*|)(?=\s|$)')
_COMMENT = re.compile(r"(?<!\\)#.*$")
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
    joined, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        whole, at = (joined + line).strip(), first
        joined, first = "", 0
        if whole:
            yield _line(whole, at)
    if joined.strip():
        yield _line(joined.strip(), first)


def words(value: str) -> tuple[str, ...]:
    """Split a list such as `a,b=c`, in which a part may have brackets."""
    return tuple(part for part in re.split(r",(?![^\[(]*[\])])", value) if part)


def _line(text: str, number: int) -> ConfLine:
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
