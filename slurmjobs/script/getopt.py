"""Recognise options among words as getopt_long(3) does, with unique abbreviations and bundled letters.

It stops at the first word that is not an option (sbatch's option string begins with `+`). Unlike getopt, it goes on
after a fault, so that it finds all of them.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from slurmjobs.script.words import HeaderWord
from slurmruntime.values.faults import MOST_FAULTS

MOST_OPTIONS: Final = 500
"""In one header; sbatch has no such bound."""


class Takes(Enum):
    """Whether an option has a value."""

    NOTHING = "no value"
    VALUE = "a value"
    PERHAPS = "a value or none"


class OptionName(Protocol):
    """What getopt needs to know about an option."""

    @property
    def name(self) -> str:
        """Without dashes; "" if it has only a letter."""

    @property
    def letter(self) -> str:
        """Without the dash; "" if it has only a name."""

    @property
    def takes(self) -> Takes:
        """Whether it has a value."""


@dataclass(frozen=True, slots=True)
class OptionMatch:
    """An option with its value, and the line it is in."""

    index: int
    """Its place in the table."""
    value: str | None
    line: int


@dataclass(frozen=True, slots=True)
class NoOption:
    """A word that is not an option, or an option with a missing or unexpected value."""

    message: str
    line: int


def parse(
    words: Sequence[HeaderWord], table: Sequence[OptionName]
) -> Iterator[OptionMatch | NoOption]:
    """Yield the options in order, and each faulty word; end after more faults than are shown."""
    wrong = 0
    for number, parsed in enumerate(_parse(words, table)):
        if number == MOST_OPTIONS:
            yield NoOption(f"the header has more than {MOST_OPTIONS} options", parsed.line)
            return
        yield parsed
        wrong += isinstance(parsed, NoOption)
        if wrong > MOST_FAULTS:
            return


def _parse(
    words: Sequence[HeaderWord], table: Sequence[OptionName]
) -> Iterator[OptionMatch | NoOption]:
    rest = iter(words)
    for word in rest:
        if word.text == "--":
            yield from _left_over(rest)
            return
        if word.text.startswith("--"):
            yield _long(word, rest, table)
        elif word.text.startswith("-") and word.text != "-":
            yield from _bundle(word, rest, table)
        else:
            yield from _left_over((word, *rest))
            return


def _left_over(words: Iterable[HeaderWord]) -> Iterator[NoOption]:
    for word in words:  # faults of the words after it would only be consequences
        yield NoOption(
            f"{word.text!r} is not an option: options begin with a dash, and values with spaces"
            " need quotes",
            word.line,
        )
        return


def _long(
    word: HeaderWord, rest: Iterator[HeaderWord], table: Sequence[OptionName]
) -> OptionMatch | NoOption:
    name, equals, value = word.text[2:].partition("=")
    index = _index(name, table)
    if isinstance(index, str):
        return NoOption(index, word.line)
    option = table[index]
    if equals:
        if option.takes is Takes.NOTHING:
            return NoOption(f"--{option.name} takes no value", word.line)
        return OptionMatch(index, value, word.line)
    if option.takes is Takes.VALUE:
        following = next(rest, None)
        if following is None:
            return NoOption(f"--{option.name} needs a value", word.line)
        return OptionMatch(index, following.text, word.line)
    return OptionMatch(index, None, word.line)


def _index(name: str, table: Sequence[OptionName]) -> int | str:
    """Return an option's place in the table, or what is wrong with the name."""
    exact = [index for index, option in enumerate(table) if option.name and option.name == name]
    if exact:
        return exact[0]
    candidates = [
        index for index, option in enumerate(table) if name and option.name.startswith(name)
    ]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        listed = ", ".join(f"--{table[index].name}" for index in candidates[:6])
        return f"--{_short(name)} is ambiguous ({listed}): write the full name"
    similar = difflib.get_close_matches(name[:60], [o.name for o in table if o.name], n=1)
    hint = f"; did you mean --{similar[0]}?" if similar else ""
    return f"sbatch has no option --{_short(name)}{hint}"


def _bundle(
    word: HeaderWord, rest: Iterator[HeaderWord], table: Sequence[OptionName]
) -> Iterator[OptionMatch | NoOption]:
    letters = word.text[1:]
    for place, letter in enumerate(letters):
        index = next((i for i, option in enumerate(table) if option.letter == letter), None)
        if index is None:
            yield NoOption(f"sbatch has no option -{letter}", word.line)
            return
        takes = table[index].takes
        if takes is Takes.NOTHING:
            yield OptionMatch(index, None, word.line)
            continue
        after = letters[place + 1 :]
        if takes is Takes.PERHAPS:
            yield OptionMatch(index, after or None, word.line)
            return
        following = None if after else next(rest, None)
        if not after and following is None:
            yield NoOption(f"-{letter} needs a value", word.line)
        else:
            yield OptionMatch(index, following.text if following else after, word.line)
        return


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004  # as long as a line shows
