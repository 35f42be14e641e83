"""Splitting a long list into its objects while it arrives.

The end of an object is found by counting braces outside of strings. A list of 10 000 jobs has a
million braces, so a regular expression skips innermost objects as a whole.
"""

import re
from collections.abc import Iterator
from typing import Final

from slurmclient.errors import Malformed

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT: Final = rb'\{(?:[^"{}]++|' + _STRING + rb")*+\}"
"""An object without objects inside."""
_FLAT_HERE: Final = re.compile(_FLAT, re.DOTALL)
_STEP: Final = re.compile(rb'(?:[^"{}]++|' + _STRING + rb"|" + _FLAT + rb")*+([{}])", re.DOTALL)
"""Everything up to the next brace that is neither in a string nor part of a flat object."""
_LONGEST: Final = 64 << 20
"""The most bytes to hold: of one object, or of what surrounds the list."""


class Splitter:
    """Takes an answer in pieces and yields the objects of its list, undecoded."""

    def __init__(self, operation: str, key: str) -> None:
        """Start before the first byte.

        Args:
            operation: The operation, for the error.
            key: The list's name in the answer, such as `jobs`.
        """
        self._operation = operation
        self._start = re.compile(rb'"%s"\s*:\s*\[' % re.escape(key.encode()))
        self._buffer = b""
        self._is_in_list = False
        self.is_done = False
        """True once the list has ended."""
        self.before = b""
        """The bytes before the list's first object; empty until the list has begun."""

    @property
    def rest(self) -> bytes:
        """The bytes after the list's last object; all bytes if no list has begun."""
        return self._buffer

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the objects that this piece completes.

        Raises:
            Malformed: If an object, or what surrounds the list, exceeds 64 MiB.
        """
        self._buffer += piece
        if not self._is_in_list and not self.is_done:
            self._find_start()
        if self._is_in_list:
            yield from self._objects()
        if len(self._buffer) > _LONGEST:
            what = "an object" if self._is_in_list else "text around the list"
            raise Malformed(
                self._operation, f"expected at most {_LONGEST} bytes at once, got more of {what}"
            )

    def _find_start(self) -> None:
        if found := self._start.search(self._buffer):
            self.before = self._buffer[: found.end()]
            self._buffer = self._buffer[found.end() :]
            self._is_in_list = True

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


def _skip(data: bytes, at: int) -> int:
    """Return the position of the next byte that is neither white space nor a comma."""
    while at < len(data) and data[at] in b" \t\r\n,":
        at += 1
    return at


def _end(data: bytes, at: int) -> int:
    """Return the end of the object that begins here; 0 if it has not arrived yet."""
    if flat := _FLAT_HERE.match(data, at):
        return flat.end()
    depth, at = 1, at + 1
    while depth and (step := _STEP.match(data, at)):
        depth += 1 if step[1] == b"{" else -1
        at = step.end()
    return 0 if depth else at
