"""`python -m benchmarks.growth`: what a tenfold input costs, for every dimension that can grow.

Each dimension is measured at three sizes, each ten times the one before. The exponent says how the
cost grows between the last two: 1 is linear, 2 is quadratic. Ends with 1 if a cost grows faster than
linearly, or if a look costs more than its budget per pod.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from benchmarks import report
from benchmarks.dimensions import Dimension, Work, all_of_them

BUDGET_MS = 0.2
"""Per pod looked at: 20 ms per 100 pods."""
LINEAR = 1.3
"""The largest exponent that counts as linear: caches get colder, logarithms add a little."""
_TOO_SHORT_S = 0.001
"""What takes less says nothing about growth."""
_RUNS = 3
_AT_LEAST_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What one dimension costs as it grows."""

    name: str
    sizes: Sequence[int]
    took_s: Sequence[float]
    """The best of several runs, by size."""
    pods: int
    """Looked at, at the largest size."""

    @property
    def exponent(self) -> float | None:
        """How the cost grows between the last two sizes; None if both are too short to tell."""
        before_s, after_s = self.took_s[-2:]
        if after_s < _TOO_SHORT_S:
            return None
        return math.log(after_s / before_s) / math.log(self.sizes[-1] / self.sizes[-2])

    @property
    def per_pod_ms(self) -> float:
        """What the largest look costs per pod."""
        return 1000 * self.took_s[-1] / self.pods

    @property
    def is_linear(self) -> bool:
        """Check that ten times as much costs about ten times as much, at most."""
        return self.exponent is None or self.exponent <= LINEAR

    @property
    def is_within_budget(self) -> bool:
        """Check the cost per pod of looks at many pods."""
        return self.pods == 1 or self.per_pod_ms <= BUDGET_MS


def main(
    *,
    only: Annotated[str, typer.Option(help="Dimensions whose name contains this.")] = "",
) -> None:
    """Measure how cost grows with every dimension of the input."""
    chosen = [each for each in all_of_them() if only in each.name]
    grown = [measured(each) for each in chosen]
    report.console().print(_table(grown))
    raise typer.Exit(not all(each.is_linear and each.is_within_budget for each in grown))


def measured(dimension: Dimension) -> Grown:
    """Measure one dimension at each of its sizes."""
    took_s = [_best_s(dimension.prepare(size)) for size in dimension.sizes]
    return Grown(
        name=dimension.name,
        sizes=dimension.sizes,
        took_s=took_s,
        pods=dimension.sizes[-1] if dimension.is_of_pods else 1,
    )


def _best_s(work: Work) -> float:
    """Return the CPU time of one call: the best of several, each repeated until it can be measured."""
    times = 1
    while True:
        took_s = _cpu_s(work, times)
        if took_s >= _AT_LEAST_S:
            break
        times *= max(2, math.ceil(_AT_LEAST_S / max(took_s, _AT_LEAST_S / 10)))
    return min([took_s / times, *(_cpu_s(work, times) / times for _ in range(_RUNS - 1))])


def _cpu_s(work: Work, times: int) -> float:
    began_s = time.thread_time()
    for _ in range(times):
        work()
    return time.thread_time() - began_s


def _table(grown: Iterable[Grown]) -> Table:
    table = Table("dimension", *(f"{title} ms" for title in ("1 x", "10 x", "100 x")))
    for title in ("largest", "exponent", "ms per pod", ""):
        table.add_column(title, justify="right")
    for each in grown:
        exponent = "" if each.exponent is None else f"{each.exponent:.2f}"
        faults = [
            *([] if each.is_linear else ["not linear"]),
            *([] if each.is_within_budget else ["over budget"]),
        ]
        table.add_row(
            each.name,
            *(f"{1000 * took_s:.3f}" for took_s in each.took_s),
            f"{each.sizes[-1]}",
            exponent,
            f"{each.per_pod_ms:.3f}" if each.pods > 1 else "",
            ", ".join(faults),
        )
    return table


if __name__ == "__main__":
    typer.run(main)
