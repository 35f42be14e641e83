"""The commands of `slurmc`."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from slurmclient import errors
from slurmclient.calls.speaker import Outcome
from slurmclient.cli.kinds import TABLES, Kind, Live
from slurmclient.cli.rendering import Output, as_json, cell, field, out, say, show
from slurmclient.client import Client
from slurmclient.errors import Rejected, SlurmError
from slurmclient.transport.tls import UnusableTls
from slurmclient.transport.tokens import TokenFile
from slurmclient.watching.events import Added, Deleted, Event, Modified, Restarted

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Show and change Slurm's objects through slurmrestd.",
    epilog="Environment: SLURMRESTD_URL, the address of slurmrestd; SLURM_JWT, the token, or"
    " SLURM_JWT_FILE, the path of its file; SLURMRESTD_CA, the path of a CA to trust.",
)

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="The format.")]
Filters = Annotated[
    list[str] | None, typer.Argument(metavar="FILTER=VALUE", help="Slurm's query parameters.")
]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE", help="Slurm's fields, such as partition=gpu; a value may be JSON."
    ),
]
Name = Annotated[str, typer.Argument(help="The object's name, or the job's id.")]


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
        str,
        typer.Option(
            envvar="SLURMRESTD_URL", help="slurmrestd's address; separate several with commas."
        ),
    ] = "",
    token_file: Annotated[
        str, typer.Option(help="The path of a file with the token; overrides the environment.")
    ] = "",
    api: Annotated[str, typer.Option(help="The version of the API, such as v0.0.44.")] = "auto",
    as_user: Annotated[
        str, typer.Option(help="Act as this user; needs a token of root or SlurmUser.")
    ] = "",
) -> None:
    """Store the options that all commands share."""
    context.obj = _Access(url=url, token_file=token_file, api=api, user=as_user)


@app.command("list")
def list_(
    context: typer.Context,
    kind: Kind,
    filters: Filters = None,
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """List objects of one kind, such as `jobs`, or `history users=alice`."""

    async def list_objects(slurm: Client) -> None:
        spec = TABLES[kind]
        query = dict(pair(text) for text in filters or ())
        objects = await spec.collection(slurm).list(**query)
        show(objects, spec.columns, output)
        for odd in getattr(objects, "odd", ()):
            say(f"cannot read {odd.field or 'anything'} of object {odd.index}: {odd.why}")

    _with_slurm(context, list_objects)


@app.command()
def get(
    context: typer.Context, kind: Kind, name: Name, *, output: OutputOption = Output.YAML
) -> None:
    """Show all fields of one object."""

    async def show_object(slurm: Client) -> None:
        spec = TABLES[kind]
        item = await spec.collection(slurm).get(name)
        show(item, spec.columns, output)

    _with_slurm(context, show_object)


@app.command()
def watch(
    context: typer.Context,
    kind: Live,
    *,
    interval: Annotated[float, typer.Option(min=0.1, help="The seconds between two looks.")] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="Events to print; 0 for no limit.")] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print all objects and then every change until Ctrl-C; JSON has one event per line."""

    async def print_events(slurm: Client) -> None:
        spec = TABLES[Kind(kind.value)]
        printed = 0
        async for event in spec.collection(slurm).watch(interval_s=interval):
            out(_event(event, spec.columns, output))
            printed += 1
            if printed == count:
                return

    _with_slurm(context, print_events)


@app.command()
def submit(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="The batch script; - for the standard input.")],
    fields: Fields = None,
    *,
    key: Annotated[str, typer.Option(help="Run at most one job with this key.")] = "",
) -> None:
    """Submit a batch script and print the job's id."""

    async def submit_job(slurm: Client) -> None:
        text = sys.stdin.read() if str(script) == "-" else script.read_text()
        submitted = await slurm.jobs.submit(text, key=key, **parse(fields))
        out(str(submitted.job_id))
        for warning in submitted.warnings:
            say(warning.description)

    _with_slurm(context, submit_job)


@app.command()
def cancel(
    context: typer.Context,
    job_ids: Annotated[
        list[str], typer.Argument(metavar="JOB_ID", help="Jobs' ids; 7_3 is a task of array 7.")
    ],
    *,
    signal: Annotated[str, typer.Option(help="Only send this signal, such as TERM.")] = "",
) -> None:
    """Cancel jobs; if one cannot be cancelled, continue with the others."""

    async def cancel_jobs(slurm: Client) -> None:
        is_refused = False
        for job_id in job_ids:
            try:
                await slurm.jobs.cancel(job_id, signal=signal)
            except Rejected as error:
                _complain(error)
                is_refused = True
        if is_refused:
            raise typer.Exit(1)

    _with_slurm(context, cancel_jobs)


@app.command()
def update(context: typer.Context, kind: Live, name: Name, fields: Fields = None) -> None:
    """Change one object, such as `jobs 7 time_limit=90` or `nodes c1 state=DRAIN reason=fan`."""

    async def update_object(slurm: Client) -> None:
        changed = parse(fields)
        if not changed:
            raise typer.BadParameter("expected at least one change as FIELD=VALUE")
        changes: dict[Live, Callable[..., Awaitable[Outcome]]] = {
            Live.JOBS: slurm.jobs.update,
            Live.NODES: slurm.nodes.update,
            Live.PARTITIONS: slurm.partitions.save,
            Live.RESERVATIONS: slurm.reservations.save,
        }
        outcome = await changes[kind](name, **changed)
        for warning in outcome.warnings:
            say(warning.description)

    _with_slurm(context, update_object)


def run() -> None:
    """Run the command line."""
    app(prog_name="slurmc")


def _with_slurm(context: typer.Context, do: Callable[[Client], Awaitable[None]]) -> None:
    """Do something with a client; exit with a message and advice if it fails."""
    chosen: _Access = context.obj

    async def open_and_do() -> None:
        token = TokenFile(chosen.token_file) if chosen.token_file else None
        async with Client.from_env(url=chosen.url, token=token, api=chosen.api) as slurm:
            await do(slurm.as_user(chosen.user) if chosen.user else slurm)

    try:
        asyncio.run(open_and_do())
    except SlurmError as error:
        _complain(error)
        raise typer.Exit(1) from None
    except (TypeError, ValueError, OSError, UnusableTls) as error:
        say(str(error))
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _complain(error: SlurmError) -> None:
    say("\n".join(filter(None, [str(error), advice(error)])))


def _event(event: Event[Any], columns: tuple[str, ...], output: Output) -> str:
    word = type(event).__name__.lower()
    shown_object = None
    match event:
        case Added(item) | Modified(_, item) | Deleted(item):
            shown_object = item
        case Restarted():
            pass
    if output is not Output.TABLE:
        return msgspec.json.encode(
            msgspec.json.decode(as_json({"event": word, "object": shown_object}))
        ).decode()
    names = columns if shown_object is not None else ()
    row = (f"{name.rpartition('.')[2]}={cell(field(shown_object, name))}" for name in names)
    return f"{word:9} {' '.join(row)}".rstrip()


_ADVICE: Final[Mapping[type[SlurmError], str]] = {
    errors.Unauthorized: "Get a new token ('scontrol token') and put it into SLURM_JWT or the file of"
    " --token-file.",
    errors.Forbidden: "Use the token of a user who has permission, or --as-user with root's token.",
    errors.NotFound: "See what exists with 'slurmc list'. slurmctld purges a job MinJobAge seconds"
    " after its end: 'slurmc list history' shows older ones.",
    errors.Conflict: "See its state with 'slurmc get'.",
    errors.LostReply: "It may have been carried out: check before you repeat it.",
    errors.Unavailable: "Check the address in SLURMRESTD_URL (--url), and that slurmrestd and"
    " slurmctld are running.",
    errors.TooOld: "Use a newer Slurm, or another --api.",
    errors.Malformed: "Check that the address is slurmrestd's: another program seems to answer.",
}
"""By class of error; subclasses come before their bases."""


def advice(error: SlurmError) -> str:
    """Return what to do about an error; "" if its message is enough."""
    return next((words for kind, words in _ADVICE.items() if isinstance(error, kind)), "")


_LISTS: Final = frozenset({"state", "flags", "users", "accounts"})
"""Fields that Slurm wants as lists; their values are split at commas."""


def parse(texts: Iterable[str] | None) -> dict[str, Any]:
    """Return fields by name, decoded if they are JSON; raise ValueError if one is not FIELD=VALUE."""
    return {name: _value(name, text) for name, text in map(pair, texts or ())}


def pair(text: str) -> tuple[str, str]:
    """Split FIELD=VALUE; raise ValueError for any other form."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        raise ValueError(f"expected FIELD=VALUE, got {text!r}")
    return name, value


def _value(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.split(",") if name in _LISTS else text
