"""The bake file, the matrix and the Dockerfile fit together: what one names, the other has."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge.crd.restapis import SLURMRESTD_PORT
from cluster.configuration.slurm_conf import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from cluster.rendering.site import SLURM_USER_ID, SlurmImages
from cluster.rendering.ssh import SSH_PORT
from sandbox.errors import SandboxError
from sandbox.image import bake, slurm
from sandbox.image.bake import BakeTarget
from tests.containers.dockerfile import Dockerfile

DAEMONS = frozenset(SlurmImages.__annotations__)
PORTS = {
    "slurmctld": {SLURMCTLD_PORT},
    "slurmd": {SSH_PORT, SLURMD_PORT},
    "slurmdbd": {SLURMDBD_PORT},
    "slurmrestd": {SLURMRESTD_PORT},
    "login": {SSH_PORT},
}
USERS = {
    "slurmctld": f"{SLURM_USER_ID}:{SLURM_USER_ID}",
    "slurmdbd": f"{SLURM_USER_ID}:{SLURM_USER_ID}",
    "slurmrestd": "65534:65534",
}
"""The others are root: they start what users run."""
MATRIX: list[Mapping[str, Any]] = json.loads((slurm.FOLDER / "matrix.json").read_text())
PACKAGED = "packaged"
"""The stage of the base with packages of our own."""


@pytest.fixture(scope="module")
def all_targets() -> tuple[BakeTarget, ...]:
    return tuple(
        target
        for entry in MATRIX
        for target in bake.read(slurm.BAKE, entry["name"].replace(".", "-"))
    )


@pytest.fixture(scope="module")
def targets(all_targets: tuple[BakeTarget, ...]) -> tuple[BakeTarget, ...]:
    return tuple(target for target in all_targets if target.stage != PACKAGED)


@pytest.fixture(scope="module")
def compiled() -> Dockerfile:
    return Dockerfile.read(slurm.FOLDER / "source" / "Dockerfile")


@pytest.fixture(scope="module")
def dockerfile() -> Dockerfile:
    return Dockerfile.read(slurm.FOLDER / "Dockerfile")


def test_the_matrix_is_what_the_bake_file_builds(targets: tuple[BakeTarget, ...]) -> None:
    expected = {
        f"slurm-bridge/{daemon}:{entry['name']}": (
            daemon,
            {"BASE_IMAGE": entry["base"], "SLURM_RELEASE": entry["slurm"]},
        )
        for entry in MATRIX
        for daemon in DAEMONS
    }
    found = {
        target.tags: (
            target.stage,
            {key: each for key, each in target.arguments.items() if key != "SSSD_PACKAGES"},
        )
        for target in targets
    }

    assert {(name,): each for name, each in expected.items()} == found
    for entry in MATRIX:
        name, base = f"{entry['slurm']}-{entry['debian']}", f"debian:{entry['debian']}-slim"
        if entry.get("patches"):
            name = f"{name}-patched"
            base = f"slurm-bridge/slurm-base:{name}"
        assert (name, base) == (entry["name"], entry["base"])


def test_without_a_word_the_first_row_is_built() -> None:
    first = MATRIX[0]["name"].replace(".", "-")
    assert bake.read(slurm.BAKE, first) == bake.read(slurm.BAKE)


def test_what_was_built_is_of_the_release_that_the_matrix_names() -> None:
    for entry in MATRIX:
        assert re.fullmatch(rf"{re.escape(entry['slurm'])}\.\d+-\S+", entry["built"])


def test_every_target_has_its_recipe(
    targets: tuple[BakeTarget, ...], dockerfile: Dockerfile
) -> None:
    for target in targets:
        file = slurm.FOLDER / target.context / target.dockerfile
        assert file.resolve() == (slurm.FOLDER / "Dockerfile").resolve()
        assert target.stage in dockerfile.stages
        assert {*target.arguments} == dockerfile.arguments


def test_every_stage_starts_from_the_given_base(dockerfile: Dockerfile) -> None:
    begins = {stage.base for stage in dockerfile.stages.values()}

    assert begins - {*dockerfile.stages} == {"${BASE_IMAGE}"}
    assert ("ARG", "BASE_IMAGE=debian:forky-slim") in dockerfile.beginning


def test_all_that_is_copied_is_there_and_sent_to_the_builder(dockerfile: Dockerfile) -> None:
    lines = (slurm.FOLDER / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    taken = dockerfile.taken

    assert all((slurm.FOLDER / path).exists() for path in taken), taken
    assert {Path(path).parts[0] for path in taken} == sent
    assert {f"entrypoints/{daemon}" for daemon in DAEMONS} <= taken


def test_users_and_ports_are_those_of_the_operators_pods(dockerfile: Dockerfile) -> None:
    base = " ".join(dockerfile.stages["base"].all("RUN"))
    assert f"--gid {SLURM_USER_ID} slurm" in base
    assert f"--uid {SLURM_USER_ID} --gid {SLURM_USER_ID} " in base
    for daemon in DAEMONS:
        stage = dockerfile.stages[daemon]
        ports = {int(port) for each in stage.all("EXPOSE") for port in each.split()}
        assert PORTS[daemon] == ports
        assert ([USERS[daemon]] if daemon in USERS else []) == stage.all("USER")
        assert stage.all("ENTRYPOINT") == ['["tini", "--", "entrypoint"]']


def test_nothing_comes_from_the_net_but_by_apt(dockerfile: Dockerfile) -> None:
    for stage in dockerfile.stages.values():
        assert stage.all("ADD") == []
        assert not [run for run in stage.all("RUN") if re.search(r"curl|wget|git |://", run)]


def test_only_daemons_that_there_are_can_be_chosen(targets: tuple[BakeTarget, ...]) -> None:
    assert targets == slurm.chosen(targets, ())
    assert {"login"} == {target.stage for target in slurm.chosen(targets, ["login"])}
    with pytest.raises(SandboxError, match="no image of slurmxd: there are login, slurmctld"):
        slurm.chosen(targets, ["login", "slurmxd"])


def test_patched_images_are_built_on_a_base_that_is_built_first(
    all_targets: tuple[BakeTarget, ...], compiled: Dockerfile
) -> None:
    bases = [target for target in all_targets if target.stage == PACKAGED]
    patched = [entry for entry in MATRIX if entry.get("patches")]
    assert [(entry["base"],) for entry in patched] == [target.tags for target in bases]
    for target, entry in zip(bases, patched, strict=True):
        file = slurm.FOLDER / target.context / target.dockerfile
        assert file.resolve() == (slurm.FOLDER / "source" / "Dockerfile").resolve()
        assert target.stage in compiled.stages
        assert {*target.arguments} == compiled.arguments
        assert f"debian:{entry['debian']}-slim" == target.arguments["BASE_IMAGE"]
        assert entry["slurm"] == target.arguments["SLURM_RELEASE"]
        assert entry["built"].endswith(f"+{target.arguments['SUFFIX']}")
        on_it = [each for each in all_targets if each.arguments["BASE_IMAGE"] in target.tags]
        assert {each.stage for each in on_it} == DAEMONS
        (login,) = (each for each in on_it if each.stage == "login")
        assert (target, login) == slurm.behind_their_bases([login], all_targets)
        assert (target, *on_it) == slurm.behind_their_bases([*on_it, target], all_targets)


def test_the_source_build_takes_nothing_from_the_net_but_by_apt(compiled: Dockerfile) -> None:
    folder = slurm.FOLDER / "source"
    sent = {
        line[1:]
        for line in (folder / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert all((folder / path).exists() for path in compiled.taken), compiled.taken
    assert {Path(path).parts[0] for path in compiled.taken} == sent
    script = (folder / "compile").read_text()
    for text in (script, *(run for each in compiled.stages.values() for run in each.all("RUN"))):
        assert not re.search(r"curl|wget|git |://", text)
    assert not any(each.all("ADD") for each in compiled.stages.values())


def test_every_patch_is_listed_described_and_said_in_the_matrix() -> None:
    folder = slurm.FOLDER / "source" / "patches"
    series = (folder / "series").read_text().splitlines()
    assert sorted(series) == sorted({file.name for file in folder.iterdir()} - {"series"})
    for name in series:
        text = (folder / name).read_text()
        header, _, changes = text.partition("\n--- a/")
        assert header.startswith("Description: ")
        assert re.search(r"^@@ -\d+(,\d+)? \+\d+(,\d+)? @@", changes, flags=re.MULTILINE)
        assert "\n+" in changes
    for entry in MATRIX:
        assert entry.get("patches", series) == series


def test_a_patched_slurm_says_so_by_the_number_that_its_packages_have() -> None:
    """`sinfo --version` and `dpkg -l` name the same patches."""
    patch = (slurm.FOLDER / "source" / "patches" / "version").read_text()
    (said,) = re.findall(r"^\+\s*Release:\t1\.(\S+)$", patch, flags=re.MULTILINE)
    for entry in MATRIX:
        if entry.get("patches"):
            assert entry["built"].endswith(f"+{said}")
