"""The entry points of `slurm-bridge` and `kubectl slurm`."""

import sys
from importlib import import_module


def slurm_bridge() -> None:
    """Run `slurm-bridge`, or say which package is missing."""
    _run("slurmcli.program")


def kubectl_slurm() -> None:
    """Run `kubectl slurm`, or say which package is missing."""
    _run("slurmcli.plugin")


def _run(module: str) -> None:
    try:
        import_module(module).main()  # it imports slurm-client, and what the command needs
    except ModuleNotFoundError as error:
        # pyproject.toml cannot name slurm-client: pip would take it from an index, where anyone can claim the name.
        if str(error.name).partition(".")[0] != "slurmclient":
            raise
        sys.exit(
            "slurm-bridge needs slurm-client, which is on no package index: run 'pip install ./client' in its repository"
        )
