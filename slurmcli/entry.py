"""The entry points of `slurm-bridge` and `kubectl slurm`."""

import sys
from typing import NoReturn


def slurm_bridge() -> None:
    """Run `slurm-bridge`, or say which package is missing."""
    try:
        from slurmcli import program as cli  # noqa: PLC0415  # it imports slurm-client

        cli.main()  # imports what the command needs
    except ModuleNotFoundError as error:
        _explain(error)


def kubectl_slurm() -> None:
    """Run `kubectl slurm`, or say which package is missing."""
    try:
        from slurmcli import plugin  # noqa: PLC0415  # it imports slurm-client

        plugin.main()
    except ModuleNotFoundError as error:
        _explain(error)


def _explain(error: ModuleNotFoundError) -> NoReturn:
    # pyproject.toml cannot name slurm-client: pip would take it from an index, where anyone can claim the name.
    if str(error.name).partition(".")[0] != "slurmclient":
        raise error
    sys.exit(
        "slurm-bridge needs slurm-client, which is on no package index: run 'pip install ./client' in its repository"
    )
