"""Slurm's images for a sandbox with slurm-operator: built once for what describes them, and kept in the cache."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from sandbox import assets
from sandbox.assets import cache, settings
from sandbox.assets.progress import Teller
from sandbox.errors import SandboxError
from sandbox.image import bake, slurm
from sandbox.image.slurm import SlurmImage

GROUP = "default"
"""Of the bake file."""
_NAME = "slurm-images"


def ready() -> tuple[SlurmImage, ...]:
    """Return the images of all daemons, built first if nobody has done so.

    `SLURM_IMAGES` names a folder that `make slurm-images` filled.

    Raises:
        SandboxError: they are not there and cannot be built, or the named folder lacks some.
        AssetError: the builder or the base cannot be had.
    """
    found = settings.read(os.environ, uid=os.getuid())
    targets = bake.read(slurm.BAKE, GROUP)
    folder = found.slurm_images or _built(found)
    images = tuple(slurm.described(target, folder) for target in targets)
    if absent := [image.archive.name for image in images if not image.archive.is_file()]:
        raise SandboxError(f"{folder} lacks {', '.join(absent)}: make slurm-images")
    return images


def pattern(images: tuple[SlurmImage, ...]) -> str:
    """Return the setting `operator.image` for these images."""
    some = images[0]
    return some.name.replace(some.daemon, "{daemon}")


def _built(found: settings.Settings) -> Path:
    """Return the cache's folder for what is described now."""
    files = (path for path in sorted(slurm.FOLDER.rglob("*")) if path.is_file())
    contents = (part for path in files for part in (path.name, path.read_bytes()))
    folder = found.cache / f"{_NAME}-{cache.key(found.debian.suite, *contents)}"
    if folder.is_dir():
        return folder
    if found.offline:
        raise SandboxError(
            f"{folder} is missing, and SANDBOX_OFFLINE forbids to build it: name a folder that"
            " 'make slurm-images' filled in SLURM_IMAGES"
        )
    cache.create(found.cache)
    with assets.shown(sys.stderr) as report:
        lock = folder.with_name(f"{folder.name}.lock")
        with cache.locked(lock, Teller(_NAME, report)):
            if not folder.is_dir():  # nobody has built them meanwhile
                _build(folder)
    return folder


def _build(folder: Path) -> None:
    for leftover in folder.parent.glob(f"{folder.name}.tmp.*"):
        shutil.rmtree(leftover)
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.tmp.", dir=folder.parent))
    try:
        slurm.build(draft, group=GROUP)
        draft.chmod(0o755)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
