"""`kubectl slurm …`: kubectl treats a program `kubectl-slurm` on PATH as a plugin."""

import contextlib
import functools
import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from slurmcli.line import plain_words
from slurmcli.line.declaring import BadOperand, Operand, Option, declaration_of
from slurmcli.line.options import reaches_both

if TYPE_CHECKING:
    import typer

_MODULES = {
    "why": "slurmcli.why",
    "queue": "slurmcli.queue",
    "nodes": "slurmcli.nodes",
    "cluster": "slurmcli.clusters.cluster",
    "explain": "slurmcli.explain",
    "doctor": "slurmcli.doctor.command",
    "take-over": "slurmcli.takeover.command",
    "submit": "slurmcli.batch.submit",
    "logs": "slurmcli.batch.logs",
}
"""The module of every command. It is imported only for its own command, or for the help of all: imports are most of the cost."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as Typer has it."""


def app(commands: Iterable[str] = _MODULES) -> "typer.Typer":
    """Return an application with these commands."""
    import typer  # noqa: PLC0415  # see `main`

    application = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Frames and colours for a person only: some environments make Typer write them into files.
        rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,
        help="Show what Slurm does with your pods.",
    )
    # Without a callback, Typer takes a single command for the program itself.
    application.callback()(_no_options)
    for name in commands:
        application.command(name)(_for_typer(_command(name)))
    return application


def main() -> None:
    """Run the plugin, and import Typer only if it is needed: its import is a large part of a command's time."""
    name, *words = sys.argv[1:] or [""]
    try:
        if name in _MODULES and _run_plain(_command(name), words, os.environ):
            return
        app([name] if name in _MODULES else _MODULES)(prog_name="kubectl slurm")
    except KeyboardInterrupt:  # importing takes long enough for one
        sys.exit(INTERRUPTED)


def _command(name: str) -> Callable[..., None]:
    with cheaply():
        module = import_module(_MODULES[name])
    return reaches_both(module.command)


def _run_plain(
    command: Callable[..., None], words: list[str], environment: Mapping[str, str]
) -> bool:
    """Run a command if its words are plain; False if Typer has to run it."""
    arguments = plain_words.read(inspect.signature(command), words, environment)
    if arguments is None:
        return False
    try:
        command(**arguments)
    except BadOperand:
        return False  # Typer prints the error together with the usage
    except BrokenPipeError:  # as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    return True


def _for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """Declare a command's options and arguments in Typer's terms."""
    import typer  # noqa: PLC0415  # see `main`

    @functools.wraps(command)
    def explained(**arguments: object) -> None:
        try:
            command(**arguments)
        except BadOperand as error:
            raise typer.BadParameter(str(error)) from None

    def annotation(of: Any) -> Any:
        kind, declaration = declaration_of(of)
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


_OF_THE_SYSTEM = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL finds the CAs of the system; <https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/>."""


@contextlib.contextmanager
def cheaply() -> Iterator[None]:
    """Import without two needless costs: collecting garbage, and reading the CAs of the system.

    aiohttp creates TLS contexts with all these CAs when it is imported, and our clients bring their own.
    Imported modules live until the end, so they are frozen: later garbage collections skip them.
    """
    before = {name: os.environ.get(name) for name in _OF_THE_SYSTEM}
    os.environ.update(dict.fromkeys(_OF_THE_SYSTEM, os.devnull))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
