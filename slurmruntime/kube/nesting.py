"""Decode JSON that is nested deeper than anything we read, by cutting off the deeper levels.

A decoder rejects such a text as a whole. One object with parameters nested a thousand levels deep would
keep a whole list from being read.
"""

import re
from typing import TypeVar

import msgspec
from typing_extensions import Buffer

W = TypeVar("W")

MOST = 100
"""Levels that are kept. All fields that we read are less deep."""

_BRACKETS = re.compile(
    rb'(?:[^"\[\]{}]++|\[\]|\{\}|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:(?P<open>[\[{]++)|(?P<close>[\]}]++))?',
    re.DOTALL,
)
"""Brackets of one kind in a row, and what is before them; an empty list or object adds no level. A string reaches to the end if nothing closes it: each byte is read once."""


def decode(decoder: msgspec.json.Decoder[W], text: Buffer) -> W:
    """Decode JSON, if need be without what is nested too deep; raise DecodeError for another schema."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(cut(bytes(text)))


def cut(text: bytes) -> bytes:
    """Return JSON with null in place of what is nested too deep."""
    pieces: list[bytes] = []
    depth = done = 0
    for row in _BRACKETS.finditer(text):
        before = depth
        if row.lastgroup == "open":
            depth += row.end() - row.start("open")
            if before <= MOST < depth:
                pieces.append(text[done : row.end() - (depth - MOST)])
        elif row.lastgroup == "close":
            depth -= row.end() - row.start("close")
            if depth <= MOST < before:
                pieces.append(b"null")
                done = row.end() - (MOST - depth)
    return b"".join([*pieces, text[done:]])
