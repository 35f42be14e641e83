"""The command `slurm-bridge`."""

import typer

from bridge import __version__
from sandbox import cli as sandbox_cli
from sandbox import demo
from sandbox.operator import demo as demo_operator
from slurmcli import plugin

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Slurm schedules your ordinary Kubernetes pods.",
)
app.registered_commands += plugin.app().registered_commands
app.add_typer(sandbox_cli.app, name="sandbox")
app.command("demo")(demo.run)
app.command("demo-operator")(demo_operator.run)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Run the command line."""
    app(prog_name="slurm-bridge")
