"""The command `slurmc`, which needs the extra `cli` (typer and rich)."""

from slurmclient.cli.entry import main

__all__ = ["main"]
