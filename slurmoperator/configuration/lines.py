r"""Read a file of Slurm's configuration, as `src/common/parse_config.c` does: `#` comments, `\` joins lines, `Key=Value`.

Users write these files, so everything here takes time in proportion to the length of the text.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from slurmruntime.values.faults import Fault

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-+*/]?=\s*("[^"]*"|[^\s"]\S*|)(?=\s|$)')
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_EMPTY = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?\n)++")
"""Any number of lines that are blank or only comments."""
_WRITTEN = re.compile(r"^[^\S\n]*+[^\s#]", re.MULTILINE)
"""The beginning of any other line."""
_OPENING, _CLOSING = "[(", "])"
LONGEST_LINE: Final = 8192
"""In characters. A longer line is a fault, and its settings are not read."""
MOST_LINES: Final = 2000
"""Blank lines and comments not counted. A line for each of a thousand nodes has some 60 characters, so that there is room for no more in an `extraConf`."""
_FILES_OF_ONE_LOOK: Final = 8
"""What one look at a Controller reads again and again: `extraConf`, and the files that are desired and in force."""
_INCLUDE = re.compile(r"(?i)\s*include\s+(\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Setting:
    """One `Key=Value`."""

    key: str
    value: str
    """Without the quotation marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLine:
    """One line with settings, comments removed and continued lines joined."""

    number: int
    """Of its first physical line in the file, from 1."""
    text: str
    """As written, without comments, on one line."""
    settings: tuple[Setting, ...] = ()
    rest: str = ""
    """The part that is not `Key=Value`; "" for a good line."""
    includes: str = ""
    """The file that it includes; "" for none."""


@functools.lru_cache(maxsize=_FILES_OF_ONE_LOOK)
def read(text: str) -> tuple[ConfLine, ...]:
    """Return the lines of a file, without empty lines and comments."""
    return tuple(parse(text))


def parse(text: str) -> Iterator[ConfLine]:
    """Yield the lines of a file, as `read` returns them."""
    joined: list[str] = []
    at, number = 0, 1
    first = 0
    while at < len(text):
        if not joined and (empty := _EMPTY.match(text, at)):
            number += text.count("\n", at, empty.end())
            at = empty.end()
            continue
        # Only a line feed ends a line for Slurm; splitlines() would find more lines.
        end = text.find("\n", at) % (len(text) + 1)
        line = text[at:end]
        if "#" in line:
            line = _COMMENT.sub(r"\1", line, count=1)
        line = line.rstrip()
        at, first = end + 1, first or number
        number += 1
        if is_continued(line):
            joined.append(line[:-1])
            continue
        logical, begun = "".join((*joined, line)).strip(), first
        joined, first = [], 0
        if logical:
            yield _line(logical, begun)
    if logical := "".join(joined).strip():
        yield _line(logical, first)


def excess(text: str) -> Iterator[Fault]:
    """Find an `extraConf` with more lines than are read, blank ones and comments not counted; before any are joined."""
    if (count := len(_WRITTEN.findall(text))) > MOST_LINES:
        message = f"expected at most {MOST_LINES} lines besides comments, found {count}"
        yield Fault("spec.extraConf", message)


def settings(text: str) -> Iterator[Setting]:
    """Yield all settings of a file, whatever their lines."""
    for line in read(text):
        yield from line.settings


def quoted(value: str) -> str:
    """Return a value with quotation marks if it has blanks."""
    return f'"{value}"' if any(map(str.isspace, value)) else value


def is_continued(line: str) -> bool:
    """Check whether the next line continues this one: it ends in an odd number of backslashes."""
    return line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2 == 1


def is_read_as_written(line: str) -> bool:
    """Check whether Slurm reads a line that we write unchanged: as one line with nothing but settings."""
    parsed = tuple(parse(line))
    if len(parsed) != 1 or parsed[0].text != line.strip() or parsed[0].rest:
        return False
    return bool(parsed[0].settings) and all(
        '"' not in setting.value for setting in parsed[0].settings
    )


def words(value: str) -> tuple[str, ...]:
    """Split a list such as `a,b=c`, whose items may contain brackets."""
    items: list[str] = []
    start = depth = 0
    for at, character in enumerate(value):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(depth - 1, 0)
        elif character == "," and not depth:
            items.append(value[start:at])
            start = at + 1
    items.append(value[start:])
    return tuple(filter(None, items))


def _line(text: str, number: int) -> ConfLine:
    if len(text) > LONGEST_LINE:
        return ConfLine(number=number, text=text)
    if include := _INCLUDE.match(text):
        return ConfLine(number=number, text=text, includes=include[1])
    settings: list[Setting] = []
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            return ConfLine(
                number=number, text=text, settings=tuple(settings), rest=text[at:].strip()
            )
        settings.append(Setting(pair[1], pair[2].strip('"')))
        at = pair.end()
    return ConfLine(number=number, text=text, settings=tuple(settings))
