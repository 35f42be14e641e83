"""`python -m tests.soak`: the pure model, random histories on the real pair, and a long run under churn and faults.

Each part keeps what it found in .soak/ and renews its section of docs/reliability.md; a part that was broken off goes on where it was
(`histories`) or begins anew. Ends with 1 if a contract was broken.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from typing import Annotated

import typer
import uvloop

from benchmarks import columns
from benchmarks.columns import Column
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.fault_bench import FaultBench, fault_bench
from tests.servers import fresh_namespace, running_sandbox
from tests.soak import churn, report
from tests.soak import histories as batches
from tests.soak.clocks import adjustable
from tests.soak.flood import Flood
from tests.soak.poison import Poison

_AT_A_TIME = 10
_OPTIONS = Options(
    accounting=True,
    nodes=8,
    node_cpus=128,
    node_gpus=0,
    lease_s=8,
)
"""A killed leader is followed soon, and a busy machine alone deposes nobody."""
_FORGETS_S = 60
"""MinJobAge. Of twenty pods a second six thousand would be in every list of jobs otherwise."""
_NOT_NEEDED = ("scheduler", "controller-manager")
"""No pod of the long run has an owner or another scheduler than ours, and they take a tenth of a core to watch them all."""
_GROWTH = 0.10
"""More is a breach."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    *,
    minutes: Annotated[float, typer.Option(help="Length of the long run; 0: none.")] = 30,
    rate: Annotated[float, typer.Option(help="Pods a second in it.")] = 20,
    histories: Annotated[int, typer.Option(help="Histories on the real pair; 0: none.")] = 200,
    worlds: Annotated[int, typer.Option(help="Histories of the pure model; 0: none.")] = 10_000,
    poison: Annotated[
        bool, typer.Option(help="With an odd object of each kind there all the while.")
    ] = False,
    hang_every: Annotated[
        float,
        typer.Option(help="Seconds after which a service of ours stands still in it; 0: never."),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    column: Annotated[
        str,
        typer.Option(
            help=f"{' | '.join(columns.COLUMNS)}: what is switched on, as for make bench."
        ),
    ] = columns.DEFAULTS,
    anew: Annotated[
        bool, typer.Option(help="Forget the histories that were lived before.")
    ] = False,
) -> None:
    """Find out whether any contract can be broken."""
    try:
        chosen = columns.column(column)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    breaches = 0
    if worlds:
        breaches += _model(worlds, seed)
    if histories:
        breaches += _histories(histories, seed, chosen, anew=anew, poison=poison)
    if minutes:
        breaches += _churn(minutes, rate, seed, chosen, poison=poison, hang_every_s=hang_every)
    typer.echo(f"{breaches} contracts broken; see {report.PAGE}")
    raise typer.Exit(1 if breaches else 0)


def _model(worlds: int, seed: int) -> int:
    typer.echo(f"{worlds} histories of the pure model")
    hunt = subprocess.run(
        (sys.executable, "-m", "tests.properties.hunt", "pod", str(worlds), str(seed)),
        capture_output=True,
        text=True,
        check=False,
    )
    breaches = [(hunt.stdout or hunt.stderr).strip()] if hunt.returncode else []
    report.keep("model", {**report.about(seed), "histories": worlds, "breaches": breaches})
    return len(breaches)


def _histories(wanted: int, seed: int, column: Column, *, anew: bool, poison: bool) -> int:
    about = report.about(seed)
    part = report.part("histories", column.name)
    found = report.kept(part)
    if anew or found is None or any(found.get(name) != about[name] for name in ("seed", "commit")):
        found = {**about, "done": 0, "lives": 0, "faults": 0, "breaches": []}
    if found["done"] >= wanted:
        return len(found["breaches"])
    with _bench(_with(_OPTIONS, column)) as (bench, namespace), namespace() as odd:
        poisoned = Poison(bench.sandbox, odd)
        if poison:
            poisoned.put()
        while found["done"] < wanted:
            with namespace() as name, namespace() as flooded:
                batch = uvloop.run(
                    batches.live(
                        bench,
                        name,
                        seed=1000 * seed + found["done"] // _AT_A_TIME,
                        histories=min(_AT_A_TIME, wanted - found["done"]),
                        flood=Flood(bench.sandbox, flooded),
                        sets_clocks=True,
                    )
                )
            found["done"] += batch.histories
            found["lives"] += len(batch.lives)
            found["faults"] += len(batch.story)
            found["breaches"] += batch.breaches
            found["at"] = report.now()
            typer.echo(f"{found['done']} histories, {len(found['breaches'])} contracts broken")
            if batch.breaches:
                typer.echo(str(batch))
            report.keep(part, found)
        if poison:
            found["poison"] = list(poisoned.kinds)
            found["breaches"] += poisoned.breaches()
            report.keep(part, found)
    return len(found["breaches"])


def _churn(
    minutes: float, rate: float, seed: int, column: Column, *, poison: bool, hang_every_s: float
) -> int:
    with (
        _bench(_with(_OPTIONS, column)) as (bench, namespace),
        namespace() as name,
        namespace() as odd,
        namespace() as flooded,
    ):
        _forget_sooner(bench.sandbox)
        poisoned = Poison(bench.sandbox, odd)
        if poison:
            typer.echo("odd objects are put into both worlds")
            poisoned.put()
        for part in _NOT_NEEDED:
            bench.sandbox.stop(part)
        result = uvloop.run(
            churn.live(
                bench,
                name,
                minutes=minutes,
                rate=rate,
                seed=seed,
                hang_every_s=hang_every_s,
                flood=Flood(bench.sandbox, flooded),
                sets_clocks=True,
                say=typer.echo,
            )
        )
        if poison:
            result.poison = list(poisoned.kinds)
            result.breaches += poisoned.breaches()
    for service, growth in result.growth.items():
        if growth > _GROWTH:
            result.breaches.append(f"{service} has grown by {growth:.1%}")
    part = "poison" if poison and column.name == columns.DEFAULTS else "churn"
    report.keep(report.part(part, column.name), {**report.about(seed), **asdict(result)})
    for breach in result.breaches:
        typer.echo(breach)
    return len(result.breaches)


def _with(options: Options, column: Column) -> Options:
    return replace(options, values=column.values, together=columns.is_together(column.values))


@contextmanager
def _bench(
    options: Options,
) -> Iterator[tuple[FaultBench, Callable[[], AbstractContextManager[str]]]]:
    """A sandbox whose services are surrounded by proxies, and how to make namespaces in it."""
    with adjustable(), running_sandbox(options) as sandbox, fault_bench(sandbox) as bench:

        def namespace() -> AbstractContextManager[str]:
            return fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"})

        yield bench, namespace


def _forget_sooner(sandbox: Sandbox) -> None:
    for conf in sandbox.slurm_conf.parent.glob("slurm*.conf"):
        conf.write_text(conf.read_text().replace("MinJobAge=300", f"MinJobAge={_FORGETS_S}"))
    sandbox.restart("slurmctld")


if __name__ == "__main__":
    app()
