"""Slurm's images for a sandbox with slurm-operator: built once per version of their sources, and cached."""

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
    """Return the images of all daemons; build them first if necessary.

    `SLURM_IMAGES` names a folder that `make slurm-images` filled.

    Raises:
        SandboxError: they do not exist and cannot be built, or the named folder lacks some.
        AssetError: the builder or the base is not available.
    """
    configured = settings.read(os.environ, uid=os.getuid())
    targets = bake.read(slurm.BAKE, GROUP)
    folder = configured.slurm_images or _find_or_build(configured)
    images = tuple(slurm.described(target, folder) for target in targets)
    if absent := [image.archive.name for image in images if not image.archive.is_file()]:
        raise SandboxError(f"{folder} lacks {', '.join(absent)}: run make slurm-images")
    return images


def pattern(images: tuple[SlurmImage, ...]) -> str:
    """Return the setting `operator.image` for these images."""
    some = images[0]
    return some.name.replace(some.daemon, "{daemon}")


def _find_or_build(configured: settings.Settings) -> Path:
    """Return the cache's folder for the current sources; fill it first if necessary."""
    files = (path for path in sorted(slurm.FOLDER.rglob("*")) if path.is_file())
    contents = (part for path in files for part in (path.name, path.read_bytes()))
    folder = configured.cache / f"{_NAME}-{cache.key(configured.debian.suite, *contents)}"
    if folder.is_dir():
        return folder
    if configured.offline:
        raise SandboxError(
            f"{folder} is missing, and SANDBOX_OFFLINE forbids building it: set SLURM_IMAGES to a folder that"
            " 'make slurm-images' filled"
        )
    cache.create(configured.cache)
    with assets.shown(sys.stderr) as report:
        lock = folder.with_name(f"{folder.name}.lock")
        with cache.locked(lock, Teller(_NAME, report)):
            if not folder.is_dir():  # another process may have built them while we waited
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
