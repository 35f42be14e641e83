"""What is wrong with an object, told so that its author can put it right, and in no more words than anybody reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MOST_FAULTS = 20
LONGEST_TEXT = 4096
"""Bytes of any text that is told: a fault's, all faults' of one object, a condition's, a log line's."""

_LONGEST_FAULT = 1024
_ROOM = LONGEST_TEXT - 128
"""What faults may fill; the rest is for the words that say how many more there are."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, and in words what was found and what would be accepted."""

    path: str
    """`spec.containers[0].resources.requests[cpu]`, `metadata.annotations[…]`."""
    message: str

    @property
    def text(self) -> str:
        """Path and message in one line."""
        return f"{self.path}: {self.message}"


def bounded(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Keep the first faults, each of them short; a last one says that there are more.

    No more than `MOST_FAULTS` are taken from the iterable, and one to see that there are more.
    """
    kept: list[Fault] = []
    room = _ROOM
    for fault in islice(faults, MOST_FAULTS + 1):
        short = Fault(shortened(fault.path, 256), shortened(fault.message, _LONGEST_FAULT))
        room -= len(short.text.encode()) + 2
        if room < 0 or len(kept) == MOST_FAULTS:
            kept = kept[: MOST_FAULTS - 1]
            return (*kept, Fault("and more", "these are only the first faults: put them right"))
        kept.append(short)
    return tuple(kept)


def told(faults: Iterable[Fault]) -> str:
    """Write faults as one line of at most `LONGEST_TEXT` bytes."""
    return "; ".join(fault.text for fault in bounded(faults))


def shortened(text: str, most_bytes: int = LONGEST_TEXT) -> str:
    """Cut a text off so that it takes at most so many bytes in UTF-8."""
    if len(text) * 4 <= most_bytes:
        return text
    encoded = text[:most_bytes].encode(errors="replace")
    if len(encoded) <= most_bytes and len(text) <= most_bytes:
        return text
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be met as it is, with everything that was found wrong with it; at least one fault."""

    faults: tuple[Fault, ...]

    @property
    def text(self) -> str:
        """The faults in one line, of a length that can be told anywhere."""
        return told(self.faults)
