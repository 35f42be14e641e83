"""A run as tables for people."""

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, RenderableType
from rich.table import Table

from benchmarks.goals import goals
from benchmarks.results import ApiWork, Change, Micro, Phase, Run, compare

Lives = Mapping[str, ApiWork]
"""As in `Run`."""
Strangers = Mapping[str, tuple[ApiWork, ApiWork]]
"""As in `Run`."""

_PIPE_WIDTH = 140
_WORTH_TELLING_PERCENT = 5.0
_WORTH_TELLING = 0.05
"""Figures below this in both runs are not comparable."""


def show(console: Console, run: Run, before: Run | None, *, across_columns: bool = False) -> None:
    """Print everything; with an earlier run, also the changes since."""
    if run.shape.column:
        console.print(f"column {run.shape.column}: {', '.join(run.shape.values)}\n", markup=False)
    tables: list[RenderableType] = [
        _times(run),
        _micro(run.micro),
        _cpu(run),
        _memory(run),
        _calls(run),
        api(run.lives, run.strangers),
        _goals(run, before),
    ]
    if before:
        tables.append(_changes(before, run, across_columns=across_columns))
    for table in tables:
        console.print(table)
        console.print()


def console() -> Console:
    """Return a console as wide as the terminal; a file gets lines that need no folding."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def _times(run: Run) -> Table:
    table = _table("times", "pods", "seconds", "pods/s", "p50 s", "p99 s", "longest s")
    for title, phase in run.phases.items():
        found = phase.spread
        spread = (found.p50_s, found.p99_s, found.longest_s) if found else ()
        cells = (str(phase.pods), f"{phase.wall_s:.2f}", f"{phase.per_s:.0f}")
        table.add_row(title, *cells, *(f"{seconds:.3f}" for seconds in spread))
    return table


def _micro(found: Mapping[str, Micro]) -> Table:
    table = _table("one thing alone", "count", "per s", "CPU ms each", "p50 ms", "p99 ms", "MiB")
    for title, micro in found.items():
        table.add_row(
            title,
            str(micro.count),
            f"{micro.per_s:g}" if micro.per_s else "",
            f"{micro.cpu_ms:.3f}",
            f"{1000 * micro.spread.p50_s:.2f}" if micro.spread else "",
            f"{1000 * micro.spread.p99_s:.2f}" if micro.spread else "",
            f"{micro.memory_mib:.0f}" if micro.memory_mib else "",
        )
    return table


def _cpu(run: Run) -> Table:
    table = _table("CPU seconds", *run.phases)
    for part in _parts(run.phases.values()):
        used = [phase.usage.cpu_s.get(part, 0.0) for phase in run.phases.values()]
        table.add_row(part, *(f"{seconds:.2f}" for seconds in used))
    return table


def _memory(run: Run) -> Table:
    table = _table("resident MiB at the end", *run.phases)
    for part in _parts(run.phases.values()):
        held = [phase.usage.memory_mib.get(part) for phase in run.phases.values()]
        table.add_row(part, *(f"{mib:.0f}" if mib else "" for mib in held))
    return table


def _calls(run: Run) -> Table:
    """Return the calls, per pod if something happens to pods, in total while they wait."""
    table = _table("calls per pod", *run.phases)
    named = sorted({name for phase in run.phases.values() for name in phase.usage.calls})
    for name in named:
        made = [phase.usage.calls.get(name, 0) / phase.pods for phase in run.phases.values()]
        table.add_row(name, *(f"{calls:.2f}" if calls else "" for calls in made))
    return table


def api(lives: Lives, strangers: Strangers) -> Table:
    """Return what the API server did: for each pod's life, and for each write of a pod not ours."""
    table = _table("API server, each", "allocations", "CPU ms", "without our policies", "more")
    for title, work in lives.items():
        table.add_row(f"whole life, {title}", *_each(work))
    for title, (without, work) in strangers.items():
        more = 100 * (work.allocations / without.allocations - 1) if without.allocations else 0.0
        table.add_row(f"not ours, {title}", *_each(work), _each(without)[0], f"{more:+.1f} %")
    return table


def _each(work: ApiWork) -> tuple[str, str]:
    return f"{work.allocations / work.count:.0f}", f"{1000 * work.cpu_s / work.count:.1f}"


def _goals(run: Run, before: Run | None) -> Table:
    table = _table("goals (2 cores)", "found", "goal", "")
    for goal in goals(run, before):
        verdict = "[green]reached[/]" if goal.is_reached else "[red]missed[/]"
        unit = f" {goal.unit}".rstrip()
        limit = f"{'=' if goal.is_exact else '≤'} {goal.limit:.2f}{unit}"
        table.add_row(goal.name, f"{goal.found:.2f}{unit}", limit, verdict)
    return table


def _changes(before: Run, run: Run, *, across_columns: bool) -> Table:
    table = _table(f"changes since {before.began_at} ({before.commit})", "before", "now", "percent")
    for change in _worth_telling(compare(before, run, across_columns=across_columns)):
        percent = "new" if change.percent is None else f"{change.percent:+.0f} %"
        table.add_row(change.name, f"{change.before:.3f}", f"{change.now:.3f}", percent)
    return table


def _worth_telling(changes: Iterable[Change]) -> Iterator[Change]:
    for change in changes:
        is_visible = max(change.before, change.now) >= _WORTH_TELLING
        percent = change.percent
        if is_visible and (percent is None or abs(percent) >= _WORTH_TELLING_PERCENT):
            yield change


def _parts(phases: Iterable[Phase]) -> list[str]:
    return list(dict.fromkeys(part for phase in phases for part in phase.usage.cpu_s))


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, header_style="bold", title_justify="left")
    table.add_column(title, style="cyan", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table
