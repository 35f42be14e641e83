"""Recognise options among words as getopt_long(3) does, with unique abbreviations and bundled letters.

It stops at the first word that is no option (sbatch's option string begins with `+`). Unlike getopt, it goes on
after a fault, so that all of them are found.
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
    """What getopt has to know of an option."""

    @property
    def name(self) -> str:
        """Without dashes; "" if it has only a letter."""

    @property
    def letter(self) -> str:
        """Or ""."""

    @property
    def takes(self) -> Takes:
        """Whether it has a value."""


@dataclass(frozen=True, slots=True)
class FoundOption:
    """An option with its value, and the line it is in."""

    index: int
    """Its place in the table."""
    value: str | None
    line: int


@dataclass(frozen=True, slots=True)
class NoOption:
    """A word that is not an option, or has a wrong number of values."""

    message: str
    line: int


def parse(
    words: Sequence[HeaderWord], table: Sequence[OptionName]
) -> Iterator[FoundOption | NoOption]:
    """Return the options in their order, and each word that is wrong, as far as anybody is told."""
    wrong = 0
    for number, found in enumerate(_parsed(words, table)):
        if number == MOST_OPTIONS:
            yield NoOption(f"the header has more than {MOST_OPTIONS} options", found.line)
            return
        yield found
        wrong += isinstance(found, NoOption)
        if wrong > MOST_FAULTS:
            return


def _parsed(
    words: Sequence[HeaderWord], table: Sequence[OptionName]
) -> Iterator[FoundOption | NoOption]:
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
    for word in words:  # what comes after it would only be told as a consequence
        yield NoOption(
            f"{word.text!r} is not an option: options begin with a dash, and values with blanks"
            " need quotes",
            word.line,
        )
        return


def _long(
    word: HeaderWord, rest: Iterator[HeaderWord], table: Sequence[OptionName]
) -> FoundOption | NoOption:
    name, equals, value = word.text[2:].partition("=")
    index = _index(name, table)
    if isinstance(index, str):
        return NoOption(index, word.line)
    option = table[index]
    if equals:
        if option.takes is Takes.NOTHING:
            return NoOption(f"--{option.name} takes no value", word.line)
        return FoundOption(index, value, word.line)
    if option.takes is Takes.VALUE:
        following = next(rest, None)
        if following is None:
            return NoOption(f"--{option.name} needs a value", word.line)
        return FoundOption(index, following.text, word.line)
    return FoundOption(index, None, word.line)


def _index(name: str, table: Sequence[OptionName]) -> int | str:
    """Return an option's place, or what is wrong with the name."""
    exact = [index for index, option in enumerate(table) if option.name and option.name == name]
    if exact:
        return exact[0]
    found = [index for index, option in enumerate(table) if name and option.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"--{table[index].name}" for index in found[:6])
        return f"--{_short(name)} may mean {listed}: write the whole name"
    near = difflib.get_close_matches(name[:60], [o.name for o in table if o.name], n=1)
    hint = f"; did you mean --{near[0]}?" if near else ""
    return f"sbatch has no option --{_short(name)}{hint}"


def _bundle(
    word: HeaderWord, rest: Iterator[HeaderWord], table: Sequence[OptionName]
) -> Iterator[FoundOption | NoOption]:
    letters = word.text[1:]
    for place, letter in enumerate(letters):
        index = next((i for i, option in enumerate(table) if option.letter == letter), None)
        if index is None:
            yield NoOption(f"sbatch has no option -{letter}", word.line)
            return
        takes = table[index].takes
        if takes is Takes.NOTHING:
            yield FoundOption(index, None, word.line)
            continue
        after = letters[place + 1 :]
        if takes is Takes.PERHAPS:
            yield FoundOption(index, after or None, word.line)
            return
        following = None if after else next(rest, None)
        if not after and following is None:
            yield NoOption(f"-{letter} needs a value", word.line)
        else:
            yield FoundOption(index, following.text if following else after, word.line)
        return


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004  # as long as a line shows
