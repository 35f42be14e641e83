"""`kubectl slurm …`: kubectl treats a program `kubectl-slurm` on PATH as a plugin."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from slurmcli.line import importing, plain_words
from slurmcli.line.declaring import BadOperand, Operand, Option, declared
from slurmcli.line.options import reaches_both

if TYPE_CHECKING:
    import typer

_MODULES = {
    "why": "slurmcli.why",
    "queue": "slurmcli.queue",
    "nodes": "slurmcli.nodes",
    "cluster": "slurmcli.clusters.cluster",
    "explain": "slurmcli.explain",
    "doctor": "slurmcli.doctor",
    "take-over": "slurmcli.takeover",
    "submit": "slurmcli.batch.submit",
    "logs": "slurmcli.batch.logs",
}
"""What implements each command. A module is imported only for its own command or for all of them:
most of what one costs is importing what it needs.
"""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as Typer has it."""


def app(commands: Iterable[str] = _MODULES) -> "typer.Typer":
    """Return an application with these commands."""
    import typer  # noqa: PLC0415  # see `main`

    made = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Frames and colours for a person only: some environments make Typer write them into files.
        rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,
        help="Show what Slurm does with your pods.",
    )
    # Without a callback, Typer takes an only command for the program itself.
    made.callback()(_no_options)
    for name in commands:
        made.command(name)(_for_typer(_command(name)))
    return made


def main() -> None:
    """Run the plugin; Typer, whose import is a large part of a command, only where it is needed."""
    name, *words = sys.argv[1:] or [""]
    try:
        if name in _MODULES and _ran(_command(name), words, os.environ):
            return
        app([name] if name in _MODULES else _MODULES)(prog_name="kubectl slurm")
    except KeyboardInterrupt:  # importing takes long enough for one
        sys.exit(INTERRUPTED)


def _command(name: str) -> Callable[..., None]:
    with importing.cheaply():
        module = import_module(_MODULES[name])
    return reaches_both(module.command)


def _ran(command: Callable[..., None], words: list[str], environment: Mapping[str, str]) -> bool:
    """Run a command if its words are plain; False if Typer has to run it."""
    given = plain_words.read(inspect.signature(command), words, environment)
    if given is None:
        return False
    try:
        command(**given)
    except BadOperand:
        return False  # Typer says it, with how the command is used
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    return True


def _for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """Declare a command's options and arguments as Typer has them."""
    import typer  # noqa: PLC0415  # see `main`

    @functools.wraps(command)
    def explained(**given: object) -> None:
        try:
            command(**given)
        except BadOperand as error:
            raise typer.BadParameter(str(error)) from None

    def annotation(of: Any) -> Any:
        kind, declaration = declared(of)
        match declaration:
            case Option(names, explanation, metavar, envvar, shown):
                info = typer.Option(
                    *names, help=explanation, metavar=metavar, envvar=envvar, show_default=shown
                )
                return Annotated[kind, info]
            case Operand(explanation, metavar):
                return Annotated[kind, typer.Argument(help=explanation, metavar=metavar)]
            case None:
                return of

    signature = inspect.signature(command)
    vars(explained)["__signature__"] = signature.replace(
        parameters=[
            parameter.replace(annotation=annotation(parameter.annotation))
            for parameter in signature.parameters.values()
        ]
    )
    return explained


def _no_options() -> None:
    """Show what Slurm does with your pods."""
