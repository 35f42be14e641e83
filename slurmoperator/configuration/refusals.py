"""Find the line that a daemon refuses, from its message: pure.

Slurm gives a line number only sometimes, and then it is a line of the generated file.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from slurmoperator.configuration import lines
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.lines import Setting
from slurmruntime.values import faults

_AT_LINE: Final = re.compile(
    r"slurm(?:dbd)?\.conf:? line (\d{1,9})|\(line (\d{1,9}) [^()]{0,200}slurm(?:dbd)?\.conf\)"
)
"""The path is bounded: what is searched for at each beginning must not reach to the end of the log."""
_LONGEST_LINE: Final = 200
_MOST_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class UserLine:
    """A line that a user wrote."""

    at: str
    text: str
    settings: tuple[Setting, ...]


def explain(
    message: str, daemon: str, written: Iterable[UserLine], *, wanted: str, in_force: str
) -> str:
    """Return what a daemon refuses: the line, the field it is in, and the daemon's own message.

    Args:
        written: the lines of users; `wanted` is the file generated from them.
        in_force: the file that the daemon accepted last; "" for none.
    """
    suspects = list(_suspects(message, list(written), wanted, in_force))
    shown = "; ".join(
        f"{line.at}, {faults.shortened(line.text, _LONGEST_LINE)}"
        for line in suspects[:_MOST_LINES]
    )
    return f"{shown}: {daemon} says: {message}" if shown else f"{daemon} says: {message}"


def _suspects(
    message: str, written: Sequence[UserLine], wanted: str, in_force: str
) -> Iterator[UserLine]:
    generated = wanted.splitlines()
    numbers = [int(match[1] or match[2]) for match in _AT_LINE.finditer(message)]
    texts = {generated[number - 1] for number in numbers if 0 < number <= len(generated)}
    if numbered := [line for line in written if line.text in texts]:
        yield from numbered
        return
    before = {*in_force.splitlines()}
    new = [line for line in written if line.text not in before] or written
    words = {*re.findall(r"[\w./-]+", message.lower())}
    weights = {line: _weight(line, words) for line in new}
    heaviest = max(weights.values(), default=0)
    if heaviest or (in_force and len(new) <= _MOST_LINES and new is not written):
        yield from (line for line, weight in weights.items() if weight == heaviest)


def _weight(line: UserLine, words: set[str]) -> int:
    """Return how much of a line a message mentions; a key counts less than a value."""
    weight = 0
    for setting in line.settings:
        parts = {*re.findall(r"[\w./-]+", setting.value.lower())}
        weight += (setting.key.lower() in words) + 2 * len(parts & words)
    return weight


def user_lines(inputs: ConfigurationInputs) -> Iterator[UserLine]:
    """Yield the lines of slurm.conf that users wrote."""
    for line in lines.read(inputs.controller.spec.extra_conf):
        yield UserLine(f"spec.extraConf line {line.number}", line.text, line.settings)
    for node_set in inputs.sorted_node_sets:
        partition, name = node_set.spec.partition, node_set.slurm_name
        if partition and partition.enabled and partition.config:
            text = f"PartitionName={name} Nodes={name} {partition.config}"
            for line in lines.read(text):
                at = f"NodeSet {node_set.metadata.name} spec.partition.config"
                yield UserLine(at, line.text, line.settings)
