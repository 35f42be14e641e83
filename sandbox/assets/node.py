"""The file system of a real node, from Debian packages: containerd, runc, CNI plugins and a shell.

A node runs it as its own root, so its programs are left as they are. Those in bin/ are wrappers
that run here, on the host, with the tree's own libraries.
"""

import platform
import re
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sandbox.assets import cache, elf, kits, packages
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.packages import Selection
from sandbox.assets.settings import DebianSettings

KIT = KITS[AssetName.NODE]
SELECTION = Selection(
    kit=KIT,
    version_of="containerd",
    roots=(
        *("containerd", "runc", "containernetworking-plugins"),
        *("nftables", "iproute2", "mount", "util-linux", "conntrack"),
        *("bash", "dash", "coreutils", "procps", "findutils", "grep", "sed"),
        *("base-files", "libc-bin", "netbase"),
        "busybox-static",  # all there is in the image of that name
    ),
    follow=re.compile(r"lib|zlib1g"),
    keep=re.compile(r"usr/(bin|sbin|lib|lib64)/|etc/"),
    programs=KIT.programs,
    edition="1",
)


def recipe(settings: DebianSettings, now: Callable[[], datetime]) -> cache.Recipe:
    """Return the recipe; as with Slurm, the packages' versions are not part of the key."""
    return cache.Recipe(
        name=AssetName.NODE,
        key=cache.key(
            settings.suite,
            platform.machine(),
            SELECTION.edition,
            SELECTION.keep.pattern,
            *SELECTION.roots,
        ),
        make=lambda site: _make(site, settings, now()),
    )


def _make(site: cache.Site, settings: DebianSettings, now: datetime) -> cache.Made:
    taken = packages.take(SELECTION, site, settings, now)
    libraries = packages.find_libraries(SELECTION, site.tree, taken.machine)
    (site.tree / "bin").mkdir()
    for name in KIT.programs:
        program = next((site.tree / "root" / "usr").glob(f"*bin/{name}"), None)
        if program is None:
            raise FetchError(f"the packages hold no {name}")
        if missing := elf.missing_libraries(program, libraries, site.tree):
            raise FetchError(f"{name} lacks {', '.join(missing)}")
        wrapper = site.tree / "bin" / name
        wrapper.write_text(_wrapper(program.relative_to(site.tree), libraries, site.final))
        wrapper.chmod(0o755)
    asked, *arguments = KIT.version_command
    command = [str(site.tree / "root" / "usr" / "bin" / asked), *arguments]
    try:
        version = kits.checked_version(KIT, elf.loaded(command, libraries, site.tree))
    except Unusable as error:
        raise FetchError(str(error)) from error
    return cache.Made(version=version, source=taken.source, contents=taken.contents)


def _wrapper(program: Path, libraries: elf.Libraries, final: Path) -> str:
    command = shlex.join(elf.loaded([str(final / program)], libraries, final))
    return f'#!/bin/sh\nexec {command} "$@"\n'
