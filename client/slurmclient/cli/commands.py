"""The commands of `slurmc`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from slurmclient.calls.speaker import Outcome
from slurmclient.cli.advice import ADVICE
from slurmclient.cli.fields import pair, parsed
from slurmclient.cli.kinds import SHOWN, Kind
from slurmclient.cli.rendering import Output, as_json, cell, field, show
from slurmclient.client import Client
from slurmclient.errors import SlurmError
from slurmclient.transport.tokens import TokenFile
from slurmclient.watching.events import Added, Deleted, Event, Modified, Restarted

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look at Slurm and change it, through slurmrestd.",
    epilog="SLURMRESTD_URL says where slurmrestd is; SLURM_JWT, or the file that SLURM_JWT_FILE names, holds the token.",
)


class Watchable(StrEnum):
    """What can be watched."""

    JOBS = "jobs"
    NODES = "nodes"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"


class Changeable(StrEnum):
    """What `update` changes."""

    JOBS = "jobs"
    NODES = "nodes"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]


Fields = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FIELD=VALUE]...", help="Slurm's fields; a value may be JSON."),
]


class _Access(msgspec.Struct, frozen=True):
    url: str
    token_file: str
    api: str
    user: str


@app.callback()
def access(
    context: typer.Context,
    *,
    url: Annotated[
        str, typer.Option(envvar="SLURMRESTD_URL", help="Of slurmrestd; several with commas.")
    ] = "",
    token_file: Annotated[str, typer.Option(envvar="SLURM_JWT_FILE", help="Holds the token.")] = "",
    api: Annotated[str, typer.Option(help="A version, as v0.0.44.")] = "auto",
    as_user: Annotated[str, typer.Option(help="Act as this user; needs root's token.")] = "",
) -> None:
    """Take what all commands need."""
    context.obj = _Access(url=url, token_file=token_file, api=api, user=as_user)


@app.command("list")
def list_(
    context: typer.Context,
    kind: Kind,
    filters: Fields = None,
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, nodes, accounts, …; filters are Slurm's, as `users=alice` of the history."""

    async def listed(slurm: Client) -> None:
        shown = SHOWN[kind]
        query = dict(pair(one) for one in filters or ())
        found = await shown.collection(slurm).list(**query)
        show(Console(), found, shown.columns, output)
        for odd in getattr(found, "odd", ()):
            print(
                f"slurmc: object {odd.index}, {odd.field or 'as a whole'}: {odd.why}",
                file=sys.stderr,
            )

    _with_slurm(context, listed)


@app.command()
def get(
    context: typer.Context, kind: Kind, name: str, *, output: OutputOption = Output.YAML
) -> None:
    """Show all there is to know about one: its name, or a job's id."""

    async def got(slurm: Client) -> None:
        shown = SHOWN[kind]
        found = await shown.collection(slurm).get(name)
        show(Console(), found, shown.columns, output)

    _with_slurm(context, got)


@app.command()
def watch(
    context: typer.Context,
    kind: Watchable,
    *,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    count: Annotated[int, typer.Option(help="End after so many events; 0: never.")] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what there is, and then every change, until Ctrl-C; as JSON, one event a line."""

    async def watched(slurm: Client) -> None:
        shown = SHOWN[Kind(kind.value)]
        told = 0
        async for event in shown.collection(slurm).watch(interval_s=interval):
            print(_event(event, shown.columns, output), flush=True)
            told += 1
            if told == count:
                return

    _with_slurm(context, watched)


@app.command()
def submit(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="The batch script; - reads it from the input.")],
    fields: Fields = None,
    *,
    key: Annotated[str, typer.Option(help="Never submit a job with this key twice.")] = "",
) -> None:
    """Submit a batch script; prints the job's id. Fields are Slurm's, as `partition=gpu time_limit=90`."""

    async def submitted(slurm: Client) -> None:
        text = sys.stdin.read() if str(script) == "-" else script.read_text()
        done = await slurm.jobs.submit(text, key=key, **parsed(fields))
        print(done.job_id)
        for warning in done.warnings:
            print(f"slurmc: {warning.description}", file=sys.stderr)

    _with_slurm(context, submitted)


@app.command()
def cancel(
    context: typer.Context,
    job_ids: Annotated[list[str], typer.Argument(metavar="JOB_ID...")],
    *,
    signal: Annotated[str, typer.Option(help="Only send a signal, as TERM.")] = "",
) -> None:
    """Cancel jobs."""

    async def cancelled(slurm: Client) -> None:
        for job_id in job_ids:
            await slurm.jobs.cancel(job_id, signal=signal)

    _with_slurm(context, cancelled)


@app.command()
def update(context: typer.Context, kind: Changeable, name: str, fields: Fields = None) -> None:
    """Change one: `slurmc update jobs 7 time_limit=90`, `slurmc update nodes c1 state=DRAIN reason=fan`."""

    async def updated(slurm: Client) -> None:
        given = parsed(fields)
        if not given:
            raise typer.BadParameter("say what to change, as FIELD=VALUE")
        changes: dict[Changeable, Callable[..., Awaitable[Outcome]]] = {
            Changeable.JOBS: slurm.jobs.update,
            Changeable.NODES: slurm.nodes.update,
            Changeable.PARTITIONS: slurm.partitions.save,
            Changeable.RESERVATIONS: slurm.reservations.save,
        }
        outcome = await changes[kind](name, **given)
        for warning in outcome.warnings:
            print(f"slurmc: {warning.description}", file=sys.stderr)

    _with_slurm(context, updated)


def run() -> None:
    """Run the command that was typed."""
    app(prog_name="slurmc")


def _with_slurm(context: typer.Context, do: Callable[[Client], Awaitable[None]]) -> None:
    """Open a client, and say what to do where something goes wrong."""
    chosen: _Access = context.obj

    async def opened() -> None:
        async with _client(chosen) as slurm:
            await do(slurm.as_user(chosen.user) if chosen.user else slurm)

    try:
        asyncio.run(opened())
    except SlurmError as error:
        advice = [words for kind, words in ADVICE.items() if issubclass(type(error), kind)][:1]
        print(f"slurmc: {error}", *advice, sep="\n", file=sys.stderr)
        raise typer.Exit(1) from None
    except (TypeError, ValueError, OSError) as error:
        print(f"slurmc: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _client(chosen: _Access) -> Client:
    token = TokenFile(chosen.token_file) if chosen.token_file else None
    return Client.from_env(url=chosen.url, token=token, api=chosen.api)


def _event(event: Event[Any], columns: tuple[str, ...], output: Output) -> str:
    word = type(event).__name__.lower()
    one = None
    match event:
        case Added(found) | Modified(_, found) | Deleted(found):
            one = found
        case Restarted():
            pass
    if output is not Output.TABLE:
        return msgspec.json.encode(
            msgspec.json.decode(as_json({"event": word, "object": one}))
        ).decode()
    names = columns if one is not None else ()
    row = (f"{name.rpartition('.')[2]}={cell(field(one, name))}" for name in names)
    return f"{word:9} {' '.join(row)}".rstrip()
