"""Convert between Slurm's hostlist notation (`gpu[01-03,7],login`) and node names.

Source: `man slurm.conf`, "NodeName", and `man scontrol`, "show hostnames". Both directions keep the
order of names, so `expand(compress(names))` gives back exactly `names`.
"""

import itertools
import re
from collections.abc import Iterable, Iterator

MAX_NAMES = 100_000
"""More names than any cluster has: anything longer is a mistake, and expanding it would exhaust our
memory."""

_PIECE = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\])?")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[\[\],\s]")


def expand(text: str) -> tuple[str, ...]:
    """Return the node names of a hostlist, in order; "" is no node.

    `a[1-2]b[08-09],c` is a1b08, a1b09, a2b08, a2b09, c.

    Raises:
        ValueError: it is not a hostlist, or it has more than `MAX_NAMES` names.
    """
    names: list[str] = []
    for entry in _entries(text):
        names.extend(_expand_entry(entry, text, room=MAX_NAMES - len(names)))
    return tuple(names)


def compress(names: Iterable[str]) -> str:
    """Write names as a hostlist, in order; consecutive names that count upwards become ranges.

    Raises:
        ValueError: a name contains a character that has a meaning in hostlists.
    """
    return ",".join(
        _bracket(prefix, list(run)) for prefix, run in itertools.groupby(names, key=_prefix)
    )


def _entries(text: str) -> Iterator[str]:
    """Split at the commas outside brackets."""
    if not text:
        return
    depth = start = 0
    for position, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _expand_entry(entry: str, text: str, *, room: int) -> list[str]:
    """Combine the pieces of `prefix[ranges]prefix[ranges]suffix`; the leftmost varies slowest."""
    names = [""]
    position = 0
    while position < len(entry) or position == 0:
        piece = _PIECE.match(entry, position)
        if piece is None or piece.end() == position:
            raise ValueError(f"hostlist {_shown(text)}: expected a name at {_shown(entry)}")
        literal, ranges = piece.groups()
        numbers = [""] if ranges is None else _numbers(ranges, text, room=room)
        if len(names) * len(numbers) > room:
            raise _too_many(text)
        names = [name + literal + number for name in names for number in numbers]
        position = piece.end()
    return names


def _numbers(ranges: str, text: str, *, room: int) -> list[str]:
    """Expand `08-10,3` to 08, 09, 10, 3: a range is as wide as its first number."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(
                f"hostlist {_shown(text)}: expected a number or a range like 1-3, found {_shown(part)}"
            )
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f"hostlist {_shown(text)}: the range {part} counts downwards")
        if len(numbers) + int(last) - int(first) >= room:
            raise _too_many(text)
        width = len(first)
        numbers.extend(str(number).zfill(width) for number in range(int(first), int(last) + 1))
    return numbers


def _prefix(name: str) -> str | None:
    """Return the part before the name's last digits; None for a name that stands alone.

    Consecutive names with the same prefix share a bracket.
    """
    if not name or _NOT_IN_NAMES.search(name):
        raise ValueError(
            f"node name {_shown(name)}: expected one or more characters, without brackets, commas and spaces"
        )
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else None


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


def _too_many(text: str) -> ValueError:
    return ValueError(f"hostlist {_shown(text)}: more than {MAX_NAMES} names")


def _shown(text: str) -> str:
    limit = 60
    return repr(text if len(text) <= limit else text[:limit] + "…")
