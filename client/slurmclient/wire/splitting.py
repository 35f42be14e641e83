"""Reading the objects of a long list while the answer comes.

Where an object ends is found by counting braces outside of strings; a pattern does it in big steps, as a list of 10 000
jobs has a million braces.
"""

import re
from collections.abc import Iterator
from typing import Final

from slurmclient.errors import Malformed

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'


_FLAT: Final = rb'\{(?:[^"{}]++|' + _STRING + rb")*+\}"


_STEP: Final = re.compile(rb'(?:[^"{}]++|' + _STRING + rb"|" + _FLAT + rb")*+([{}])", re.DOTALL)
"""Up to the next brace that is neither in a string nor around an object without objects."""


_LONGEST: Final = 64 << 20
"""Bytes of one object; a longer one is no object of Slurm's."""


class Splitter:
    """Takes an answer in pieces, gives the objects of its list."""

    def __init__(self, operation: str, key: str) -> None:
        self._operation = operation
        self._start = re.compile(rb'"%s"\s*:\s*\[' % re.escape(key.encode()))
        self._buffer = b""
        self._is_in_list = False
        self.is_done = False
        """The list has ended; what follows is in `rest`."""
        self.before = b""
        """What stood before the list."""

    @property
    def rest(self) -> bytes:
        """What has come after the list, or all there is where no list has come."""
        return self._buffer

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece; give the objects that it completes.

        Raises:
            Malformed: an object has no end.
        """
        self._buffer += piece
        if not self._is_in_list and not self.is_done:
            if not (found := self._start.search(self._buffer)):
                return
            self.before = self._buffer[: found.end()]
            self._buffer = self._buffer[found.end() :]
            self._is_in_list = True
        if self._is_in_list:
            yield from self._objects()

    def _objects(self) -> Iterator[bytes]:
        at = 0
        while True:
            at = _skip(self._buffer, at)
            if at == len(self._buffer):
                break
            if self._buffer[at : at + 1] == b"]":
                self._is_in_list, self.is_done = False, True
                break
            end = _end(self._buffer, at)
            if not end:
                break
            yield self._buffer[at:end]
            at = end
        self._buffer = self._buffer[at:]
        if self._is_in_list and len(self._buffer) > _LONGEST:
            raise Malformed(self._operation, f"an object of more than {_LONGEST} bytes")


def _skip(data: bytes, at: int) -> int:
    """Return where something other than spaces and commas is."""
    while at < len(data) and data[at] in b" \t\r\n,":
        at += 1
    return at


def _end(data: bytes, at: int) -> int:
    """Return the end of the object that begins here; 0 if it has not come yet."""
    if flat := _FLAT_HERE.match(data, at):
        return flat.end()
    depth, at = 1, at + 1
    while depth and (step := _STEP.match(data, at)):
        depth += 1 if step[1] == b"{" else -1
        at = step.end()
    return 0 if depth else at


_FLAT_HERE: Final = re.compile(_FLAT, re.DOTALL)
