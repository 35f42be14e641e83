"""`explain`: what a manifest would become, without any effect."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, container
from tests.slurmcli.conftest import Run

PREFIX = "slurmjob.slinky.slurm.net"


@pytest.fixture
def worlds(full_sandbox: Sandbox, bridged_namespace: str) -> Worlds:
    return Worlds(full_sandbox, bridged_namespace)


def written(folder: Path, *documents: dict[str, Any]) -> str:
    file = folder / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return str(file)


def job(annotations: dict[str, str], **template: Any) -> dict[str, Any]:
    pod = {"spec": {"containers": [container("2", "1Gi")], "restartPolicy": "Never", **template}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": annotations},
        "spec": {"template": pod},
    }


def test_says_what_a_job_would_become_and_creates_nothing(
    worlds: Worlds, run: Run, tmp_path: Path
) -> None:
    asked = {f"{PREFIX}/timelimit": "90", f"{PREFIX}/partition": "slurm-bridge"}
    file = written(tmp_path, job(asked))

    done = run("explain", file, "-n", worlds.namespace, "-o", "json")

    assert 0 == done.exit_code, done.output
    (found,) = yaml.safe_load(done.stdout)
    assert f"Job/train spec.template in namespace {worlds.namespace}" == found["where"]
    assert [] == found["faults"]
    assert 2 == found["job"]["cpus_per_task"]
    assert "slurm-bridge" == found["job"]["partition"]
    assert 90 == found["job"]["time_limit"]["number"]
    assert [] == worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
    assert "cpus_per_task" in run("explain", file, "-n", worlds.namespace).stdout


def test_names_every_fault(worlds: Worlds, run: Run, tmp_path: Path) -> None:
    wrong = {f"{PREFIX}/timelimit": "soon", f"{PREFIX}/colour": "blue"}
    own = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "wrong", "annotations": wrong},
        "spec": {"containers": [container()]},
    }
    file = written(tmp_path, own, job(wrong), job({}))

    done = run("explain", file, "-n", worlds.namespace, "-o", "yaml")

    assert 2 == done.exit_code
    pod, owned, fine = yaml.safe_load(done.stdout)
    for refused in (pod, owned):
        assert "timelimit" in str(refused["faults"])
        assert "colour" in str(refused["faults"])
    assert [] == fine["faults"]


def test_says_that_a_namespace_is_not_slurms(run: Run, tmp_path: Path) -> None:
    done = run("explain", written(tmp_path, job({})), "-n", "default")

    assert 0 == done.exit_code
    assert "not scheduled by Slurm" in done.stdout


def test_says_what_it_can_without_slurm(worlds: Worlds, run: Run, tmp_path: Path) -> None:
    file = written(tmp_path, job({}))

    done = run("explain", file, "-n", worlds.namespace, environment={"SLURM_JWT": None})

    assert 0 == done.exit_code
    assert "admitted" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"), [("kind: Service", "contains no pod"), ("a: [", "while parsing")]
)
def test_what_is_no_manifest(run: Run, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)

    done = run("explain", str(file))

    assert 1 == done.exit_code
    assert words in done.stderr
