"""`python -m benchmarks.oddities`: whether fifty odd things slow down everybody else.

Single pods are timed from CREATE to their node, and from the end of their containers until their
finalizer is gone: before the odd things come, and while they are there.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.table import Table

from benchmarks import odd_things, report
from benchmarks.load import Moment, Pods
from benchmarks.results import Spread
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names

TIMES = 1.2
"""Goal: medians grow by so much at most."""
_PLAYED = {"run-seconds": "1"}
_PATIENCE_S = 120.0
_REQUEST_TIMEOUT_S = 60.0
_STRETCHES = ((Moment.SENT, Moment.BOUND), (Moment.ENDED, Moment.RELEASED))
_SETTLES_S = 10.0
_SHOWN = 5


def main(*, pods: Annotated[int, typer.Option(help="Timed pods per stretch.", min=1)] = 60) -> None:
    """Measure on a sandbox of its own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    options = Options(hurried=False, accounting=True)
    try:
        with (
            Sandbox.up(folder, options) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            try:
                is_reached = runner.run(_measure(sandbox, pods))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(not is_reached)


async def _measure(sandbox: Sandbox, count: int) -> bool:
    console = report.console()
    body = {"metadata": {"name": "odd", "labels": {names.ENABLED_LABEL: "true"}}}
    await asyncio.to_thread(sandbox.admin.create, "/api/v1/namespaces", body)
    async with (
        KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
        ) as kube,
        Pods.watched(kube, "quiet", is_bridged=True) as quiet,
    ):
        await _timed(quiet, "warm", count)
        before = await _timed(quiet, "before", count)
        refused = await asyncio.to_thread(odd_things.put, sandbox, "odd")
        await asyncio.sleep(_SETTLES_S)
        after = await _timed(quiet, "after", count)
    there = odd_things.count() - len(refused)
    console.print(f"{there} odd things were there; {len(refused)} were refused:")
    for why in refused[:_SHOWN]:
        console.print(f"  {why}", markup=False)
    table = Table("", "before, p50 / longest s", "with them", "times", "goal")
    is_reached = True
    for (since, until), was, now in zip(_STRETCHES, before, after, strict=True):
        times = now.p50_s / was.p50_s
        is_reached &= times <= TIMES
        table.add_row(
            f"{since.value} → {until.value}",
            f"{was.p50_s:.3f} / {was.longest_s:.3f}",
            f"{now.p50_s:.3f} / {now.longest_s:.3f}",
            f"{times:.2f}",
            f"≤ {TIMES:g}" if times <= TIMES else f"≤ {TIMES:g}: missed",
        )
    console.print(table)
    return is_reached


async def _timed(pods: Pods, prefix: str, count: int) -> tuple[Spread, ...]:
    """Create pods one after the other; return how long each stretch took."""
    named: list[str] = []
    for number in range(count):
        named += await pods.create(f"{prefix}-{number}", 1, played=_PLAYED)
        await pods.reached(Moment.BOUND, named[-1:], _PATIENCE_S)
    await pods.reached(Moment.RELEASED, named, _PATIENCE_S)
    return tuple(pods.spread(since, until, named) for since, until in _STRETCHES)


if __name__ == "__main__":
    typer.run(main)
