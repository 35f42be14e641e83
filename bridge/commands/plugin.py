"""`kubectl slurm …`: kubectl treats a program `kubectl-slurm` on PATH as a plugin."""

import typer

from bridge.commands import doctor, explain, nodes, queue, takeover, why

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Show what Slurm does with your pods.",
)
app.command("why")(why.command)
app.command("queue")(queue.command)
app.command("nodes")(nodes.command)
app.command("explain")(explain.command)
app.command("doctor")(doctor.command)
app.command("take-over")(takeover.command)


def main() -> None:
    """Run the plugin."""
    app(prog_name="kubectl slurm")
