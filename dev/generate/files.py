"""Writing all generated files."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from generate.models import models
from generate.operations import operations
from generate.raw import raw
from generate.specification import JsonDict, merge, type_conflicts

PACKAGE: Final = Path(__file__).parents[2] / "client/slurmclient"
"""Where the files belong."""
_SETTINGS: Final = Path(__file__).parents[2] / "pyproject.toml"
"""The settings of ruff."""


def generate(documents: Mapping[int, JsonDict]) -> dict[str, str]:
    """Return the files' sources by path.

    Args:
        documents: Slurm's specifications by version.

    Raises:
        ValueError: If versions disagree about a type; the message has all conflicts.
    """
    if conflicts := list(type_conflicts(documents)):
        raise ValueError("\n".join(conflicts))
    spec = merge(documents)
    written = {
        "models.py": models(spec),
        "api/operations.py": operations(spec),
        "api/raw.py": raw(spec),
    }
    return {name: _formatted(source) for name, source in written.items()}


def read_documents(paths: Iterable[Path]) -> dict[int, JsonDict]:
    """Read specifications, and return them by the version that each names."""
    found = (json.loads(path.read_text()) for path in paths)
    return {int(one["info"]["x-slurm"]["data_parsers"][0]["plugin"][-2:]): one for one in found}


def _formatted(source: str) -> str:
    command = (sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(_SETTINGS), "-")
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return done.stdout
