"""Find the directives of a script: the lines in its header that begin with `#SBATCH`.

Source: `_opt_batch_script` of sbatch's `opt.c`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from bridge.domain.faults import Fault
from jobs.script import words
from jobs.script.words import BLANKS, HeaderWord, UnreadableLine

MOST_DIRECTIVES: Final = 1000
LONGEST_DIRECTIVE: Final = 16_384
"""Characters; sbatch has no such bounds."""

_MOST_WARNINGS: Final = 100
_MISTAKEN = re.compile(r"[ \t]+#SBATCH\b|#+[ \t]*#?[ \t]*SBATCH\b")


@dataclass(slots=True)
class HeaderWords:
    """The words of a header, and what is to be said about it."""

    found: list[HeaderWord] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def lines(script: str) -> Iterator[tuple[int, str]]:
    """Return the lines with their numbers, the first one being 1."""
    return enumerate(script.split("\n"), start=1)


def where(line: int) -> str:
    """Return the path of a fault."""
    return f"line {line}"


def header(script: str) -> HeaderWords:
    """Return the words of all directives up to the first command."""
    result = HeaderWords()
    directives = 0
    ended = False
    for number, line in lines(script):
        rest = _after_magic_word(line)
        if rest is None:
            ended = ended or _is_command(line)
            _remark(result, number, line)
            continue
        if ended:
            _warn(result, number, "this directive comes after the first command: it has no effect")
            continue
        directives += 1
        if directives > MOST_DIRECTIVES:
            result.faults.append(
                Fault(where(number), f"the script has more than {MOST_DIRECTIVES} directives")
            )
            break
        if line.startswith("#SLURM"):
            _warn(result, number, "write #SBATCH instead of #SLURM")
        if words.starts_component(rest):
            result.faults.append(
                Fault(
                    where(number),
                    "heterogeneous jobs (hetjob) are not supported: submit one job each",
                )
            )
            break
        add(result, number, rest)
    return result


def foreign(script: str, magic_word: str) -> HeaderWords | None:
    """Return the words of `#PBS` or `#BSUB` lines; None if there are none.

    sbatch looks for them beyond the first command, until 100 lines were no comments (`xlate.c`).
    """
    result: HeaderWords | None = None
    others = 0
    directives = 0
    for number, line in lines(script):
        if line.startswith(magic_word):
            result = result or HeaderWords()
            directives += 1
            if directives > MOST_DIRECTIVES:
                result.faults.append(
                    Fault(where(number), f"the script has more than {MOST_DIRECTIVES} directives")
                )
                break
            add(result, number, line[len(magic_word) :])
            continue
        others += not line.startswith("#")
        if others > 100:  # noqa: PLR2004  # sbatch's own number
            break
    return result


def add(result: HeaderWords, number: int, text: str) -> None:
    """Add the words of one directive."""
    if len(text) > LONGEST_DIRECTIVE:
        result.faults.append(
            Fault(where(number), f"the directive is longer than {LONGEST_DIRECTIVE} characters")
        )
        return
    try:
        result.found += [HeaderWord(word, number) for word in words.split(text)]
    except UnreadableLine as error:
        result.faults.append(Fault(where(number), f"{error}"))


def written(options: Sequence[str]) -> str:
    """Write options as a header that `header` reads again, one directive each.

    Raises:
        ValueError: If no directive can hold one of them.
    """
    return "".join(f"#SBATCH {words.quoted(option)}\n" for option in options)


def _is_command(line: str) -> bool:
    text = line.lstrip(BLANKS)
    return bool(text) and not text.startswith("#")


def _after_magic_word(line: str) -> str | None:
    for magic_word in ("#SBATCH", "#SLURM"):
        if line.startswith(magic_word):
            return line[len(magic_word) :]
    return None


def _remark(result: HeaderWords, number: int, line: str) -> None:
    if line[:40].lstrip(BLANKS).startswith("#") and _MISTAKEN.match(line[:80]):
        _warn(
            result,
            number,
            "sbatch takes this for a comment: a directive begins with #SBATCH in column 1",
        )


def _warn(result: HeaderWords, number: int, message: str) -> None:
    if len(result.warnings) < _MOST_WARNINGS:
        result.warnings.append(Fault(where(number), message))
