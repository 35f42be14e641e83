"""The command `submit --dry-run`: the job that Slurm would get for a batch script, or everything that is wrong with it."""

import enum
import json
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
import yaml

from bridge.domain.faults import Fault

_REFUSED = 2
"""Exit code."""


class DocumentForm(enum.StrEnum):
    """The values of `-o` for a single document."""

    YAML = "yaml"
    JSON = "json"


def command(
    script: Annotated[str, typer.Argument(help="Batch script, or - for standard input.")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the job and submit nothing.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Option of sbatch that is stronger than the script's, such as cpusPerTask=4 or hold=true.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    form: Annotated[
        DocumentForm, typer.Option("--output", "-o", help="Output format.")
    ] = DocumentForm.YAML,
) -> None:
    """Show the Slurm job that a batch script asks for, with its #SBATCH lines read as sbatch reads them."""
    if not dry_run:
        typer.echo("SlurmJob objects are not served yet: give --dry-run, or use sbatch", err=True)
        raise typer.Exit(_REFUSED)
    from jobs.request.build import build  # noqa: PLC0415  # 60 ms that other commands do not need
    from jobs.request.origin import ScriptOrigin  # noqa: PLC0415  # likewise
    from jobs.script import body  # noqa: PLC0415  # likewise

    name = "sbatch" if script == "-" else Path(script).name
    text, undecodable = body.decoded(_content(script, body.LARGEST_SCRIPT_BYTES + 1))
    built = build(
        text,
        name=name,
        origin=ScriptOrigin(
            directory=str(Path.cwd()),
            now=datetime.now().astimezone(),  # noqa: TID251  # a person runs a command now
            umask=None,
            nice=None,
        ),
        fields=dict(_field(each) for each in options or ()),
    )
    _tell(name, "warning: ", built.warnings)
    faults = (*undecodable, *built.faults)
    if faults or built.request is None:
        _tell(name, "", faults)
        raise typer.Exit(_REFUSED)
    job = {"job": built.request.body}
    if form is DocumentForm.YAML:
        typer.echo(yaml.safe_dump(job, sort_keys=False, allow_unicode=True), nl=False)
    else:
        typer.echo(json.dumps(job, indent=2, ensure_ascii=False))


def _content(script: str, most: int) -> bytes:
    if script == "-":
        return sys.stdin.buffer.read(most)
    try:
        with Path(script).open("rb") as file:
            return file.read(most)
    except OSError as error:
        typer.echo(f"{script}: {error.strerror}", err=True)
        raise typer.Exit(1) from None


def _field(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    words: dict[str, object] = {"true": True, "false": False}
    return name, words.get(value, value) if equals else True


def _tell(name: str, kind: str, faults: Iterable[Fault]) -> None:
    for fault in faults:
        typer.echo(f"{name}: {kind}{fault.text}", err=True)
