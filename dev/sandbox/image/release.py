"""`make release`: write all files of a release into a folder, with their checksums, signed on demand.

Images, their packages (CycloneDX), how they were built (SLSA), which known vulnerabilities do not affect
them (OpenVEX), both charts, and values that name the images by digest. Nothing is uploaded: docs/releasing.md.
"""

import hashlib
import json
import os
import subprocess
import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bridge import __version__
from sandbox import assets
from sandbox.assets import AssetName
from sandbox.errors import SandboxError
from sandbox.image import bom, layout, ours, provenance
from sandbox.image.building import TREE, Target
from sandbox.image.provenance import Source
from sandbox.words import plainly
from slurmruntime.model.objects import JsonObject
from slurmruntime.process.clock import SystemClock

CHARTS = {"slurm-bridge": "deploy/chart", "slurm-exporter": "deploy/exporter/chart"}
SUMS = "SHA256SUMS"
VEX = TREE / "deploy/slurm-bridge.openvex.json"
NAMESPACE = "slurm-bridge-release"
"""The purpose of a signature: ssh-keygen refuses one that was made for another."""
_MATERIALS = ("Dockerfile", "requirements.txt", "requirements-build.txt")


def main(
    out: Annotated[Path, typer.Argument(help="The folder for the release; empty or absent.")],
    *,
    base_image: Annotated[
        str,
        typer.Option(
            help="Base image, such as docker.io/library/python:3.13-slim@sha256:…",
            show_default="made from Debian's packages",
        ),
    ] = "",
    signing_key: Annotated[
        Path | None, typer.Option(help="SSH key to sign the checksums with.")
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Allow a tree that differs from its commit.")
    ] = False,
) -> None:
    """Make a release from this tree."""
    with plainly():
        make(out.absolute(), base_image=base_image, signing_key=signing_key, is_draft=draft)
    typer.echo((out / SUMS).read_text(), nl=False)


def make(out: Path, *, base_image: str, signing_key: Path | None, is_draft: bool) -> None:
    """Fill the folder.

    Raises:
        SandboxError: it is not empty, the tree differs from its commit, the base is not named by its
            digest, an image has packages that the lock does not name, or a program failed.
    """
    source = _source()
    check(source, out, base_image, is_draft=is_draft)
    clock = SystemClock()
    began = clock.now()
    out.mkdir(parents=True, exist_ok=True)
    for target in ours.build(out, public_base=base_image):
        _describe(target, source, base_image, began, clock.now())
    with assets.shown(sys.stderr) as report:
        helm = assets.resolve(AssetName.HELM, report=report).bin / "helm"
    for folder in CHARTS.values():
        _run(str(helm), "package", str(TREE / folder), "--destination", str(out))
    (out / VEX.name).write_bytes(VEX.read_bytes())
    (out / SUMS).write_text(sums(out))
    if signing_key is not None:
        sign(out / SUMS, signing_key)


def check(source: Source, out: Path, base_image: str, *, is_draft: bool) -> None:
    """Check the inputs of a release.

    Raises:
        SandboxError: with everything that is wrong.
    """
    faults = []
    if not source.is_clean and not is_draft:
        faults.append("the tree differs from its commit: commit, or make a --draft")
    if base_image and "@sha256:" not in base_image:
        faults.append(f"--base-image {base_image} may change: name it by digest, …@sha256:…")
    if out.is_dir() and any(out.iterdir()):
        faults.append(f"{out} is not empty: name another folder, or empty it")
    if faults:
        raise SandboxError("\n".join(faults))


def _source() -> Source:
    commit = _run("git", "-C", str(TREE), "rev-parse", "HEAD").strip()
    changed = _run("git", "-C", str(TREE), "status", "--porcelain")
    return Source(commit=commit, is_clean=not changed)


def _describe(
    target: Target, source: Source, base_image: str, began: datetime, ended: datetime
) -> None:
    """Write the image's packages, how it was built, and the values that name it."""
    name = target.archive.stem
    held = layout.read(target.archive, bom.is_telling)
    components = bom.components(held.data)
    bom.check(target.name, components, pinned())
    listed = bom.document(
        name, __version__, held.digest, components, serial=uuid.uuid4(), now=ended
    )
    attested = provenance.statement(
        target.name,
        held.digest,
        stage=target.stage,
        source=source,
        base=base_image or "Debian packages, verified by the archive's signature",
        materials={file: _sha256(TREE / file) for file in _MATERIALS},
        began=began,
        ended=ended,
    )
    values = {"image": {"digest": held.digest}}
    folder = target.archive.parent
    _write(folder / f"{name}.cdx.json", listed)
    _write(folder / f"{name}.provenance.json", attested)
    _write(folder / f"{name}.values.json", values)


def pinned() -> dict[str, str]:
    """Return the Python packages that our images may have: the lock's, and our own."""
    own = ("slurm-bridge", "slurm-client", "slurm-exporter")
    return {
        **bom.locked((TREE / "requirements.txt").read_text()),
        **dict.fromkeys(own, __version__),
    }


def sums(folder: Path) -> str:
    """Return the checksums of a folder's files, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{_sha256(path)}  {path.name}\n" for path in files)


def sign(file: Path, key: Path) -> None:
    """Sign a file with an SSH key; the signature is beside it.

    Raises:
        SandboxError: ssh-keygen failed.
    """
    _run("ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key), str(file))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, document: JsonObject) -> None:
    path.write_text(f"{json.dumps(document, indent=2)}\n")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise SandboxError(f"{command[0]} does not run: {error}: install it") from error
    if done.returncode != 0:
        raise SandboxError(
            f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout


if __name__ == "__main__":
    typer.run(main)
