"""Find the directives of a script: the lines in its header that begin with `#SBATCH`.

Source: `_opt_batch_script` of sbatch's `opt.c`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from slurmjobs.script import words
from slurmjobs.script.getopt import MOST_OPTIONS
from slurmjobs.script.words import BLANKS, HeaderWord, UnreadableLine
from slurmruntime.values.faults import Fault

LONGEST_DIRECTIVE: Final = 16_384
LONGEST_HEADER: Final = 2 * LONGEST_DIRECTIVE
"""Characters of all directives together."""
MOST_WORDS: Final = 2 * MOST_OPTIONS + 1
"""A header with more words has more than `MOST_OPTIONS` options, or faults."""
MOST_LINES: Final = 2000
"""Lines that are read to find the header. sbatch has none of these bounds."""

_LONGEST_LINE: Final = LONGEST_DIRECTIVE + 80
_MOST_WARNINGS: Final = 100
_COMMAND = re.compile(r"[ \t\n\v\f\r]*[^ \t\n\v\f\r#]")
_MISTAKEN = re.compile(r"[ \t]+#SBATCH\b|#+[ \t]*#?[ \t]*SBATCH\b")


@dataclass(slots=True)
class HeaderWords:
    """The words of a header, with its faults and warnings."""

    words: list[HeaderWord] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    characters: int = 0
    """Of all directives so far."""

    def fault(self, line: int, message: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(where(line), message))

    def warn(self, line: int, message: str) -> None:
        """Add a warning, unless there are many."""
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(Fault(where(line), message))

    def is_full(self, line: int, text: str) -> bool:
        """Count the characters of a directive; if they are too many, add the fault."""
        self.characters += len(text)
        if self.characters <= LONGEST_HEADER:
            return False
        self.fault(line, f"the directives up to here have more than {LONGEST_HEADER} characters")
        return True

    def add(self, line: int, text: str) -> None:
        """Add the words of one directive."""
        if len(text) > LONGEST_DIRECTIVE:
            self.fault(line, f"the directive is longer than {LONGEST_DIRECTIVE} characters")
            return
        try:
            room = MOST_WORDS - len(self.words)
            self.words += [HeaderWord(word, line) for word in islice(words.split(text), room)]
        except UnreadableLine as error:
            self.fault(line, f"{error}")


def lines(script: str) -> Iterator[tuple[int, str]]:
    """Yield the first `MOST_LINES` lines with their numbers, from 1; long lines are cut off."""
    start = 0
    for number in range(1, MOST_LINES + 1):
        end = script.find("\n", start)
        stop = len(script) if end < 0 else end
        yield number, script[start : min(stop, start + _LONGEST_LINE)]
        if end < 0:
            return
        start = end + 1


def where(line: int) -> str:
    """Return the path of a fault in a line."""
    return f"line {line}"


def header(script: str) -> HeaderWords:
    """Return the words of all directives up to the first command."""
    result = HeaderWords()
    ended = False
    for number, line in lines(script):
        rest = _after_magic_word(line)
        if rest is None:
            ended = ended or _COMMAND.match(line) is not None
            if line[:40].lstrip(BLANKS).startswith("#") and _MISTAKEN.match(line[:80]):
                text = "sbatch reads this as a comment: a directive begins with #SBATCH in column 1"
                result.warn(number, text)
            continue
        if ended:
            result.warn(number, "this directive comes after the first command: it has no effect")
            continue
        if result.is_full(number, rest):
            break
        if line.startswith("#SLURM"):
            result.warn(number, "write #SBATCH instead of #SLURM")
        if words.starts_component(rest):
            text = (
                "heterogeneous jobs (hetjob) are not supported: submit one job for each component"
            )
            result.fault(number, text)
            break
        result.add(number, rest)
    else:
        if not ended and _has_more_lines(script):
            result.fault(
                MOST_LINES,
                f"there is no command in the first {MOST_LINES} lines, and no more are read: move comments behind"
                " the first command",
            )
    return result


def foreign(script: str, magic_word: str) -> HeaderWords | None:
    """Return the words of `#PBS` or `#BSUB` lines; None if there are none.

    sbatch looks for them beyond the first command, until 100 lines were no comments (`xlate.c`).
    """
    if not script.startswith(magic_word) and f"\n{magic_word}" not in script:
        return None
    result: HeaderWords | None = None
    others = 0
    for number, line in lines(script):
        if line.startswith(magic_word):
            result = result or HeaderWords()
            rest = line[len(magic_word) :]
            if result.is_full(number, rest):
                break
            result.add(number, rest)
            continue
        others += not line.startswith("#")
        if others > 100:  # noqa: PLR2004  # sbatch's own number
            break
    else:
        if _has_more_lines(script):
            result = result or HeaderWords()
            result.fault(MOST_LINES, f"{magic_word} lines are not read beyond this line")
    return result


def _has_more_lines(script: str) -> bool:
    return script.count("\n") >= MOST_LINES


def _after_magic_word(line: str) -> str | None:
    for magic_word in ("#SBATCH", "#SLURM"):
        if line.startswith(magic_word):
            return line[len(magic_word) :]
    return None
