"""Root file systems from Debian packages, for boxes and images that run them as their own.

So the programs stay unchanged. Those in bin/ are wrappers that run on the host with the tree's own
libraries.
"""

import platform
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sandbox.assets import cache, elf, kits, packages
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.packages import Selection
from sandbox.assets.settings import DebianSettings


def recipe(
    selection: Selection, settings: DebianSettings, now: Callable[[], datetime]
) -> cache.Recipe:
    """Return the recipe; as with Slurm, the packages' versions are not part of the key."""
    return cache.Recipe(
        name=selection.kit.name,
        key=cache.key(
            settings.suite,
            platform.machine(),
            selection.edition,
            selection.keep.pattern,
            *selection.roots,
        ),
        make=lambda site: _make(selection, site, settings, now()),
    )


def _make(
    selection: Selection, site: cache.Site, settings: DebianSettings, now: datetime
) -> cache.RecipeResult:
    kit = selection.kit
    taken = packages.take(selection, site, settings, now)
    libraries = packages.find_libraries(selection, site.tree, taken.machine)
    (site.tree / "bin").mkdir()
    for name in kit.programs:
        program = next((site.tree / "root" / "usr").glob(f"*bin/{name}"), None)
        if program is None:
            raise FetchError(f"the packages have no {name}")
        if missing := elf.missing_libraries(program, libraries, site.tree):
            raise FetchError(f"{name} lacks {', '.join(missing)}")
        wrapper = site.tree / "bin" / name
        wrapper.write_text(_wrapper(program.relative_to(site.tree), libraries, site.final))
        wrapper.chmod(0o755)
    asked, *arguments = kit.version_command
    command = [str(site.tree / "root" / "usr" / "bin" / asked), *arguments]
    try:
        version = kits.checked_version(kit, elf.loaded(command, libraries, site.tree))
    except Unusable as error:
        raise FetchError(str(error)) from error
    return cache.RecipeResult(version=version, source=taken.source, contents=taken.contents)


def _wrapper(program: Path, libraries: elf.Libraries, final: Path) -> str:
    command = shlex.join(elf.loaded([str(final / program)], libraries, final))
    return f'#!/bin/sh\nexec {command} "$@"\n'
