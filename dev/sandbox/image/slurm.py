"""`make slurm-images`: the images of Slurm that `containers` describes, without Docker or a registry."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from sandbox import assets
from sandbox.assets import AssetName, settings
from sandbox.assets.progress import Teller
from sandbox.assets.settings import DebianSettings
from sandbox.errors import SandboxError
from sandbox.image import bake, debian, layout
from sandbox.image.bake import BakeTarget
from sandbox.image.building import TREE, Builder, Target
from sandbox.realnodes import images
from sandbox.words import plainly
from slurmruntime.process.clock import SystemClock

FOLDER = TREE / "containers"
BAKE = FOLDER / "docker-bake.json"
_BASE_ARGUMENT = "BASE_IMAGE"
_SUITE = re.compile(r"debian:(\w+)-slim")
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
            help="Base image, such as docker.io/library/debian:forky-slim@sha256:…",
            show_default="made from Debian's packages",
        ),
    ] = "",
    registry: Annotated[str, typer.Option(help="Prefix of the names.")] = "slurm-bridge",
    group: Annotated[str, typer.Option(help="Group of the bake file.")] = "default",
    only: Annotated[list[str] | None, typer.Option(help="A daemon; may be repeated.")] = None,
) -> None:
    """Build the images of Slurm, as archives for 'ctr images import'."""
    with plainly():
        built = build(out, public_base=base_image, registry=registry, group=group, only=only or ())
    for image in built:
        with plainly():
            held = layout.read(image.archive)
        sizes = f"{held.compressed_bytes / _MIB:.0f} MiB compressed, {held.unpacked_bytes / _MIB:.0f} MiB unpacked"
        typer.echo(f"{image.name} in {image.archive}: {sizes}")


def build(
    out: Path,
    *,
    public_base: str = "",
    registry: str = "slurm-bridge",
    group: str = "default",
    only: Iterable[str] = (),
) -> tuple[SlurmImage, ...]:
    """Build the images of a group of the bake file into `out`.

    Args:
        out: the folder for the archives, named after the bake file's targets.
        public_base: an image to build on. Without one, bases named `debian:SUITE-slim` are made from that suite's packages.
        registry: the prefix of the names.
        group: the group's name.
        only: stages of the Dockerfile; all if empty.

    Raises:
        SandboxError: not root, the bake file is wrong, there is no such daemon, or a step failed.
        AssetError: the builder or the base is not available.
    """
    targets = chosen(bake.read(BAKE, group, {"REGISTRY": registry}), frozenset(only))
    if os.getuid() != 0:
        raise SandboxError(
            "make slurm-images needs root, for namespaces and overlays: run it with sudo, or build"
            " with Docker: cd containers && docker buildx bake"
        )
    configured = settings.read(os.environ, uid=0)
    with assets.shown(sys.stderr) as report:
        buildah = assets.resolve(AssetName.BUILDAH, report=report)
        folder = Path(tempfile.mkdtemp(prefix="image.tmp.", dir=configured.cache))
        try:
            builder = Builder(asset=buildah, folder=folder)
            bases = {
                name: _base(name, public_base, builder, configured.debian, Teller("debian", report))
                for name in {target.arguments[_BASE_ARGUMENT] for target in targets}
            }
            return tuple(
                _build_image(target, bases[target.arguments[_BASE_ARGUMENT]], builder, out)
                for target in targets
            )
        finally:
            shutil.rmtree(folder)


def chosen(targets: Sequence[BakeTarget], daemons: Collection[str]) -> tuple[BakeTarget, ...]:
    """Return the targets for these daemons, or all.

    Raises:
        SandboxError: a daemon is not among them.
    """
    known = {target.stage for target in targets}
    if unknown := sorted({*daemons} - known):
        raise SandboxError(f"no image of {', '.join(unknown)}: expected {', '.join(sorted(known))}")
    return tuple(target for target in targets if not daemons or target.stage in daemons)


def described(target: BakeTarget, out: Path) -> SlurmImage:
    """Return the image of a target, which is in `out` once it is built."""
    (name,) = target.tags
    return SlurmImage(
        daemon=target.stage,
        name=images.full_name(name),
        archive=out.absolute() / f"{target.name}.tar",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The image to build on, and the configuration of its apt."""

    image: str
    secrets: Mapping[str, Path]


def _base(
    name: str, public: str, builder: Builder, configured: DebianSettings, tell: Teller
) -> _Base:
    suite = _SUITE.fullmatch(name)
    if suite is None:
        raise SandboxError(f"{_BASE_ARGUMENT} is {name}: expected debian:SUITE-slim")
    of = replace(configured, suite=suite[1])
    folder = builder.folder / of.suite
    folder.mkdir()
    image = public or debian.build(builder, of, folder, now=SystemClock().now(), tell=tell)
    return _Base(image=image, secrets=debian.secrets(of, folder))


def _build_image(target: BakeTarget, base: _Base, builder: Builder, out: Path) -> SlurmImage:
    image = described(target, out)
    builder.of(FOLDER / target.context).build(
        Target(name=image.name, stage=image.daemon, archive=image.archive),
        base.image,
        base.secrets,
        arguments={key: value for key, value in target.arguments.items() if key != _BASE_ARGUMENT},
    )
    return image


if __name__ == "__main__":
    typer.run(main)
