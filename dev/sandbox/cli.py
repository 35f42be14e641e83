"""`slurm-bridge sandbox …`.

A Kubernetes and a Slurm cluster of plain processes, with the bridge between them.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sandbox import assets, flags, machine, running
from sandbox.assembly import needed
from sandbox.assets import Absent, Asset, AssetName
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.nodecli import image, node
from sandbox.operator import images
from sandbox.options import OPERATED_NODES, WORKLOADS, Options
from sandbox.realnodes.network import MOST_NODES
from sandbox.words import State, plainly

app = typer.Typer(
    name="sandbox",
    help=__doc__,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(node)
app.add_typer(image)


PartName = Annotated[str, typer.Argument(help="Part, such as slurmctld; 'status' lists them.")]
Names = Annotated[list[AssetName] | None, typer.Argument(show_default="all")]
Signal = Annotated[str, typer.Option("--signal", help="Signal to end it with.")]
Wait = Annotated[bool, typer.Option(help="Wait until it answers.")]
Wipe = Annotated[bool, typer.Option("--wipe", help="Delete its data before starting it again.")]


@app.command()
@flags.taken_from(Options, bridge=None, workloads="")
def up(
    *,
    state: State,
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background.")] = False,
    **chosen: Any,
) -> None:
    """Start a sandbox; return when everything answers (--detach), else run until Ctrl-C."""
    options = _consistent(**chosen)
    with plainly():
        if options.real_nodes:
            _check_machine(state, options)
        if options.operator:
            images.ready()
        if detach:
            _fetch_missing(options)
            Sandbox.up(state, options, outlives_us=True, progress=_say)
        else:
            with assets.shown(sys.stderr) as report:
                programs = assets.resolve_all(needed(options), report=report)
            running.supervise(state, options, programs, _say, _welcome)


@app.command()
def check(
    *,
    state: State,
    real_nodes: Annotated[int, typer.Option(min=1, max=MOST_NODES, help="How many.")] = 2,
    real_network: Annotated[str, typer.Option(help="Their /16.")] = "",
) -> None:
    """Check whether this machine can run real nodes, and show what to do if not. Starts nothing."""
    options = Options(real_nodes=real_nodes, real_network=real_network)
    with plainly():
        findings = machine.findings(state, options)
    for finding in findings:
        typer.echo(f"{'FAULT' if finding.stops else 'note'}: {finding.what}\n  {finding.remedy}")
    if any(finding.stops for finding in findings):
        raise typer.Exit(1)
    typer.echo(f"this machine can run {real_nodes} real nodes")


@app.command()
def down(*, state: State) -> None:
    """End a sandbox and remove its folder."""
    with plainly():
        running.take_down(state.absolute())


@app.command()
def status(*, state: State) -> None:
    """Show what is running: process ids, ports, memory."""
    with plainly():
        parts = Sandbox(state).status().values()
    table = Table("part", "state", "pid", "port", "memory", box=None)
    for part in parts:
        pid = str(part.pid or "")
        table.add_row(part.name, part.state, pid, str(part.port), f"{part.memory_mib:.0f} MiB")
    table.add_row("all", "", "", "", f"{sum(part.memory_mib for part in parts):.0f} MiB")
    Console().print(table)
    if any(part.state != "up" for part in parts):
        raise typer.Exit(1)


@app.command()
def restart(
    part: PartName,
    *,
    state: State,
    signal: Signal = "TERM",
    wipe: Wipe = False,
    wait: Wait = True,
) -> None:
    """End a part and start it again."""
    with plainly():
        Sandbox(state).restart(part, signal=signal, wipe=wipe, wait=wait)


@app.command()
def stop(part: PartName, *, state: State, signal: Signal = "TERM") -> None:
    """End a part."""
    with plainly():
        Sandbox(state).stop(part, signal=signal)


@app.command()
def start(part: PartName, *, state: State, wait: Wait = True) -> None:
    """Start a part that is down."""
    with plainly():
        Sandbox(state).start(part, wait=wait)


@app.command()
def pause(part: PartName, *, state: State) -> None:
    """Suspend a part: SIGSTOP."""
    with plainly():
        Sandbox(state).pause(part)


@app.command()
def resume(part: PartName, *, state: State) -> None:
    """Continue a paused part: SIGCONT."""
    with plainly():
        Sandbox(state).resume(part)


@app.command()
def kubeconfig(
    *,
    state: State,
    user: Annotated[str, typer.Option(help="User name.")],
    group: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
) -> None:
    """Create credentials for an ordinary user with the rights that RBAC grants; print the file's path."""
    with plainly():
        typer.echo(Sandbox(state).user_kubeconfig(user, *(group or ())))


@app.command()
def fetch(names: Names = None) -> None:
    """Fill the cache so that later starts need no network.

    Builds Kubernetes and the workload controllers; CoreDNS only by name.
    """
    with plainly(), assets.shown(sys.stderr) as report:
        assets.fetch(names or assets.USUAL, report=report)


@app.command()
def where() -> None:
    """Show which programs would be used, and why."""
    programs = assets.where(AssetName)
    for name, asset in programs.items():
        typer.echo(f"{name}: {asset.origin if isinstance(asset, Asset) else asset.reason}")
    if any(isinstance(programs[name], Absent) for name in assets.USUAL):
        raise typer.Exit(1)


@app.command()
def clean(names: Names = None) -> None:
    """Empty the cache."""
    with plainly(), assets.shown(sys.stderr) as report:
        for removed in assets.clean(names or list(AssetName), report=report):
            typer.echo(f"removed {removed.path}, {removed.bytes >> 20} MiB")


def _consistent(*, bridge: bool | None, workloads: str, **chosen: Any) -> Options:
    """Return the options as chosen, without what needs a part that was not."""
    wished = Options(**chosen, workloads=_workloads(workloads))
    kubernetes, slurm = wished.kubernetes, wished.slurm
    operator = wished.operator and kubernetes
    is_bridged = (not operator if bridge is None else bridge) and kubernetes and slurm
    real_nodes = wished.real_nodes or (OPERATED_NODES if operator else 0)
    if wished.dns and not real_nodes:
        raise typer.BadParameter(
            "there are no pods that could look up names: add --real-nodes 2", param_hint="--dns"
        )
    return replace(
        wished,
        slurm=slurm and (wished.accounting or is_bridged or not operator),
        accounting=wished.accounting and slurm,
        bridge=is_bridged,
        operator=operator,
        hybrid=wished.hybrid and slurm,
        escrow=wished.escrow and is_bridged,
        compute=wished.compute if slurm else 0,
        real_nodes=real_nodes if kubernetes else 0,
        dns=(wished.dns or operator) and kubernetes,
        nodes=0 if operator else wished.nodes,  # a simulated node cannot run a daemon
        plain_nodes=0 if operator else wished.plain_nodes,
        workloads=wished.workloads if kubernetes else (),
    )


def _check_machine(state: Path, options: Options) -> None:
    faults = [finding for finding in machine.findings(state, options) if finding.stops]
    if faults:
        raise SandboxError(
            "no real nodes on this machine:"
            + "".join(f"\n  {fault.what}\n    {fault.remedy}" for fault in faults)
        )


def _workloads(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, text.split(","))))
    if unknown := [name for name in names if name not in WORKLOADS]:
        raise typer.BadParameter(
            f"no controller {', '.join(unknown)}: expected {', '.join(WORKLOADS)}",
            param_hint="--workloads",
        )
    return names


def _fetch_missing(options: Options) -> None:
    """Fetch or build here, where the terminal shows progress: the supervisor writes to its log."""
    programs = assets.where(needed(options))
    missing = [name for name, asset in programs.items() if isinstance(asset, Absent)]
    if missing:
        with assets.shown(sys.stderr) as report:
            assets.resolve_all(missing, report=report)


def _say(text: str) -> None:
    if text:
        typer.echo(text)


def _welcome(instance: Instance) -> None:
    _say(f"the sandbox is up; for kubectl, squeue, sinfo: . {instance.env_file}")
