"""The command `slurm-bridge`."""

from importlib import metadata

import typer

from bridge import __version__
from slurmcli import output, plugin

PLUGINS = "slurm_bridge.commands"
"""Entry points that add commands, a function or an application each: the sandbox and the demos, where they are installed."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Slurm schedules your ordinary Kubernetes pods.",
)
app.registered_commands += plugin.app().registered_commands


@app.command()
def version() -> None:
    """Print the version."""
    output.out(__version__)


def with_plugins() -> typer.Typer:
    """Return the application with the commands that other distributions add."""
    for entry in metadata.entry_points(group=PLUGINS):
        command = entry.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=entry.name)
        else:
            app.command(entry.name)(command)
    return app


def main() -> None:
    """Run the command line."""
    with_plugins()(prog_name="slurm-bridge")
