"""The entry point of `slurmc`."""

import sys


def main() -> None:
    """Run the command, or say which extra to install."""
    try:
        from slurmclient.cli import commands  # noqa: PLC0415  # the library works without the extra
    except ImportError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(
            "slurmc needs the extra 'cli': pip install './client[cli]' in the repository"
            " (slurm-client is on no package index)"
        )
    commands.run()
