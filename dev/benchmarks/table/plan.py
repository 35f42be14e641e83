"""Which runs the table is made of, and in which order. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.columns import COLUMNS

SIZES = ((200, 100), (1000, 100))
"""Pods and nodes. The small one first: its figures are there soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run that is to be made."""

    column: str
    pods: int
    nodes: int
    round: int
    idle_minutes: float = 0.0
    is_short: bool = False
    """Only what depends on the number of pods: the smaller runs tell the rest."""

    @property
    def name(self) -> str:
        """Its file's name, without the ending."""
        return f"{self.pods}-pods-{self.nodes}-nodes-{self.column}-{self.round}"

    def arguments(self) -> tuple[str, ...]:
        """Return what `python -m benchmarks` is called with."""
        return (
            f"--column={self.column}",
            f"--pods={self.pods}",
            f"--nodes={self.nodes}",
            f"--idle-minutes={self.idle_minutes:g}",
            *(["--short"] if self.is_short else []),
        )


def planned(
    rounds: int, idle_minutes: float, sizes: Sequence[tuple[int, int]] = SIZES
) -> Iterator[RunSpec]:
    """Yield every run.

    The columns take turns, so that a machine that becomes slower does so for both.
    Only one run of each column rests, as resting is all that takes long.
    """
    for index, (pods, nodes) in enumerate(sizes):
        for number in range(1, rounds + 1):
            for column in COLUMNS:
                rests = index == 0 and number == 1
                yield RunSpec(
                    column=column,
                    pods=pods,
                    nodes=nodes,
                    round=number,
                    idle_minutes=idle_minutes if rests else 0.0,
                    is_short=index > 0,
                )


def size(text: str) -> tuple[int, int]:
    """Read a size such as `200x100`: pods and nodes.

    Raises:
        ValueError: it is none.
    """
    pods, _, nodes = text.partition("x")
    if not (pods.isdecimal() and nodes.isdecimal() and int(pods) and int(nodes)):
        raise ValueError(f"{text!r} is no size: expected pods and nodes, such as 200x100")
    return int(pods), int(nodes)
