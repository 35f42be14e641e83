"""The generated modules match the specifications that the sandbox's Slurm prints."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from generate.files import generate, read_documents
from sandbox import assets, slurm
from sandbox.assets import Absent, AssetName
from slurmclient import models
from slurmclient.api.operations import OPERATIONS

CLIENT = Path(__file__).parents[2] / "client"
VERSIONS = (42, 43, 44, 45)


@pytest.fixture(scope="module")
def specifications(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Those that the sandbox's slurmrestd prints, which needs a configuration and no server."""
    asset = assets.where((AssetName.SLURM,))[AssetName.SLURM]
    if isinstance(asset, Absent):
        pytest.skip(str(asset.reason))
    folder = tmp_path_factory.mktemp("openapi")
    conf = folder / "slurm.conf"
    conf.write_text(
        "ClusterName=x\nSlurmctldHost=localhost\nSlurmUser=root\nAuthType=auth/slurm\nAuthInfo=disable_sack\n"
        "AuthAltTypes=auth/jwt\nCredType=cred/slurm\nAccountingStorageType=accounting_storage/slurmdbd\n"
        + slurm.unpacked(asset)
    )
    for version in VERSIONS:
        command = (
            str(asset.bin / "slurmrestd"),
            "--generate-openapi-spec",
            *("-s", "slurmctld,slurmdbd"),
            *("-d", f"v0.0.{version}"),
            *("-f", str(conf)),
        )
        environment = {"SLURM_CONF": str(conf), "SLURM_JWT": "daemon"}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        (folder / f"{version}.json").write_bytes(done.stdout)
    return read_documents(sorted(folder.glob("*.json")))


def test_what_is_checked_in_is_what_the_generator_writes(specifications: dict[int, Any]) -> None:
    release = specifications[45]["info"]["x-slurm"]["release"]
    if f"Slurm {release}." not in (models.__doc__ or ""):
        pytest.skip(f"generated from another release than {release}")
    for name, source in generate(specifications).items():
        assert source == (CLIENT / "slurmclient" / name).read_text(), (
            f"{name}: run `python -m generate` in dev"
        )


def test_every_operation_of_every_version_is_there(specifications: dict[int, Any]) -> None:
    for version, document in specifications.items():
        for path, methods in document["paths"].items():
            for method in methods:
                wanted = (method.upper(), path.replace(f"v0.0.{version}", "{version}"))
                assert any(
                    (one.method, one.path) == wanted and one.since <= version
                    for one in OPERATIONS.values()
                ), wanted


def test_a_field_that_changes_its_type_stops_the_generator(specifications: dict[int, Any]) -> None:
    changed = {
        version: {**document, "components": {"schemas": dict(document["components"]["schemas"])}}
        for version, document in specifications.items()
    }
    schemas = changed[44]["components"]["schemas"]
    node = schemas["v0.0.44_node"]
    schemas["v0.0.44_node"] = {
        **node,
        "properties": {**node["properties"], "weight": {"type": "string"}},
    }
    with pytest.raises(ValueError, match=r"node\.weight: integer and, in v0\.0\.44, string"):
        generate(changed)


def test_reads_that_change_something_are_never_repeated() -> None:
    mutating = {one.name for one in OPERATIONS.values() if one.mutates and one.method == "GET"}
    assert mutating == {"slurm_get_reconfigure", "slurm_get_job_requeue"}
    assert all(one.mutates for one in OPERATIONS.values() if one.method != "GET")
