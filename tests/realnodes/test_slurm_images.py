"""The images of Slurm as they were built, read: docs/containers.md. They run in `tests.realnodes.test_operator`."""

import json
import os
import re
from pathlib import Path

import pytest

from cluster.rendering.site import SLURM_USER_ID
from sandbox.image import bake, bom, layout, slurm
from sandbox.image.slurm import SlurmImage

pytestmark = pytest.mark.real_all

MOST_BYTES = 120_000_000
USERS = {
    "slurmctld": f"{SLURM_USER_ID}:{SLURM_USER_ID}",
    "slurmdbd": f"{SLURM_USER_ID}:{SLURM_USER_ID}",
    "slurmrestd": "65534:65534",
    "slurmd": "",
    "login": "",
}
PROGRAMS = {
    "slurmctld": ("usr/sbin/slurmctld", "usr/bin/scontrol", "usr/bin/srun", "usr/bin/squeue"),
    "slurmdbd": ("usr/sbin/slurmdbd",),
    "slurmrestd": ("usr/sbin/slurmrestd",),
    "slurmd": (
        "usr/sbin/slurmd",
        "usr/sbin/slurmstepd",
        "usr/bin/scontrol",
        "usr/sbin/sshd",
    ),
    "login": ("usr/sbin/sackd", "usr/bin/sbatch", "usr/bin/srun", "usr/sbin/sshd"),
}
GONE = (
    "etc/apt/sources.list",
    "etc/apt/apt.conf.d/90",
    "install",
    "packages/",
    "run/secrets/",
    "var/lib/apt/lists/",
)
"""How paths of files begin that only the steps had: mirrors, indexes, secrets."""


@pytest.fixture(scope="module")
def built(
    slurm_images: tuple[SlurmImage, ...], login_with_sssd: SlurmImage
) -> tuple[SlurmImage, ...]:
    return (*slurm_images, login_with_sssd)


def test_users_and_entry_points_are_as_the_page_says(slurm_images: tuple[SlurmImage, ...]) -> None:
    found = {image.daemon: layout.read(image.archive).configuration for image in slurm_images}

    assert USERS == {daemon: each.get("User", "") for daemon, each in found.items()}
    for each in found.values():
        assert each["Entrypoint"] == ["tini", "--", "entrypoint"]
    assert ["0.0.0.0:6820"] == found["slurmrestd"]["Cmd"]


def test_they_hold_what_they_need_and_nothing_of_their_making(
    built: tuple[SlurmImage, ...],
) -> None:
    for image in built:
        held = layout.read(image.archive, _is_examined)
        files = {*held.files}

        assert held.compressed_bytes <= MOST_BYTES
        assert {*PROGRAMS[image.daemon]} <= files
        assert "usr/bin/tini" in files
        entry = (slurm.FOLDER / "entrypoints" / image.daemon).read_bytes()
        assert held.kept["usr/local/bin/entrypoint"] == entry
        assert f"slurm:x:{SLURM_USER_ID}:{SLURM_USER_ID}:" in held.kept["etc/passwd"].decode()
        assert f"slurm:x:{SLURM_USER_ID}:" in held.kept["etc/group"].decode()
        assert not [file for file in files if _is_left_behind(file)]


def test_they_hold_the_version_that_the_matrix_names(built: tuple[SlurmImage, ...]) -> None:
    matrix = json.loads((slurm.FOLDER / "matrix.json").read_text())
    releases = {entry["name"]: entry["slurm"] for entry in matrix}
    for image in built:
        found = bom.components(layout.read(image.archive, bom.is_telling).kept)
        versions = {part.name: part.version for part in found if part.kind == "deb"}
        package = {"login": "sackd"}.get(image.daemon, image.daemon)
        release = releases[image.name.rpartition(":")[2]]
        assert versions[package].startswith(f"{release}."), versions[package]


def test_a_patched_slurm_is_compiled_and_says_that_it_is_patched(
    able: None, tmp_path: Path
) -> None:
    """Compiling takes a quarter of an hour on two cores; `SLURM_IMAGES` may name a folder that has the image."""
    (image,) = patched(tmp_path, "26-05-forky-patched", "slurmctld")
    held = layout.read(image.archive, _is_of_a_patched_one)
    matrix = json.loads((slurm.FOLDER / "matrix.json").read_text())
    (entry,) = (each for each in matrix if each["name"] == "26.05-forky-patched")
    versions = {part.name: part.version for part in bom.components(held.kept) if part.kind == "deb"}
    ours = ("slurmctld", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-jwt-plugin")
    assert {entry["built"]} == {versions[package] for package in ours}
    assert {*PROGRAMS["slurmctld"]} <= held.files.keys()
    upstream, _, suffix = entry["built"].partition("-1+")
    said = f"{upstream}-1.{suffix}".encode()
    libraries = [data for path, data in held.kept.items() if path.endswith("/libslurmfull.so")]
    assert [True] == [said in data for data in libraries]


def patched(folder: Path, group: str, daemon: str) -> tuple[SlurmImage, ...]:
    """Build an image, unless it is there."""
    given = os.environ.get("SLURM_IMAGES", "")
    targets = slurm.chosen(bake.read(slurm.BAKE, group), [daemon])
    found = tuple(slurm.described(target, Path(given)) for target in targets)
    if given and all(image.archive.is_file() for image in found):
        return found
    return slurm.build(folder, group=group, only=[daemon])


def _is_of_a_patched_one(path: str) -> bool:
    return bom.is_telling(path) or path.endswith("/libslurmfull.so")


def _is_examined(path: str) -> bool:
    return path in ("usr/local/bin/entrypoint", "etc/passwd", "etc/group")


def _is_left_behind(path: str) -> bool:
    name = Path(path).name
    return re.fullmatch(
        r"ssh_host_.*_key(\.pub)?|pip\d?|slurm\.key|jwt\.key", name
    ) is not None or path.startswith(GONE)
