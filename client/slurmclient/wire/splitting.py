"""Splitting a long list into its objects while it arrives.

The end of an object is found by counting braces outside of strings. A list of 10 000 jobs has a
million braces, so a regular expression skips innermost objects at once.
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
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*+")
_LONGEST: Final = 64 << 20
"""Maximum number of bytes to hold: of one object, or of the text around the list."""


class Splitter:
    """Takes an answer in pieces and yields the objects of its list, undecoded."""

    def __init__(self, operation: str, key: str, *, longest: int = _LONGEST) -> None:
        """Start before the first byte.

        Args:
            key: The list's name in the answer, such as `jobs`.
            longest: Maximum number of bytes to hold: of one object, or of the text around the list.
        """
        self._longest = longest
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

    @property
    def around(self) -> bytes:
        """The answer without the list's objects; incomplete while the list has not ended."""
        if self.before:
            return self.before + (self.rest if self.is_done else b"")
        return self.rest  # no list: an error, or a list that is null

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the objects that this piece completes.

        Raises:
            Malformed: If an object, or the text around the list, is too long.
        """
        self._buffer += piece
        if not self._is_in_list and not self.is_done:
            self._find_start()
        if self._is_in_list:
            yield from self._objects()
        if len(self._buffer) > self._longest:
            what = "an object" if self._is_in_list else "text around the list"
            raise Malformed(
                self._operation,
                f"expected at most {self._longest} bytes at once, got more of {what}",
            )

    def _find_start(self) -> None:
        if match := self._start.search(self._buffer):
            self.before = self._buffer[: match.end()]
            self._buffer = self._buffer[match.end() :]
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
    between = _BETWEEN.match(data, at)
    return between.end() if between else at


def _end(data: bytes, at: int) -> int:
    """Return the end of the object that begins here; 0 if it has not arrived yet."""
    if flat := _FLAT_HERE.match(data, at):
        return flat.end()
    depth, at = 1, at + 1
    while depth and (step := _STEP.match(data, at)):
        depth += 1 if step[1] == b"{" else -1
        at = step.end()
    return 0 if depth else at
