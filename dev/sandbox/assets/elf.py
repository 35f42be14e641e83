"""Bind programs to a private loader and library folder, independent of the host's."""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets.errors import FetchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """The loader and the library folders inside a tree, as paths relative to it."""

    loader: str
    folders: tuple[str, ...]

    def search_path(self, tree: Path) -> str:
        """Return the folders for an rpath or --library-path."""
        return ":".join(str(tree / folder) for folder in self.folders)


def bind(patchelf: Path, programs: Iterable[Path], libraries: Libraries, final: Path) -> None:
    """Make the programs use the loader and libraries below `final`, where the tree will be.

    DT_RPATH rather than DT_RUNPATH: it also applies to the libraries' own libraries and to plugins.
    """
    arguments = ["--set-interpreter", str(final / libraries.loader)]
    arguments += ["--force-rpath", "--set-rpath", libraries.search_path(final)]
    names = [str(program) for program in programs]
    done = subprocess.run(
        [str(patchelf), *arguments, *names], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise FetchError(f"patchelf: {done.stderr.strip()}")


def missing_libraries(file: Path, libraries: Libraries, tree: Path) -> list[str]:
    """Return what the loader cannot find for a program or plugin, before the tree is in place."""
    command = loaded(["--list", str(file)], libraries, tree)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    missing = re.findall(r"(\S+) => not found", done.stdout)
    if done.returncode != 0 and not missing:
        return [done.stderr.strip()]
    return missing


def loaded(arguments: list[str], libraries: Libraries, tree: Path) -> list[str]:
    """Return a command line for the tree's own loader.

    A program with its arguments, or `--list FILE`.
    """
    loader = str(tree / libraries.loader)
    return [loader, "--library-path", libraries.search_path(tree), *arguments]
