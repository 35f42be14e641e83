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

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
"""A string reaches to the end if nothing closes it: each byte is read once."""


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
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == MOST + 1:
                    pieces.append(text[done : token.start()])
            case b"]" | b"}":
                depth -= 1
                if depth == MOST:
                    pieces.append(b"null")
                    done = token.end()
            case _:  # a string
                pass
    return b"".join([*pieces, text[done:]])
