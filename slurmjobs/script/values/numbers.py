"""Values that are numbers: whole numbers, amounts of memory, counts of nodes.

Sources: `parse_int`, `str_to_mbytes`, `verify_node_count`, `verify_socket_core_thread_count` of Slurm's
`proc_args.c`, and sbatch(1).
"""

import re
from dataclasses import dataclass
from typing import Final

from slurmjobs.script.values.form import UnreadableValue, ValueForm, matching

INT_MAX: Final = 2**31 - 1
MOST_NODES: Final = 16384
"""The largest count in a list of sizes (MAX_JOB_SIZE_BITMAP of slurm.h)."""

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,30})")
_MEMORY = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,18})(?:([kmgt])b?)?", re.IGNORECASE)
_NODES = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,18})(k?)(m?)[ \t\n\v\f\r]*", re.IGNORECASE)
_SIZES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_RANGE = re.compile(r"([0-9]{1,12})([km]?)(?:-([0-9]{1,12})([km]?))?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2}


def _integer(text: str) -> int:
    if not text:
        return 0  # like strtol
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise UnreadableValue("it is not a whole number")
    return int(match[1])


def _at_least(least: int, text: str, *, below: int = INT_MAX) -> int:
    number = _integer(text)
    if number < least:
        raise UnreadableValue(f"it is less than {least}")
    if number >= below:
        raise UnreadableValue("it is too large")
    return number


POSITIVE = ValueForm("a whole number of at least 1", lambda text: _at_least(1, text))
NATURAL = ValueForm("a whole number of at least 0", lambda text: _at_least(0, text))


def _bit(text: str) -> bool:
    number = _at_least(0, text)
    if number > 1:
        raise UnreadableValue("it is neither 0 nor 1")
    return bool(number)


BIT = ValueForm("0 or 1", _bit)

SHORT = ValueForm(
    "a whole number of at most 65533", lambda text: _at_least(0, text, below=2**16 - 2)
)
UMASK = matching(
    "an octal number: 022", "[0-7]{1,4}", "it is not an octal number of at most four digits"
)


def _leading_number(text: str) -> int:
    match = re.match(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,18})", text)
    return int(match[1]) if match else 0  # sbatch reads only the leading number


_NICEST: Final = 2**31 - 3


def _nice(text: str) -> int:
    number = _leading_number(text)
    if abs(number) > _NICEST:
        raise UnreadableValue(f"it is not within ±{_NICEST}")
    return number


NICE = ValueForm(f"a whole number within ±{_NICEST}", _nice)

TOP_PRIORITY: Final = 2**32 - 3


def _priority(text: str) -> int:
    if text.lower() == "top":
        return TOP_PRIORITY
    number = _leading_number(text)
    if not 0 <= number < 2**32 - 2:
        raise UnreadableValue("it is not between 0 and 4294967293")
    return number


PRIORITY = ValueForm("a whole number between 0 and 4294967293, or TOP", _priority)


def _mebibytes(text: str) -> int:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise UnreadableValue("it is not an amount of memory")
    number = int(match[1])
    if number < 0:
        raise UnreadableValue("it is negative")
    match (match[2] or "m").lower():
        case "k":
            return -(-number // 1024)
        case "g":
            return number * 1024
        case "t":
            return number * 1024**2
        case _:
            return number


MEMORY_MIB = ValueForm("a number of MiB, or one with a unit: 500, 500M, 4G, 1T, 2048K", _mebibytes)


@dataclass(frozen=True, slots=True)
class NodeRange:
    """A count of nodes: from `least` to `most`, or one of the sizes."""

    least: int
    most: int
    sizes: str = ""
    """`1-15:4` or `2,4,8`, if not every number in between is allowed."""


def _count(text: str) -> int:
    """Return a count of nodes; -1 if there is none."""
    match = _NODES.fullmatch(text)
    if match is None:
        if not text.strip(" \t\n\v\f\r"):
            return -1
        raise UnreadableValue("it is not a count of nodes")
    number = int(match[1]) * _FACTORS[match[2].lower()] * _FACTORS[match[3].lower()]
    return number if 0 <= number <= INT_MAX else -1


def _node_sizes(text: str) -> NodeRange:
    least, most = INT_MAX, -1
    for part in text.split(","):
        match = _SIZES.fullmatch(part)
        if match is None:
            raise UnreadableValue("it is not a list of counts and ranges")
        first = int(match[1])
        last = int(match[2] or first)
        step = int(match[3] or 1)
        if last < first or step < 1 or last >= MOST_NODES:
            raise UnreadableValue(
                f"a range goes up, in steps of at least 1, to at most {MOST_NODES - 1}"
            )
        least = min(least, first)
        most = max(most, last - (last - first) % step)
    return NodeRange(least, most, text)


def _nodes(text: str) -> NodeRange:
    if "," in text or ":" in text:
        node_range = _node_sizes(text)
    elif "-" in text:
        first, _, last = text.partition("-")
        least, most = _count(first), _count(last)
        node_range = NodeRange(1 if least < 0 else least, most)
        if most < 0:
            raise UnreadableValue("the range has no upper end")
    else:
        count = _count(text)
        if count < 0:
            raise UnreadableValue("it is not a count of nodes")
        node_range = NodeRange(count, count)
    if node_range.most != 0 and node_range.most < node_range.least:
        raise UnreadableValue("the range ends before it begins")
    return node_range


NODES = ValueForm("a count of nodes or a range: 4, 2-4, 1-15:4, 2,4,8", _nodes)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Sockets per node, cores per socket, threads per core; None where any number is allowed."""

    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None


def _shape_part(text: str) -> int | None:
    if not text or text.startswith("*"):
        return None
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UnreadableValue("a part is neither a count nor *")
    number = int(match[1]) * _FACTORS[match[2].lower()]
    if number > INT_MAX:
        raise UnreadableValue("a count is too large")
    return number


def _shape(text: str) -> NodeShape:
    parts = [*text.split(":", 3)[:3], "", ""]
    return NodeShape(*(_shape_part(part) for part in parts[:3]))


NODE_SHAPE = ValueForm("sockets[:cores[:threads]], each a count or *", _shape)
