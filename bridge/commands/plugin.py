"""`kubectl slurm …`: kubectl treats a program `kubectl-slurm` on PATH as a plugin."""

import sys
from collections.abc import Iterable
from importlib import import_module

import typer

from bridge.commands.options import reaches_both

_MODULES = {
    "why": "bridge.commands.why",
    "queue": "bridge.commands.queue",
    "nodes": "bridge.commands.nodes",
    "explain": "bridge.commands.explain",
    "doctor": "bridge.commands.doctor",
    "take-over": "bridge.commands.takeover",
    "submit": "bridge.commands.batch.submit",
    "logs": "bridge.commands.batch.logs",
}
"""What implements each command. A module is imported only for its own command or for all of them:
most of what one costs is importing what it needs.
"""


def app(commands: Iterable[str] = _MODULES) -> typer.Typer:
    """Return an application with these commands."""
    made = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Show what Slurm does with your pods.",
    )
    # Without a callback, Typer takes an only command for the program itself.
    made.callback()(_no_options)
    for name in commands:
        made.command(name)(reaches_both(import_module(_MODULES[name]).command))
    return made


def main() -> None:
    """Run the plugin."""
    asked = [name for name in sys.argv[1:2] if name in _MODULES]
    app(asked or _MODULES)(prog_name="kubectl slurm")


def _no_options() -> None:
    """Show what Slurm does with your pods."""
