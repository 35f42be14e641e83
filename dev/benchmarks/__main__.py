"""`python -m benchmarks`: measure everything in one run, on one sandbox."""

import asyncio
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console

from benchmarks import apiserver, columns, micro, profiling, report, results, scenarios
from benchmarks.meter import Meter
from benchmarks.results import Machine, Run, Shape
from benchmarks.scenarios import Stage
from sandbox import flags
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError
from slurmruntime.process.clock import SystemClock

_REQUEST_TIMEOUT_S = 60.0

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What to measure; each field is an option of the command."""

    pods: Annotated[int, typer.Option(help="Pods per stretch.", min=1)] = 200
    nodes: Annotated[int, typer.Option(help="Nodes of each kind.", min=1)] = 100
    waiting_s: Annotated[float, typer.Option(help="How long to watch waiting pods.", min=1)] = 40
    column: Annotated[
        str,
        typer.Option(
            help=f"{' | '.join(columns.COLUMNS)}: what is switched on (docs/performance.md)."
        ),
    ] = columns.DEFAULTS
    switch: Annotated[
        tuple[str, ...],
        typer.Option(help="One switch of the fastest column on top of the defaults; repeatable."),
    ] = ()
    idle_minutes: Annotated[
        float, typer.Option(help="Rest so long, then time the first pod; 0: do not.", min=0)
    ] = 0
    short: Annotated[
        bool,
        typer.Option("--short", help="Leave out what does not depend on --pods: half the time."),
    ] = False
    output: Annotated[
        Path | None, typer.Option(help="Write the figures to this file, as JSON.")
    ] = None
    compare: Annotated[
        Path | None, typer.Option(help="Compare with the JSON of an earlier run.", exists=True)
    ] = None
    across_columns: Annotated[
        bool, typer.Option(help="Compare even if another column was measured then.")
    ] = False
    profile: Annotated[
        Path | None,
        typer.Option(help="Profile our services, which slows them; write to this folder."),
    ] = None


@app.command()
@flags.taken_from(Choices)
def main(**chosen: Any) -> None:
    """Measure the bridge against plain kube-scheduler, on real systems on this machine."""
    choices = Choices(**chosen)
    console = report.console()
    try:
        column = columns.column(choices.column, choices.switch)
        shape = Shape(
            pods=choices.pods,
            nodes=choices.nodes,
            waiting_s=choices.waiting_s,
            is_profiled=choices.profile is not None,
            column=column.name,
            values=column.values,
        )
        before = _earlier(choices, shape)
        run = _measure(choices, shape, console)
    except (SandboxError, KubeError, ValueError) as error:
        console.print(f"error: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    report.show(console, run, before, across_columns=choices.across_columns)
    if choices.profile:
        from benchmarks import profiles  # noqa: PLC0415  # measuring needs no pyinstrument

        for saved in sorted(choices.profile.glob("*.pyisession")):
            console.print(profiles.table(saved))
            console.print()
    if choices.output:
        choices.output.write_bytes(results.write(run))


def _earlier(choices: Choices, shape: Shape) -> Run | None:
    if choices.compare is None:
        return None
    run = results.read(choices.compare.read_bytes())
    if not run.shape.is_like(shape, across_columns=choices.across_columns):
        raise ValueError(
            f"{choices.compare} holds a run of {run.shape}, expected one of {shape};"
            " if only the columns differ, --across-columns compares them"
        )
    return run


def _measure(choices: Choices, shape: Shape, console: Console) -> Run:
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter

    def say(text: str) -> None:
        if text:
            console.print(text, markup=False)

    try:
        with profiling.hooked() if choices.profile else nullcontext():
            sandbox = Sandbox.up(folder, scenarios.options(shape), progress=say)
        with sandbox, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                return runner.run(_stretches(sandbox, choices, shape, say))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _stretches(
    sandbox: Sandbox, choices: Choices, shape: Shape, say: Callable[[str], None]
) -> Run:
    """Measure everything, one stretch after another."""
    idle_minutes = choices.idle_minutes
    machine, began_at = _machine(), SystemClock().now().isoformat(timespec="seconds")

    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
    ) as kube:
        stage = Stage(
            sandbox=sandbox,
            meter=Meter(sandbox),
            kube=kube,
            shape=shape,
            profile=choices.profile,
        )
        say(f"{shape.nodes} nodes are being registered")
        await scenarios.nodes_registered(stage)
        say("warming up")
        await scenarios.warm_up(stage)
        say(f"{shape.pods} pods through kube-scheduler alone")
        phases = await scenarios.plain(stage)
        say(f"{shape.pods} pods through the bridge, ending all at once")
        lives, sample = await scenarios.life(stage)
        alone, single, idle = {}, None, None
        if not choices.short:
            say("the webhook, filter and the caches alone")
            alone = {
                micro.WEBHOOK: await micro.webhook(sandbox),
                micro.FILTER: await micro.filter_nodes(sandbox, sample),
                micro.CACHES: micro.caches(sample),
            }
            say("pods one by one")
            single = await apiserver.singles(stage)
        if idle_minutes:
            say(f"a pod after {idle_minutes:g} minutes without any")
            idle = await apiserver.after_rest(stage, idle_minutes)
        say(f"a full cluster, and {shape.pods} pods that wait for {shape.waiting_s:g} s")
        queued = await scenarios.queue(stage)
        per_pod, strangers = {}, {}
        if not choices.short:
            say("what the API server does for pods, ours and others")
            per_pod, strangers = await apiserver.lives(stage), await apiserver.strangers(stage)
        return Run(
            commit=_commit(),
            began_at=began_at,
            machine=machine,
            shape=shape,
            phases={**phases, **lives, **queued},
            micro=alone,
            lives=per_pod,
            strangers=strangers,
            single=single,
            idle=idle,
        )


def _machine() -> Machine:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in processors if line.startswith("model name")]
    memory_b = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=names[0] if names else platform.machine(),
        memory_gib=round(memory_b / 2**30, 1),
        python=platform.python_version(),
        load_before=round(os.getloadavg()[0], 2),
    )


def _commit() -> str:
    """Return the checkout's commit, "" without git."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = (git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    app()
