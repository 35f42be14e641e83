"""`python -m benchmarks.claims`: what a resource claim adds to a pod's way to its node.

KWOK nodes that all have devices. Pods come one by one to an idle cluster, then many at once; with a claim each and
without, in turns, so that both ways meet the same machine. Then the same in a namespace that is not bridged, where
kube-scheduler alone gives devices: what no bridge can go below. Writes are counted by our services and by the API server.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.table import Table

from benchmarks import columns, report
from benchmarks.claims import figures
from benchmarks.claims.field import DEVICES, DRIVER, Field
from benchmarks.claims.figures import Flood, Way, Ways
from benchmarks.goals import Goal
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient

_NODE_CPUS = 8
_WARM_UP_PODS = 20
_REQUEST_TIMEOUT_S = 60.0
_LEAST_MS = 0.05
"""CPU time of a part per pod that is worth a row."""


def main(
    *,
    pods: Annotated[int, typer.Option(help="Pods at once.", min=1)] = 200,
    nodes: Annotated[
        int, typer.Option(help="Nodes of either kind, with four devices each.", min=1)
    ] = 100,
    rounds: Annotated[
        int, typer.Option(help="How often, each way; half as often the floor.", min=1)
    ] = 4,
    singles: Annotated[
        int, typer.Option(help="Pods one by one, each way; half as many for the floor.", min=2)
    ] = 20,
    column: Annotated[
        str,
        typer.Option(
            help="Of dev/benchmarks/columns.py: defaults or fastest; default: the sandbox's own values."
        ),
    ] = "",
) -> None:
    """Measure claims on a sandbox of their own; ends with 1 if a goal is missed."""
    if pods > DEVICES * nodes:
        raise typer.BadParameter(f"{nodes} nodes have {DEVICES * nodes} devices", param_hint="pods")
    console = report.console()
    console.print(f"load before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-claims-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    try:
        with (
            Sandbox.up(folder, _options(nodes, column)) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            try:
                ours, plain = runner.run(_measure(sandbox, nodes, pods, rounds, singles))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = list(figures.goals(ours))
    for table in (
        _times("through us", ours),
        _times("kube-scheduler alone", plain),
        _per_pod("API writes per pod", ours, plain, lambda way: way.served),
        _per_pod("our requests per pod", ours, plain, lambda way: way.requests),
        _per_pod("CPU ms per pod", ours, plain, lambda way: way.cpu_ms),
        _verdicts(found, ours, plain),
    ):
        console.print(table)
        console.print()
    console.print(f"load after: {os.getloadavg()[0]:.1f}")
    raise typer.Exit(0 if all(goal.is_reached for goal in found) else 1)


def _options(nodes: int, column: str) -> Options:
    values = columns.column(column).values if column else ()
    return Options(
        nodes=nodes,
        plain_nodes=nodes,
        node_cpus=_NODE_CPUS,
        node_gpus=0,
        hurried=False,
        together=columns.is_together(values),
        values=values,
        settings=(
            f"""controllers.device_profiles={{"device.driver == '{DRIVER}'": "gpu:example"}}""",
        ),
    )


async def _measure(
    sandbox: Sandbox, nodes: int, pods: int, rounds: int, singles: int
) -> tuple[Ways, Ways]:
    """Return what was found through us, and with kube-scheduler alone."""
    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
    ) as kube:
        field = Field(sandbox, kube)
        await field.offer_devices(nodes)
        ours = await _ways(field, pods, rounds, singles, is_bridged=True)
        plain = await _ways(
            field, pods, max(1, rounds // 2), max(1, singles // 2), is_bridged=False
        )
        return ours, plain


async def _ways(field: Field, pods: int, rounds: int, singles: int, *, is_bridged: bool) -> Ways:
    where = "bridged" if is_bridged else "plain"
    for claims in (False, True):
        name = f"warm-{where}-{claims}".lower()
        await field.flood(name, min(pods, _WARM_UP_PODS), claims=claims, is_bridged=is_bridged)
    found = await field.singles(singles, is_bridged=is_bridged)
    floods: dict[bool, list[Flood]] = {False: [], True: []}
    for number in range(rounds):
        # Whoever comes first in one round comes last in the next.
        for claims in (False, True) if number % 2 == 0 else (True, False):
            name = f"flood-{where}-{number}-{'claims' if claims else 'none'}"
            floods[claims].append(
                await field.flood(name, pods, claims=claims, is_bridged=is_bridged)
            )
    return Ways(
        without=Way(single_s=found[False], floods=floods[False]),
        claiming=Way(single_s=found[True], floods=floods[True]),
    )


def _times(title: str, ways: Ways) -> Table:
    without, claiming = ways.without, ways.claiming
    table = _table(f"{title}: seconds, medians", "without", "with a claim", "more", "times")
    for name, before, now in (
        ("single pods: CREATE to bound", without.single_p50_s, claiming.single_p50_s),
        ("single pods: longest", max(without.single_s), max(claiming.single_s)),
        ("at once: first CREATE to all bound", without.wall_s, claiming.wall_s),
        ("at once: CREATE to bound", without.p50_s, claiming.p50_s),
    ):
        cells = (before, now, now - before)
        table.add_row(name, *(f"{cell:.3f}" for cell in cells), f"{now / before:.2f}")
    return table


def _per_pod(
    title: str, ours: Ways, plain: Ways, figure: Callable[[Way], Mapping[str, float]]
) -> Table:
    table = _table(title, "without", "with a claim", "alone: without", "alone: with a claim")
    found = [figure(way) for way in (ours.without, ours.claiming, plain.without, plain.claiming)]
    for name in sorted({name for each in found for name in each}):
        if max(each.get(name, 0) for each in found) >= _LEAST_MS:
            table.add_row(name, *(f"{each[name]:.2f}" if name in each else "" for each in found))
    table.add_row("together", *(f"{sum(each.values()):.2f}" for each in found))
    return table


def _verdicts(found: Sequence[Goal], ours: Ways, plain: Ways) -> Table:
    table = _table("goals (2 cores)", "found", "goal", "")
    for goal in found:
        verdict = "[green]reached[/]" if goal.is_reached else "[red]missed[/]"
        limit = f"≤ {goal.limit:g} {goal.unit}".rstrip()
        table.add_row(goal.name, f"{goal.found:.2f} {goal.unit}".rstrip(), limit, verdict)
    table.add_row("floor: more for single pods", f"{plain.more_single_ms:.2f} ms", "", "")
    table.add_row("floor: times", f"{figures.floor_times(ours, plain):.2f}", "", "")
    return table


def _table(title: str, *names: str) -> Table:
    table = Table(box=None, header_style="bold", title_justify="left")
    table.add_column(title, style="cyan", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")
    return table


if __name__ == "__main__":
    typer.run(main)
