"""Our images: their names, their builder and their base."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from bridge import __version__
from sandbox import assets
from sandbox.assets import AssetName, cache, settings
from sandbox.errors import SandboxError
from sandbox.image import base, pip
from sandbox.image.building import TREE, Builder, Target
from sandbox.realnodes import images

STAGES = {"slurm-bridge": "bridge", "slurm-exporter": "exporter"}
"""Our images and their stages of the Dockerfile."""


def build(
    out: Path, *, public_base: str = "", tag: str = __version__, tree: Path = TREE
) -> tuple[Target, ...]:
    """Build our images into `out`, on a base of Debian's packages unless another is named.

    Args:
        out: the folder for the archives.
        public_base: the base's name in a registry; "" for a base of our own.
        tag: the images' tag.
        tree: the checkout to build; another commit's for a test of an upgrade.

    Raises:
        SandboxError: not root, or a step failed.
        AssetError: the builder or the base is not available.
    """
    if os.getuid() != 0:
        raise SandboxError(
            "make image needs root, for namespaces and overlays: run it with sudo, or build with"
            " Docker or Podman: docker build --tag slurm-bridge ."
        )
    with assets.shown(sys.stderr) as report:
        programs = assets.resolve_all((AssetName.BUILDAH, AssetName.PYTHON), report=report)
    targets = tuple(
        Target(
            name=images.full_name(f"{name}:{tag}"),
            stage=stage,
            archive=out.absolute() / f"{name}.tar",
        )
        for name, stage in STAGES.items()
    )
    place = settings.read(os.environ, uid=0).cache
    folder = Path(tempfile.mkdtemp(prefix="image.tmp.", dir=place))
    try:
        secrets = pip.secrets(pip.configured(), folder)
        builder = Builder(asset=programs[AssetName.BUILDAH], folder=folder, tree=tree)
        on = public_base or f"docker-archive:{_create_base(programs[AssetName.PYTHON], folder)}"
        for target in targets:
            builder.build(target, on, secrets)
    finally:
        shutil.rmtree(folder)
    return targets


def _create_base(python: assets.Asset, folder: Path) -> Path:
    if python.root is None:
        raise SandboxError(f"{python.bin} has no root/ beside it: leave SANDBOX_PYTHON unset")
    archive = folder / "base.tar"
    program = assets.KITS[AssetName.PYTHON].programs[0]
    files = base.entries(python.root, program, packages_of(python))
    images.archive(archive, base.IMAGE, images.layer_of(files))
    return archive


def packages_of(python: assets.Asset) -> dict[str, str]:
    """Return the Debian packages of our base, with their versions."""
    manifest = cache.find(python.bin.parent)
    contents = manifest.contents if manifest is not None else {}
    return {name: version.partition(" ")[0] for name, version in contents.items()}
