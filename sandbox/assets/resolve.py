"""From an asset's name to a folder of programs that run: the first source that has it, and which one that was."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import kits
from sandbox.assets.errors import AssetError, Unusable
from sandbox.assets.kits import KITS, AssetName, Kit
from sandbox.assets.progress import Report, Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """Programs that run, and where they come from."""

    name: AssetName
    bin: Path
    """The folder with the programs."""
    root: Path | None
    """The file tree the programs were unpacked with (plugins in `usr/lib/<triplet>/slurm-wlm`, mariadb's basedir in
    `usr`). None: they find their own files, as an ordinary installation does."""
    version: str
    origin: str
    """One line: which source, and why that one."""


def resolve(name: AssetName, *, report: Report, environ: Mapping[str, str] = os.environ) -> Asset:
    """The asset from the first source that has it; fetches or builds it if need be.

    Raises:
        AssetError: an explicit setting is unusable, or no source has it.
    """
    kit = KITS[name]
    asset = _explicit(kit, environ)
    if asset is None:
        raise AssetError(f"{name}: set {kit.variable} to a folder with {', '.join(kit.programs)}")
    Teller(name, report)(asset.origin)
    return asset


def resolve_all(
    names: Iterable[AssetName], *, report: Report, environ: Mapping[str, str] = os.environ
) -> dict[AssetName, Asset]:
    """Several assets at once.

    Raises:
        AssetError: with everything that is wrong with any of them.
    """
    return {name: resolve(name, report=report, environ=environ) for name in names}


def _explicit(kit: Kit, environ: Mapping[str, str]) -> Asset | None:
    """What the kit's variable names: a folder of programs, or a folder with those in bin/ and their files in root/."""
    value = environ.get(kit.variable, "")
    if not value:
        return None
    folder = Path(value).absolute()
    programs = folder / "bin" if (folder / "bin").is_dir() else folder
    try:
        version = kits.check(kit, programs)
    except Unusable as error:
        raise AssetError(
            "\n  ".join((f"{kit.variable}={value} is set but unusable:", *error.faults))
        ) from error
    root = programs.parent / "root"
    return Asset(
        name=kit.name,
        bin=programs,
        root=root if (root / "usr").is_dir() else None,
        version=version,
        origin=f"{kit.name} {version} from {programs}, because {kit.variable} is set",
    )
