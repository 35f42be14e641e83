"""`kubectl slurm …`: kubectl treats a program `kubectl-slurm` on PATH as a plugin."""

import typer

from bridge.commands import doctor, explain, nodes, queue, submit, takeover, why
from bridge.commands.options import reaches_both

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Show what Slurm does with your pods.",
)
for name, command in (
    ("why", why.command),
    ("queue", queue.command),
    ("nodes", nodes.command),
    ("explain", explain.command),
    ("doctor", doctor.command),
    ("take-over", takeover.command),
    ("submit", submit.command),
):
    app.command(name)(reaches_both(command))


def main() -> None:
    """Run the plugin."""
    app(prog_name="kubectl slurm")
