"""`make slurm-images`: the images of Slurm that `containers` describes, without Docker or a registry."""

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bridge.process.clock import SystemClock
from sandbox import assets
from sandbox.assets import AssetName, settings
from sandbox.assets.progress import Teller
from sandbox.errors import SandboxError
from sandbox.image import bake, debian, layout
from sandbox.image.bake import BakeTarget
from sandbox.image.building import TREE, Builder, Target, say_step
from sandbox.realnodes import images
from sandbox.words import plainly

FOLDER = TREE / "containers"
BAKE = FOLDER / "docker-bake.json"
_BASE_ARGUMENT = "BASE_IMAGE"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmImage:
    """One of the images, as it was built."""

    daemon: str
    name: str
    """With host and tag, as kubelets write it."""
    archive: Path


def main(
    out: Annotated[Path, typer.Argument(help="The folder for the archives.")],
    *,
    base_image: Annotated[
        str,
        typer.Option(
            help="Such as docker.io/library/debian:forky-slim@sha256:…",
            show_default="made of Debian's packages",
        ),
    ] = "",
    registry: Annotated[str, typer.Option(help="What the names begin with.")] = "slurm-bridge",
    only: Annotated[list[str] | None, typer.Option(help="A daemon; may be repeated.")] = None,
) -> None:
    """Build the images of Slurm, as archives for 'ctr images import'."""
    with plainly():
        made = build(out, public_base=base_image, registry=registry, only=only or ())
    for image in made:
        with plainly():
            held = layout.read(image.archive)
        sizes = f"{held.compressed_bytes / _MIB:.0f} MiB compressed, {held.unpacked_bytes / _MIB:.0f} MiB unpacked"
        typer.echo(f"{image.name} in {image.archive}: {sizes}")


def build(
    out: Path,
    *,
    public_base: str = "",
    registry: str = "slurm-bridge",
    only: Iterable[str] = (),
) -> tuple[SlurmImage, ...]:
    """Build the images of the bake file's group `default` into `out`.

    Args:
        out: the folder for the archives, named after the bake file's targets.
        public_base: an image to build on instead of one made of Debian's packages.
        registry: what the names begin with.
        only: stages of the Dockerfile; all if there is none.

    Raises:
        SandboxError: not root, the bake file is wrong, there is no such daemon, or a step failed.
        AssetError: the builder or the base cannot be had.
    """
    targets = chosen(bake.read(BAKE, {"REGISTRY": registry}), frozenset(only))
    if os.getuid() != 0:
        raise SandboxError(
            "make slurm-images needs root, for namespaces and overlays: run it with sudo, or build"
            " with Docker: cd containers && docker buildx bake"
        )
    found = settings.read(os.environ, uid=0)
    with assets.shown(sys.stderr) as report:
        buildah = assets.resolve(AssetName.BUILDAH, report=report)
        folder = Path(tempfile.mkdtemp(prefix="image.tmp.", dir=found.cache))
        try:
            builder = Builder(asset=buildah, folder=folder, say=say_step)
            base = public_base or debian.build(
                builder, found.debian, now=SystemClock().now(), tell=Teller("debian", report)
            )
            secrets = debian.secrets(found.debian, folder)
            return tuple(_built(target, base, secrets, builder, out) for target in targets)
        finally:
            shutil.rmtree(folder)


def chosen(targets: Sequence[BakeTarget], daemons: Collection[str]) -> tuple[BakeTarget, ...]:
    """Return the targets for these daemons, or all.

    Raises:
        SandboxError: a daemon is not among them.
    """
    known = {target.stage for target in targets}
    if unknown := sorted({*daemons} - known):
        raise SandboxError(
            f"no image of {', '.join(unknown)}: there are {', '.join(sorted(known))}"
        )
    return tuple(target for target in targets if not daemons or target.stage in daemons)


def described(target: BakeTarget, out: Path) -> SlurmImage:
    """Return the image of a target, which is in `out` once it is built."""
    (name,) = target.tags
    return SlurmImage(
        daemon=target.stage,
        name=images.full_name(name),
        archive=out.absolute() / f"{target.name}.tar",
    )


def _built(
    target: BakeTarget, base: str, secrets: Mapping[str, Path], builder: Builder, out: Path
) -> SlurmImage:
    image = described(target, out)
    builder.of(FOLDER / target.context).build(
        Target(name=image.name, stage=image.daemon, archive=image.archive),
        base,
        secrets,
        arguments={key: value for key, value in target.arguments.items() if key != _BASE_ARGUMENT},
    )
    return image


if __name__ == "__main__":
    typer.run(main)
