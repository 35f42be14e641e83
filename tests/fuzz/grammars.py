"""The worst inputs of each grammar: one of its pieces, repeated, in a frame that gets it read."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """The pieces of a form, and what may stand around them."""

    pieces: tuple[str, ...]
    frames: tuple[tuple[str, str], ...] = (("", ""),)

    def worst(self, length: int) -> Iterator[str]:
        """Yield texts of about so many bytes, one for each frame and piece."""
        for before, after in self.frames:
            room = max(length - len(before.encode()) - len(after.encode()), 0)
            for piece in self.pieces:
                yield before + piece * (room // len(piece.encode())) + after


_OPENED = ("[", "(", "{", "[(", "(a", ")", "]")
_JOINED = (",", ":", "-", "=", "|", "%", "/", "a|", "(a|b)&", "a-")
_QUOTED = ("\\", '"', "'", '\\"', "#")
_BLANK = (" ", "\n", "a ", "a\n", "\\\n")
_COUNTED = ("1", "0", "9,", "0-4095,", "1-99999,", "1.", "1s")
_NAMED = ("a", "a,", "a:1,", "a=1,", "a[1-99999],", "_")
_ODD = ("é", "\x00")

TEXT = Grammar((*_OPENED, *_JOINED, *_QUOTED, *_BLANK, *_COUNTED, *_NAMED, *_ODD))
"""A text of no particular form."""

JSON_PIECES = (
    *("[", '{"a":', "[],", "{},", '"a",', "null,", '"a":1,', '"a":[],', '"\\u0000",'),
    *("1", "1,", "-", "1e9,", '"', '\\"', "\\", " ", "a", ",", "é", "\x00"),
)
JSON = Grammar(JSON_PIECES, (("", ""), ("{", '"z":1}')))


def framed(*frames: tuple[str, str], more: tuple[str, ...] = ()) -> Grammar:
    """Return the grammar of any text within these frames."""
    return Grammar((*TEXT.pieces, *more), frames)


def json_of(*frames: tuple[str, str], more: tuple[str, ...] = ()) -> Grammar:
    """Return the grammar of JSON, and of JSON within these frames."""
    return Grammar((*JSON_PIECES, *more), (*JSON.frames, *frames))


YAML = Grammar(
    (
        *("[", "{", "[a,", "- ", "-\n", "a: ", "a: 1\n", " ", "\n", "#", "!!a "),
        *("&a ", "*a,", '"', "'", "|", "---\n", "a,", "1", "\\", "\t"),
    ),
    (("", ""), ("a: [", "]")),
)
"""No piece makes an alias by itself: see the corpus."""
