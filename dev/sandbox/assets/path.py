"""Programs installed on the host, linked from PATH into one folder: they may be in several."""

import shutil
import tempfile
from pathlib import Path

from sandbox.assets import cache, kits
from sandbox.assets.errors import Unusable
from sandbox.assets.kits import Kit

SBIN = ("/usr/local/sbin", "/usr/sbin")
"""Daemons are here, though an ordinary user's PATH does not include it."""


def gather(kit: Kit, path: str, folder: Path) -> tuple[Path, str]:
    """Link the kit's programs on `path` into a folder below `folder`; return it and their version.

    Raises:
        Unusable: PATH lacks programs, or they are too old.
    """
    places = ":".join((path, *SBIN))
    programs = {name: shutil.which(name, path=places) for name in kit.programs}
    targets = {name: Path(program).absolute() for name, program in programs.items() if program}
    absent = [name for name in kit.programs if name not in targets]
    if absent:
        raise Unusable(f"no {', '.join(absent)}")
    links = _link(targets, folder, stem=f"{kit.name}-path")
    return links, kits.check(kit, links)


def _link(targets: dict[str, Path], folder: Path, stem: str) -> Path:
    final = folder / f"{stem}-{cache.key(*map(str, targets.values()))}"
    if not final.is_dir():
        cache.create(folder)
        links = Path(tempfile.mkdtemp(prefix=f"{final.name}.tmp.", dir=folder))
        for name, target in targets.items():
            (links / name).symlink_to(target)
        links.chmod(0o755)
        try:
            links.rename(final)
        except OSError:  # another process was faster, with the same links
            shutil.rmtree(links)
    return final
