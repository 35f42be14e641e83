"""The command `slurmc`; what it needs comes with the extra `cli`."""

from slurmclient.cli.entry import main

__all__ = ["main"]
