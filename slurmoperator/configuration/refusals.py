"""Where the line stands that a daemon refuses, from what it says of it: pure.

Slurm tells the number of a line only sometimes, and then that of the file that we make.
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
    r"slurm(?:dbd)?\.conf:? line (\d{1,9})|\(line (\d{1,9}) [^)]*slurm(?:dbd)?\.conf\)"
)
_LONGEST_LINE: Final = 200
_MOST_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """A line that somebody wrote."""

    at: str
    text: str
    settings: tuple[Setting, ...]


def explained(
    words: str, daemon: str, written: Iterable[WrittenLine], *, wanted: str, in_force: str
) -> str:
    """Return what a daemon refuses: the line, where it stands, and Slurm's own words.

    Args:
        words: what the daemon said.
        daemon: such as slurmctld.
        written: what users wrote.
        wanted: the file that is made of it.
        in_force: the one that the daemon took last; "" for none.
    """
    blamed = list(_blamed(words, list(written), wanted, in_force))
    shown = "; ".join(
        f"{each.at}, {faults.shortened(each.text, _LONGEST_LINE)}" for each in blamed[:_MOST_LINES]
    )
    return f"{shown}: {daemon} says: {words}" if shown else f"{daemon} says: {words}"


def _blamed(
    words: str, written: Sequence[WrittenLine], wanted: str, in_force: str
) -> Iterator[WrittenLine]:
    made = wanted.splitlines()
    numbers = [int(found[1] or found[2]) for found in _AT_LINE.finditer(words)]
    texts = {made[number - 1] for number in numbers if 0 < number <= len(made)}
    if named := [each for each in written if each.text in texts]:
        yield from named
        return
    before = {*in_force.splitlines()}
    new = [each for each in written if each.text not in before] or written
    said = {*re.findall(r"[\w./-]+", words.lower())}
    weights = {each: _mentioned(each, said) for each in new}
    heaviest = max(weights.values(), default=0)
    if heaviest or (in_force and len(new) <= _MOST_LINES and new is not written):
        yield from (each for each, weight in weights.items() if weight == heaviest)


def _mentioned(line: WrittenLine, said: set[str]) -> int:
    """Return how much of a line Slurm speaks of; a name that only begins a line is worth less than a value."""
    weight = 0
    for setting in line.settings:
        parts = {*re.findall(r"[\w./-]+", setting.value.lower())}
        weight += (setting.key.lower() in said) + 2 * len(parts & said)
    return weight


def of_controller(inputs: ConfigurationInputs) -> Iterator[WrittenLine]:
    """Yield what users have written that stands in slurm.conf."""
    for line in lines.read(inputs.controller.spec.extra_conf):
        yield WrittenLine(f"spec.extraConf line {line.number}", line.text, line.settings)
    for each in inputs.sorted_node_sets:
        partition = each.spec.partition
        if partition and partition.enabled and partition.config:
            text = f"PartitionName={each.slurm_name} Nodes={each.slurm_name} {partition.config}"
            for line in lines.read(text):
                at = f"NodeSet {each.metadata.name} spec.partition.config"
                yield WrittenLine(at, line.text, line.settings)
