"""Our first release as it was: the tree of its commit, with its chart, and its Dockerfile run on today's base.

Two things that Dockerfile takes for granted are given to it: a program `pip` in the base, as
`python:3.13-slim` has one, and this machine's way to an index, as a mount that no layer keeps.
A third it forgot: its programs ask for their package's metadata, which it never installed, so that
image never started. The base has them.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.assets import AssetName, settings
from sandbox.image import base, pip
from sandbox.image.building import Builder, Target
from sandbox.realnodes import images
from sandbox.realnodes.images import Entry
from tests.realnodes.installed.surroundings import ROOT

COMMIT = "ecd638d"
NAMESPACE = "slurm-bridge"
"""Its default."""
_PIP = b"""#!/bin/sh
for wheel in /usr/share/python-wheels/pip-*.whl; do exec python3 "$wheel/pip" "$@"; done
"""

_METADATA = "app/slurm_bridge-0.1.0.dist-info"


def checkout(folder: Path, commit: str = COMMIT) -> Path:
    """Unpack a commit's tree; skip in a clone without history."""
    command = ("git", "-C", str(ROOT), "archive", commit)
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no commit {commit} here: 'git fetch --unshallow'")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def image(tree: Path, folder: Path) -> Path:
    """Build the tree's image, tagged with the commit, unless it was given; return its archive."""
    name = f"slurm-bridge-{COMMIT}.tar"
    given = Path(os.environ.get("SLURM_BRIDGE_IMAGES", "/nowhere")).absolute() / name
    if given.exists():
        return given
    with assets.shown(sys.stderr) as report:
        found = assets.resolve_all((AssetName.BUILDAH, AssetName.PYTHON), report=report)
    target = Target(
        name=images.full_name(f"slurm-bridge:{COMMIT}"),
        stage="",
        archive=folder / name,
    )
    cache = settings.read(os.environ, uid=0).cache
    work = Path(tempfile.mkdtemp(prefix="image.tmp.", dir=cache))
    try:
        secrets = pip.secrets(pip.configured(), work)
        mounts = {secrets["pip.conf"]: "/etc/pip.conf"}
        if "ca.crt" in secrets:
            mounts[secrets["ca.crt"]] = pip.INSIDE
        builder = Builder(asset=found[AssetName.BUILDAH], folder=work, tree=tree)
        on = f"docker-archive:{_base(found[AssetName.PYTHON], work)}"
        builder.build(target, on, {}, mounts)
    finally:
        shutil.rmtree(work)
    return target.archive


def _base(python: assets.Asset, folder: Path) -> Path:
    assert python.root is not None
    archive = folder / "base.tar"
    program = assets.KITS[AssetName.PYTHON].programs[0]
    metadata = b"Metadata-Version: 2.1\nName: slurm-bridge\nVersion: 0.1.0\n"
    entries = [
        *base.entries(python.root, program, {}),
        Entry(path="usr/bin/pip", data=_PIP),
        Entry(path="app", is_folder=True),
        Entry(path=_METADATA, is_folder=True),
        Entry(path=f"{_METADATA}/METADATA", data=metadata, mode=0o644),
    ]
    images.archive(archive, base.IMAGE, images.layer_of(entries))
    return archive
