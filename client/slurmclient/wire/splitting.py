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
_NO_MARK: Final = re.compile(rb'[^"{}]*+')
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BEFORE_LIST: Final = re.compile(rb"[\s:]*+")
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*+")
_QUOTE, _BACKSLASH, _OPENING, _LIST_END = b'"\\{]'
_LONGEST: Final = 64 << 20
"""Maximum number of bytes to hold: of one object, or of the text around the list."""


class Splitter:
    """Takes an answer in pieces and yields the objects of its list, undecoded."""

    def __init__(self, operation: str, key: str, *, longest: int = _LONGEST) -> None:
        """Start before the first byte of an answer with a list named `key`; hold at most `longest` bytes."""
        self._longest = longest
        self._operation = operation
        self._longest_key = len(key.encode())
        self._start = re.compile(rb'"%s"\s*:\s*\[' % re.escape(key.encode()))
        self._buffer = bytearray()
        self._begun: _BegunObject | None = None
        self._searched = 0
        """How far no list begins."""
        self._is_in_list = False
        self.is_done = False
        """True once the list has ended."""
        self.before = b""
        """The bytes before the list's first object; empty until the list has begun."""

    @property
    def rest(self) -> bytes:
        """The bytes after the list's last object; all bytes if no list has begun."""
        return bytes(self._buffer)

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
        if not self._is_in_list and not self.is_done and b"[" in piece:
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
        if match := self._start.search(self._buffer, self._searched):
            self.before = bytes(self._buffer[: match.end()])
            del self._buffer[: match.end()]
            self._is_in_list = True
            return
        last = self._buffer.rfind(b'"', self._searched)
        tail = len(self._buffer) - last - 1
        if tail > self._longest_key and not _BEFORE_LIST.fullmatch(self._buffer, last + 1):
            self._searched = len(self._buffer)
        else:  # the key may have arrived, or a part of it
            self._searched = max(self._searched, self._buffer.rfind(b'"', self._searched, last))

    def _objects(self) -> Iterator[bytes]:
        at = 0
        while True:
            at = at if self._begun else _skip(self._buffer, at)
            if at == len(self._buffer):
                break
            if not self._begun and self._buffer[at] == _LIST_END:
                self._is_in_list, self.is_done = False, True
                break
            end = self._begun.end(self._buffer) if self._begun else _end(self._buffer, at)
            if not end:
                # It is read on from where it was left, however small the pieces are.
                self._begun = self._begun or _BegunObject()
                self._begun.end(self._buffer[at:])
                break
            self._begun = None
            yield bytes(self._buffer[at:end])
            at = end
        del self._buffer[:at]


class _BegunObject:
    """An object at the start of the buffer that has not arrived as a whole, and how far it was read."""

    def __init__(self) -> None:
        self._at = 1
        self._depth = 1
        self._is_in_string = False

    def end(self, data: bytearray) -> int:
        """Read on; return the end of the object, 0 if it has not arrived yet."""
        while match := (_IN_STRING if self._is_in_string else _NO_MARK).match(data, self._at):
            self._at = match.end()
            if (
                self._at == len(data) or data[self._at] == _BACKSLASH
            ):  # the rest of an escape follows
                break
            mark = data[self._at]
            self._at += 1
            if mark == _QUOTE:
                self._is_in_string = not self._is_in_string
                continue
            self._depth += 1 if mark == _OPENING else -1
            if not self._depth:
                return self._at
        return 0


def _skip(data: bytearray, at: int) -> int:
    between = _BETWEEN.match(data, at)
    return between.end() if between else at


def _end(data: bytearray, at: int) -> int:
    """Return the end of the object that begins here; 0 if it has not arrived yet."""
    if flat := _FLAT_HERE.match(data, at):
        return flat.end()
    depth, at = 1, at + 1
    while depth and (step := _STEP.match(data, at)):
        depth += 1 if step[1] == b"{" else -1
        at = step.end()
    return 0 if depth else at
