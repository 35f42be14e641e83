"""`kubectl slurm submit`: create a SlurmJob from a batch script, or show the job that Slurm would get for it."""

import enum
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from slurmcli import output
from slurmcli.access import Access, run
from slurmcli.line.options import Namespace, Way
from slurmcli.output import Format
from slurmruntime.kube import paths
from slurmruntime.kube.errors import Forbidden, NotFound, Rejected
from slurmruntime.kube.objects import Objects
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault

if TYPE_CHECKING:
    from slurmjobs.request.build import BatchRequest

_REFUSED = 2
"""Exit code: the request is wrong, not the cluster."""
_LONGEST_PREFIX = 50
"""Characters of a name before those that the API server adds."""

Field = tuple[str, str | bool]


class DocumentForm(enum.StrEnum):
    """The values of `-o` for a single document."""

    YAML = "yaml"
    JSON = "json"


def command(
    script: Annotated[str, typer.Argument(help="Batch script, or - for standard input.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments of the script, after --.", metavar="[-- ARGUMENTS]"),
    ] = None,
    *,
    way: Way,
    name: Annotated[
        str,
        typer.Option(
            help="Name of the SlurmJob.", show_default="the script's and a suffix", metavar="NAME"
        ),
    ] = "",
    namespace: Namespace = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the job for Slurm and create nothing.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="sbatch option that overrides the script's, such as cpusPerTask=4 or hold=true.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            help="Environment variable of the script; without a value, it is copied from your shell.",
            metavar="NAME[=VALUE]",
        ),
    ] = None,
    form: Annotated[
        DocumentForm | None,
        typer.Option("--output", "-o", help="Print the whole document.", show_default=False),
    ] = None,
) -> None:
    """Create a SlurmJob from a batch script. #SBATCH lines mean the same as for sbatch."""
    called = "sbatch" if script == "-" else Path(script).name
    fields = dict(_field(option) for option in options or ())
    variables = dict(_variable(text) for text in environment or ())
    text, request = _read(script, called, fields, variables)
    if dry_run:
        output.document({"job": request.body}, Format((form or DocumentForm.YAML).value))
        return
    stored = run(
        way,
        lambda access: _create(
            access,
            namespace or way.namespace,
            _object(
                text,
                {"name": name} if name else {"generateName": prefix(called)},
                fields=fields,
                variables=variables,
                arguments=arguments or (),
            ),
        ),
    )
    if form:
        output.document(stored, Format(form.value))
    else:
        output.out(f"slurmjob.slurm-bridge.dev/{stored['metadata']['name']} created")


def prefix(called: str) -> str:
    """Return the name prefix (`generateName`) for a script's file name."""
    stem = called.removeprefix(".").partition(".")[0].lower()
    text = re.sub(r"[^a-z0-9]+", "-", stem)[:_LONGEST_PREFIX].strip("-")
    return f"{text or 'job'}-"


def _read(
    script: str, called: str, fields: Mapping[str, str | bool], variables: Mapping[str, str]
) -> tuple[str, "BatchRequest"]:
    """Return the script and its job; print the faults and exit if there are any."""
    from slurmjobs.request.build import build  # noqa: PLC0415  # 60 ms that other commands do not need
    from slurmjobs.request.origin import ScriptOrigin  # noqa: PLC0415  # likewise
    from slurmjobs.script import body  # noqa: PLC0415  # likewise

    text, undecodable = body.decode(_content(script, body.LARGEST_SCRIPT_BYTES + 1))
    built = build(
        text,
        name=called,
        origin=ScriptOrigin(
            directory=str(Path.cwd()),
            now=datetime.now().astimezone(),  # noqa: TID251  # a person runs a command now
            environment=variables,
            umask=None,
            nice=None,
        ),
        fields=fields,
    )
    _report(called, "warning: ", built.warnings)
    faults = (*undecodable, *built.faults)
    if faults or built.request is None:
        _report(called, "", faults)
        raise typer.Exit(_REFUSED)
    return text, built.request


def _object(
    script: str,
    metadata: Mapping[str, str],
    *,
    fields: Mapping[str, str | bool],
    variables: Mapping[str, str],
    arguments: Sequence[str],
) -> JsonObject:
    from slurmjobs.objects import slurmjob  # noqa: PLC0415  # as above
    from slurmjobs.script.options import as_stored  # noqa: PLC0415  # likewise

    spec = {
        "script": script,
        "args": list(arguments),
        "options": {name: as_stored(name, value) for name, value in fields.items()},
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    return {
        "apiVersion": slurmjob.API_VERSION,
        "kind": slurmjob.KIND,
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value},
    }


async def _create(access: Access, namespace: str, body: JsonObject) -> JsonDict:
    from slurmjobs.objects import slurmjob  # noqa: PLC0415  # as above

    path = paths.collection(slurmjob.API_VERSION, slurmjob.PLURAL, namespace)
    try:
        answer = await access.kube.request(
            "POST", path, body=body, params={"fieldValidation": "Strict"}
        )
    except NotFound:
        if await Objects(access.kube).serves(slurmjob.API_VERSION, slurmjob.KIND):
            raise
        output.say(
            "error: SlurmJobs are not enabled in this cluster: ask the administrator to set"
            " config.slurm_jobs.enabled in slurm-bridge's chart"
        )
        raise typer.Exit(1) from None
    except (Rejected, Forbidden) as error:
        output.say(f"refused: {error.message}")
        raise typer.Exit(_REFUSED) from None
    stored: JsonDict = msgspec.json.decode(answer)
    return stored


def _content(script: str, most: int) -> bytes:
    if script == "-":
        return sys.stdin.buffer.read(most)
    try:
        with Path(script).open("rb") as file:
            return file.read(most)
    except OSError as error:
        output.say(f"{script}: {error.strerror}")
        raise typer.Exit(1) from None


def _field(text: str) -> Field:
    name, equals, value = text.partition("=")
    words: dict[str, str | bool] = {"true": True, "false": False}
    return name, words.get(value, value) if equals else True


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals and name not in os.environ:
        output.say(f"--env {name}: not set in your shell; give NAME=VALUE")
        raise typer.Exit(_REFUSED)
    return name, value if equals else os.environ[name]


def _report(called: str, kind: str, faults: Iterable[Fault]) -> None:
    for fault in faults:
        output.say(f"{called}: {kind}{fault.text}")
