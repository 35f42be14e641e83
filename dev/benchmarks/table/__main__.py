"""`make bench-table`: make the runs that are still missing, and write their medians into a page.

`python -m benchmarks.table --page docs/performance.md run1.json run2.json …` only writes.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import results
from benchmarks.results import Run
from benchmarks.table import medians, page, plan
from benchmarks.table.plan import RunSpec

_SIZES = ",".join(f"{pods}x{nodes}" for pods, nodes in plan.SIZES)


def main(
    stored: Annotated[
        list[Path] | None, typer.Argument(help="Stored runs to tell of; none: make all.")
    ] = None,
    *,
    folder: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("build/bench"),
    rounds: Annotated[int, typer.Option(help="Runs of each column and size.", min=1)] = 3,
    sizes: Annotated[str, typer.Option(help="Pods and nodes.")] = _SIZES,
    idle_minutes: Annotated[
        float, typer.Option(help="Rest so long before the first pod, once for each column.", min=0)
    ] = 10,
    write: Annotated[
        Path | None,
        typer.Option("--page", help="Page whose table is replaced; else it is printed."),
    ] = None,
) -> None:
    """Make every run that is not in the folder yet, one after another; then write the table."""
    try:
        wanted = plan.planned(rounds, idle_minutes, [plan.size(each) for each in sizes.split(",")])
        made = [_read(path) for path in stored] if stored else _all_made(folder, list(wanted))
        table = medians.table(made)
        if write:
            write.write_text(page.with_table(write.read_text(), table))
        else:
            typer.echo(table)
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _all_made(folder: Path, wanted: Sequence[RunSpec]) -> Sequence[Run]:
    """Make what is missing, and return all.

    A run that fails does not keep others from being made; call again for what is missing then.

    Raises:
        ValueError: some have failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for number, one in enumerate(wanted, 1):
        said = f"{number}/{len(wanted)} {one.name}"
        path = folder / f"{one.name}.json"
        if path.exists():
            typer.echo(f"{said}: kept from before")
            continue
        began = time.monotonic()
        is_made = _made(one, path)
        typer.echo(f"{said}: {'made' if is_made else 'FAILED'} in {time.monotonic() - began:.0f} s")
        if not is_made:
            missing.append(f"{one.name} (see {path.with_suffix('.log')})")
    if missing:
        raise ValueError(f"failed: {', '.join(missing)}; the same command makes only these again")
    return [_read(folder / f"{one.name}.json") for one in wanted]


def _made(one: RunSpec, path: Path) -> bool:
    """Make one run in a process of its own; its file has its name only when it is whole."""
    unfinished = path.with_suffix(".unfinished")
    command = (sys.executable, "-m", "benchmarks", *one.arguments(), f"--output={unfinished}")
    with path.with_suffix(".log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 0:
        unfinished.rename(path)
    return done.returncode == 0


def _read(path: Path) -> Run:
    try:
        return results.read(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


if __name__ == "__main__":
    typer.run(main)
