"""Convert between Slurm's hostlist notation (`gpu[01-03,7],login`) and node names.

Source: `man slurm.conf`, "NodeName", and `man scontrol`, "show hostnames". Both directions keep the
order of names, so `expand(compress(names))` gives back exactly `names`.

A short text may stand for gigabytes of names. So `measure` checks and counts without building names, and `expand`
starts only once the length of the result is known.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_MOST_BRACKETS = 16
"""Brackets in one name; Slurm's own topologies have at most five."""

_MOST_DIGITS = 18
_PIECE = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\])?")
_NOT_PLAIN = re.compile(r"[\[\]\s]|,,|^,|,$")
_PLAIN = re.compile(r"[^\[\],\s]+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_MARKS = re.compile(r"[\[\],]")
_DIGITS = "0123456789"
_MOST_COUNTED = 9
"""Digits at the end of a name that may be part of a range."""
_NOT_IN_NAMES = re.compile(r"[\[\],\s]")


class HostlistSize(NamedTuple):
    """The size of an expanded hostlist."""

    names: int
    characters: int
    """Characters of all names together."""


MOST = HostlistSize(names=100_000, characters=4 * 2**20)
"""More than any cluster has, which is at most 65 533 nodes with 64 characters each: a longer list is a mistake, and
expanding it would exhaust our memory."""


class _Numbers(NamedTuple):
    """The contents of a bracket."""

    parts: Sequence[str]
    many: int
    characters: int


class _Piece(NamedTuple):
    """Text, and the bracket behind it."""

    literal: str
    numbers: _Numbers | None


def measure(text: str, *, most: HostlistSize = MOST) -> HostlistSize:
    """Count the names of a hostlist without building them, in linear time; raise ValueError like `expand`."""
    size = HostlistSize(0, 0)
    if text and not _NOT_PLAIN.search(text):  # most are a few names and commas
        commas = text.count(",")
        return _within(HostlistSize(commas + 1, len(text) - commas), most, text)
    for pieces in _parsed(text, most):
        names = _count(pieces)
        characters = size.characters + sum(
            names * len(literal) + (names // numbers.many * numbers.characters if numbers else 0)
            for literal, numbers in pieces
        )
        size = _within(HostlistSize(size.names + names, characters), most, text)
    return size


def expand(text: str, *, most: HostlistSize = MOST) -> tuple[str, ...]:
    """Return the node names of a hostlist, in order; "" is no node.

    `a[1-2]b[08-09],c` is a1b08, a1b09, a2b08, a2b09, c.

    Raises:
        ValueError: It is not a hostlist, or it stands for more than `most`.
    """
    measure(text, most=most)
    if text and not _NOT_PLAIN.search(text):
        return tuple(text.split(","))
    return tuple(name for pieces in _parsed(text, most) for name in _names(pieces))


def compress(names: Iterable[str]) -> str:
    """Write names as a hostlist, in order, with ranges; raise ValueError for a name that cannot be in one."""
    return ",".join(
        _bracket(prefix, list(run)) for prefix, run in itertools.groupby(names, key=_prefix)
    )


def _within(size: HostlistSize, most: HostlistSize, text: str) -> HostlistSize:
    if size.names > most.names:
        raise ValueError(f"hostlist {_shown(text)}: more than {most.names} names")
    if size.characters > most.characters:
        raise ValueError(
            f"hostlist {_shown(text)}: more than {most.characters} characters in all names together"
        )
    return size


def _parsed(text: str, most: HostlistSize) -> Iterator[Sequence[_Piece]]:
    for entry in _entries(text):
        if _PLAIN.fullmatch(entry):
            yield (_Piece(entry, None),)
        else:
            yield _pieces(entry, text, most)


def _entries(text: str) -> Iterator[str]:
    if not text:
        return
    depth = start = 0
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "[":
                depth += 1
            case "]":
                depth -= 1
            case _ if depth == 0:
                yield text[start : mark.start()]
                start = mark.end()
            case _:
                pass
    yield text[start:]


def _pieces(entry: str, text: str, most: HostlistSize) -> Sequence[_Piece]:
    """Split `prefix[ranges]prefix[ranges]suffix`."""
    pieces: list[_Piece] = []
    position = 0
    while position < len(entry) or position == 0:
        piece = _PIECE.match(entry, position)
        if piece is None or piece.end() == position:
            raise ValueError(f"hostlist {_shown(text)}: expected a name at {_shown(entry)}")
        if len(pieces) > _MOST_BRACKETS:
            raise ValueError(
                f"hostlist {_shown(text)}: more than {_MOST_BRACKETS} brackets in one name"
            )
        literal, ranges = piece.groups()
        pieces.append(_Piece(literal, None if ranges is None else _numbers(ranges, text, most)))
        position = piece.end()
    return pieces


def _numbers(ranges: str, text: str, most: HostlistSize) -> _Numbers:
    """Read `08-10,3`, which is 08, 09, 10, 3: a range is as wide as its first number. Stop as soon as these are too many."""
    parts = ranges.split(",")
    count = characters = 0
    for part in parts:
        if len(part) <= _MOST_DIGITS and part.isascii() and part.isdigit():
            count += 1
            characters += len(part)
            continue
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(
                f"hostlist {_shown(text)}: expected a number or a range like 1-3, found {_shown(part)}"
            )
        first, last = int(match[1]), int(match[2])
        if last < first:
            raise ValueError(f"hostlist {_shown(text)}: the range {part} counts downwards")
        count += last - first + 1
        characters += _written_length(first, last, width=len(match[1]))
        _within(HostlistSize(count, characters), most, text)
    return _Numbers(parts, count, characters)


def _written_length(first: int, last: int, *, width: int) -> int:
    length = 0
    for digits in range(1, _MOST_DIGITS + 1):
        least = max(first, 10 ** (digits - 1) if digits > 1 else 0)
        most = min(last, 10**digits - 1)
        length += max(most - least + 1, 0) * max(digits, width)
    return length


def _count(pieces: Sequence[_Piece]) -> int:
    names = 1
    for piece in pieces:
        names *= piece.numbers.many if piece.numbers else 1
    return names


def _names(pieces: Sequence[_Piece]) -> list[str]:
    """Combine the pieces; the leftmost varies slowest."""
    names = [""]
    for literal, numbers in pieces:
        written = [""] if numbers is None else list(_written(numbers.parts))
        names = [name + literal + number for name in names for number in written]
    return names


def _written(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        first, dash, last = part.partition("-")
        if not dash:
            yield first
            continue
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


def _prefix(name: str) -> str | None:
    """Return the part before the last digits, common to the names of a bracket; None if there can be none."""
    if not name or _NOT_IN_NAMES.search(name):
        raise ValueError(
            f"node name {_shown(name)}: expected one or more characters, without brackets, commas and spaces"
        )
    digits = min(len(name) - len(name.rstrip(_DIGITS)), _MOST_COUNTED)
    return name[: len(name) - digits] if digits else None


def _bracket(prefix: str | None, names: list[str]) -> str:
    if prefix is None or len(names) == 1:
        return ",".join(names)
    ranges: list[tuple[str, str]] = []
    for number in (name[len(prefix) :] for name in names):
        first, last = ranges[-1] if ranges else ("", "")
        if last and str(int(last) + 1).zfill(len(first)) == number:
            ranges[-1] = (first, number)
        else:
            ranges.append((number, number))
    return f"{prefix}[{','.join(a if a == b else f'{a}-{b}' for a, b in ranges)}]"


def _shown(text: str) -> str:
    limit = 60
    return repr(text if len(text) <= limit else text[:limit] + "…")
