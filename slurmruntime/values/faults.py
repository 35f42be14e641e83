"""Faults of an object, worded so that its author can fix them, and bounded in length."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from typing_extensions import override

from slurmruntime.values.visible import visible

MOST_FAULTS = 20
LONGEST_TEXT = 4096
"""Bytes of any text we publish: one fault, all faults of one object, a condition, a log line."""

_LONGEST_FAULT = 1024
_ROOM = LONGEST_TEXT - 128
"""Bytes that faults may fill; the rest is for the note that there are more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: where it is, what was found and what would be accepted."""

    path: str
    """`spec.containers[0].resources.requests[cpu]`, `metadata.annotations[…]`."""
    message: str
    is_of_nodes: bool = field(default=False, compare=False)
    """True if other nodes would fix it: it is checked again when nodes change."""

    @property
    def text(self) -> str:
        """Path and message on one line."""
        return f"{self.path}: {self.message}"


def bounded(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the first `MOST_FAULTS` faults, each shortened; if there are more, the last one says so."""
    first: list[Fault] = []
    room = _ROOM
    for fault in islice(faults, MOST_FAULTS + 1):
        short = Fault(published(fault.path, 256), published(fault.message, _LONGEST_FAULT))
        room -= len(short.text.encode()) + 2
        if room < 0 or len(first) == MOST_FAULTS:
            first = first[: MOST_FAULTS - 1]
            return (*first, Fault("and more", "these are only the first faults: fix them first"))
        first.append(short)
    return tuple(first)


def one_line(faults: Iterable[Fault]) -> str:
    """Join faults into one line of at most `LONGEST_TEXT` bytes."""
    return "; ".join(fault.text for fault in bounded(faults))


def shortened(text: str, most_bytes: int = LONGEST_TEXT) -> str:
    """Truncate a text to at most this many bytes of UTF-8."""
    if len(text) * 4 <= most_bytes:
        return text
    encoded = text[:most_bytes].encode(errors="replace")
    if len(encoded) <= most_bytes and len(text) <= most_bytes:
        return text
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


def published(text: str, most_bytes: int = LONGEST_TEXT) -> str:
    """Return a text as conditions, Events and logs may show it: truncated, and nothing in it acts on a terminal."""
    beginning = text[: most_bytes + 1]  # one more, or `shortened` would not see that there is more
    return shortened(visible(beginning), most_bytes)


class Refusal(Exception):
    """A pure part cannot meet a request; raised once all its faults are known, caught at the part's edge."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults

    @property
    def text(self) -> str:
        """The faults on one line, short enough to be published anywhere."""
        return one_line(self.faults)

    @property
    def is_of_nodes(self) -> bool:
        """True if other nodes would fix all of it."""
        return all(fault.is_of_nodes for fault in self.faults)

    @override
    def __str__(self) -> str:
        return self.text


def require_none(faults: Iterable[Fault]) -> None:
    """Raise a Refusal with the first faults, if there are any."""
    if first := bounded(faults):
        raise Refusal(*first)
