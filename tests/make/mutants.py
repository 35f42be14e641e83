"""A package with one line changed, and a hunt through histories that is to notice it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One line of a file, and what stands there instead."""

    file: str
    """Path from the root, such as `slurmjobs/lifecycle/table.py`."""
    before: str
    after: str


def hunted(
    change: Changed, folder: Path, *arguments: str, package: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and a copy of the package in which that line is changed.

    Args:
        change: the line, which stands there once.
        folder: an empty one for the copy; its package hides the tree's.
        arguments: Python's.
        package: a path from the root; packages around it are empty.
    """
    copy = folder / package
    shutil.copytree(ROOT / package, copy)  # compiled files too: that saves a second
    for around in copy.relative_to(folder).parents:
        if around != Path():
            (folder / around / "__init__.py").touch()
    changed = folder / change.file
    Path(cache_from_source(str(changed))).unlink(missing_ok=True)
    source = changed.read_text(encoding="utf-8")
    assert source.count(change.before) == 1, "the mutant's line is not there any more, or twice"
    changed.write_text(source.replace(change.before, change.after), encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
