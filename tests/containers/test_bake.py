"""The bake file, the matrix and the Dockerfile fit together: what one names, the other has."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.image import bake, slurm
from sandbox.image.bake import BakeTarget
from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from slurmoperator.rendering.site import SLURM_USER_ID, SlurmImages
from slurmoperator.rendering.ssh import SSH_PORT
from slurmruntime.crd.restapis import SLURMRESTD_PORT
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


@pytest.fixture(scope="module")
def targets() -> tuple[BakeTarget, ...]:
    return tuple(
        target
        for entry in MATRIX
        for target in bake.read(slurm.BAKE, entry["name"].replace(".", "-"))
    )


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
        assert f"{entry['slurm']}-{entry['debian']}" == entry["name"]
        assert f"debian:{entry['debian']}-slim" == entry["base"]


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
    with pytest.raises(SandboxError, match="no image of slurmxd: expected login, slurmctld"):
        slurm.chosen(targets, ["login", "slurmxd"])
