"""Shared by the sandbox's commands: the option that names its folder, and the report of errors."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sandbox.assets import AssetError
from sandbox.errors import SandboxError


def _default_state() -> Path:
    if os.getuid() == 0:
        return Path("/var/lib/slurm-bridge/sandbox")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "slurm-bridge"


State = Annotated[
    Path,
    typer.Option(
        "--state",
        help="The sandbox's folder.",
        default_factory=_default_state,
        show_default="/var/lib/slurm-bridge/sandbox for root, else ~/.local/state/slurm-bridge",
    ),
]


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Report errors as one message, without a traceback."""
    try:
        yield
    except (SandboxError, AssetError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
