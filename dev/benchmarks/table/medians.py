"""Stored runs as one Markdown table: medians by column and size, each beside its goal. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from benchmarks import apiserver, scenarios
from benchmarks.columns import COLUMNS
from benchmarks.goals import FEW_NODES, Goal, goals
from benchmarks.results import Run
from docs.generate import markdown

_EXACT_BELOW = 100
"""Figures below have three digits that count; above, only whole ones."""


class _Group(NamedTuple):
    """Runs that are repetitions of each other. Sorts as the table's columns do."""

    pods: int
    nodes: int
    rank: int
    column: str

    @property
    def title(self) -> str:
        nodes = f" on {self.nodes} nodes" if self.nodes != FEW_NODES else ""
        return f"{self.column}, {self.pods} pods{nodes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    found: Sequence[float]
    unit: str
    goal: Goal | None
    """With the median as what was found; None for a figure that only explains others."""

    def text(self) -> str:
        most, least = max(self.found), min(self.found)
        spread = f" ({_number(least)} to {_number(most)})" if most > least else ""
        missed = ", **missed**" if self.goal and not self.goal.is_reached else ""
        return f"{_number(median(self.found))}{spread}{missed}"


def table(runs: Sequence[Run]) -> str:
    """Return the table, and a line that says what it was made of.

    Raises:
        ValueError: there are no runs, a run was profiled or is of an older version, or runs of one column had
            different settings.
    """
    groups = _grouped(runs)
    cells = {group: _cells(of, _fewer_nodes(group, groups)) for group, of in groups.items()}
    names = dict.fromkeys(name for found in cells.values() for name in found)
    rows = (
        (
            name,
            _limits([found[name] for found in cells.values() if name in found]),
            *(found[name].text() if name in found else "" for found in cells.values()),
        )
        for name in names
    )
    head = ("figure", "goal", *(group.title for group in groups))
    return f"{_origin(groups)}\n\n{markdown.table(head, rows)}"


def _grouped(runs: Sequence[Run]) -> Mapping[_Group, Sequence[Run]]:
    if not runs:
        raise ValueError("no runs: name the files that `make bench` wrote with --output")
    found: dict[_Group, list[Run]] = {}
    for run in runs:
        shape = run.shape
        if shape.is_profiled or not shape.column:
            raise ValueError(f"the run of {run.began_at} is profiled or of no column: {shape}")
        rank = COLUMNS.index(shape.column) if shape.column in COLUMNS else len(COLUMNS)
        group = _Group(shape.pods, shape.nodes, rank, shape.column)
        same = found.setdefault(group, [])
        if same and same[0].shape != shape:
            raise ValueError(f"runs of {group.title} differ: {same[0].shape} and {shape}")
        same.append(run)
    return dict(sorted(found.items()))


def _fewer_nodes(group: _Group, groups: Mapping[_Group, Sequence[Run]]) -> Run | None:
    """Return the middle one of the runs that differ only in having the fewest nodes."""
    like = [each for each in groups if each._replace(nodes=group.nodes) == group]
    runs = sorted(groups[min(like)], key=lambda run: run.phases[scenarios.BOUND].wall_s)
    return runs[len(runs) // 2] if min(like) != group else None


def _cells(runs: Sequence[Run], before: Run | None) -> Mapping[str, _Cell]:
    found: dict[str, list[Goal]] = {}
    for run in runs:
        for goal in goals(run, before):
            found.setdefault(goal.name, []).append(goal)
    judged = {
        f"{name}{f', {same[0].unit}' if same[0].unit else ''}": _Cell(
            found=[goal.found for goal in same],
            unit=same[0].unit,
            goal=_at_median(same),
        )
        for name, same in found.items()
    }
    explained: dict[str, list[float]] = {}
    for run in runs:
        for name, value in _explaining(run):
            explained.setdefault(name, []).append(value)
    return judged | {
        name: _Cell(found=values, unit="", goal=None) for name, values in explained.items()
    }


def _at_median(same: Sequence[Goal]) -> Goal:
    first = same[0]
    return Goal(
        name=first.name,
        found=median(goal.found for goal in same),
        limit=first.limit,
        unit=first.unit,
        is_exact=first.is_exact,
    )


def _explaining(run: Run) -> Iterator[tuple[str, float]]:
    """Yield figures without a goal, on which those with one rest."""
    for name in (scenarios.PLAIN, scenarios.BOUND, scenarios.ENDED, scenarios.FREED):
        yield f"{name}, all pods, s", run.phases[name].wall_s
    life, waiting = run.phases[scenarios.LIFE], run.phases[scenarios.WAITING]
    for part in ("slurmrestd", "slurmctld"):
        yield f"CPU of {part} per pod, whole life, ms", 1000 * life.usage.cpu_of(part) / life.pods
    yield (
        f"CPU of slurmctld in {waiting.wall_s:g} s of waiting, s",
        waiting.usage.cpu_of("slurmctld"),
    )
    for title in (apiserver.PLAIN, apiserver.BRIDGED):
        if work := run.lives.get(title):
            yield (
                f"CPU of the API server per pod, whole life, {title}, ms",
                1000 * work.cpu_s / work.count,
            )


def _limits(cells: Sequence[_Cell]) -> str:
    """Return the goal, or the goals in the order of the table's columns, if they differ."""
    judged = [cell.goal for cell in cells if cell.goal]
    if not judged:
        return ""
    limits = " / ".join(dict.fromkeys(_number(goal.limit) for goal in judged))
    return f"{'=' if judged[0].is_exact else '≤'} {limits}"


def _origin(groups: Mapping[_Group, Sequence[Run]]) -> str:
    runs = [run for of in groups.values() for run in of]
    counts = sorted({len(of) for of in groups.values()})
    machines = " and ".join(
        dict.fromkeys(
            f"{run.machine.cores} cores of {run.machine.processor}, {run.machine.memory_gib:g} GiB, Python {run.machine.python}"
            for run in runs
        )
    )
    days = sorted({run.began_at[:10] for run in runs})
    return (
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}; {machines}; commit {', '.join(sorted({run.commit for run in runs}))}; "
        f"medians of {' to '.join(map(str, counts))} runs (least to most); "
        f"the load average before a run was at most {max(run.machine.load_before for run in runs):g}."
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= _EXACT_BELOW else f"{value:.3g}"
