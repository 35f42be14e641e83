"""The images of Slurm as they were built, read: docs/containers.md. They run in `tests.realnodes.test_operator`."""

import json
import re
from pathlib import Path

import pytest

from sandbox.image import bom, layout, slurm
from sandbox.image.slurm import SlurmImage
from slurmoperator.rendering.site import SLURM_USER_ID

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
        assert held.data["usr/local/bin/entrypoint"] == entry
        assert f"slurm:x:{SLURM_USER_ID}:{SLURM_USER_ID}:" in held.data["etc/passwd"].decode()
        assert f"slurm:x:{SLURM_USER_ID}:" in held.data["etc/group"].decode()
        assert not [file for file in files if _is_left_behind(file)]


def test_they_hold_the_version_that_the_matrix_names(built: tuple[SlurmImage, ...]) -> None:
    matrix = json.loads((slurm.FOLDER / "matrix.json").read_text())
    releases = {entry["name"]: entry["slurm"] for entry in matrix}
    for image in built:
        found = bom.components(layout.read(image.archive, bom.is_telling).data)
        versions = {part.name: part.version for part in found if part.kind == "deb"}
        package = {"login": "sackd"}.get(image.daemon, image.daemon)
        release = releases[image.name.rpartition(":")[2]]
        assert versions[package].startswith(f"{release}."), versions[package]


def _is_examined(path: str) -> bool:
    return path in ("usr/local/bin/entrypoint", "etc/passwd", "etc/group")


def _is_left_behind(path: str) -> bool:
    name = Path(path).name
    return re.fullmatch(
        r"ssh_host_.*_key(\.pub)?|pip\d?|slurm\.key|jwt\.key", name
    ) is not None or path.startswith(GONE)
