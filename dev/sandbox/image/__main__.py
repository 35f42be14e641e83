"""`make image`: build our images into a folder, and print how large they are."""

from pathlib import Path
from typing import Annotated

import typer

from bridge import __version__
from sandbox.image import layout, ours
from sandbox.words import plainly

_MIB = 1 << 20


def main(
    out: Annotated[Path, typer.Argument(help="The folder for the archives.")],
    *,
    base_image: Annotated[
        str,
        typer.Option(
            help="Base image, such as docker.io/library/python:3.13-slim@sha256:…",
            show_default="made from Debian's packages",
        ),
    ] = "",
    tag: Annotated[str, typer.Option(help="Tag of both images.")] = __version__,
) -> None:
    """Build our images from the Dockerfile, as archives for 'ctr images import'."""
    with plainly():
        targets = ours.build(out, public_base=base_image, tag=tag)
    for target in targets:
        with plainly():
            held = layout.read(target.archive)
        sizes = f"{held.compressed_bytes / _MIB:.0f} MiB compressed, {held.unpacked_bytes / _MIB:.0f} MiB unpacked"
        typer.echo(f"{target.name} in {target.archive}: {sizes}")


if __name__ == "__main__":
    typer.run(main)
