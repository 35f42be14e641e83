"""`kubectl logs` of a SlurmJob: a slurmd runs the script, a real kubelet the companion, and both mount one folder."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox import assets, nss
from sandbox.assets import Asset, AssetName
from sandbox.chart import BATCH_USER
from sandbox.client import Sandbox
from sandbox.image import base
from sandbox.options import Options
from sandbox.realnodes import images
from sandbox.realnodes.images import Entry, Image
from slurmruntime.values import names
from tests.servers import fresh_namespace, running_sandbox, wait_until

PATIENCE_S = 60.0
IMAGE = images.full_name("local/jobs:1")
JOBS = Path(__file__).parents[2] / "slurmjobs"
SIZE = "1Mi"

pytestmark = pytest.mark.real_all


@pytest.fixture(scope="module")
def both(able: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A compute node, and a real one that Slurm has no part in."""
    options = Options(
        compute=1,
        real_nodes=1,
        nodes=0,
        plain_nodes=0,
        settings=(f"slurm_jobs.companion_image={IMAGE}",),
    )
    with running_sandbox(options) as sandbox:
        archive = tmp_path_factory.mktemp("image") / "jobs.tar"
        images.archive(archive, Image(name=IMAGE), images.layer_of(_files()))
        sandbox.load_image(archive)
        foreign = {"metadata": {"labels": {names.EXTERNAL_NODE_LABEL: None}}}
        sandbox.admin.patch("/api/v1/nodes/real-0", foreign)
        yield sandbox


def _files() -> Iterator[Entry]:
    """Python, and our package where it looks."""
    (python,) = assets.resolve_all([AssetName.PYTHON], report=lambda _: None).values()
    assert isinstance(python, Asset)
    assert python.root is not None
    yield from base.entries(python.root, "python3.13", {})
    programs = ("companions/follower.py", "companions/collector.py")
    for path in ("__init__.py", "companions/__init__.py", *programs):
        to = f"usr/lib/python3/dist-packages/slurmjobs/{path}"
        yield Entry(path=to, data=(JOBS / path).read_bytes(), mode=0o644)


@pytest.fixture
def namespace(both: Sandbox) -> Iterator[str]:
    labels = {names.ENABLED_LABEL: "true"}
    with fresh_namespace(both, labels=labels) as name, claimed(both, name, "scratch", "/shared"):
        yield name


@contextmanager
def claimed(sandbox: Sandbox, namespace: str, name: str, folder: str) -> Iterator[None]:
    """A claim whose volume is a folder of the real node."""
    called = f"{namespace}-{name}"
    volume = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "capacity": {"storage": SIZE},
        "hostPath": {"path": folder, "type": "Directory"},
        "claimRef": {"namespace": namespace, "name": name},
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": called,
        "resources": {"requests": {"storage": SIZE}},
    }
    volumes = "/api/v1/persistentvolumes"
    sandbox.admin.create(volumes, {"metadata": {"name": called}, "spec": volume})
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    try:
        sandbox.admin.create(claims, {"metadata": {"name": name}, "spec": claim})
        yield
    finally:
        sandbox.admin.delete(f"{volumes}/{called}")


def submit(sandbox: Sandbox, namespace: str, name: str, script: str, **spec: Any) -> None:
    body = {
        "apiVersion": "slurm-bridge.dev/v1alpha1",
        "kind": "SlurmJob",
        "metadata": {"name": name},
        "spec": {
            "script": f"#!/bin/sh\n#SBATCH --mem=16 --time=5\n{script}\n",
            "output": {
                "claimName": "scratch",
                "clusterPath": str(sandbox.instance.shared),
            },
            **spec,
        },
    }
    sandbox.admin.create(f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{namespace}/slurmjobs", body)


def test_the_log_is_the_output_while_the_job_runs_and_its_end_is_the_jobs(
    both: Sandbox, namespace: str
) -> None:
    go = both.instance.shared / BATCH_USER.name / f"go-{namespace}"
    wait_to_go = f"while ! [ -e {go} ]; do sleep 0.2; done"
    submit(both, namespace, "train", f"echo begun; {wait_to_go}; echo over >&2; exit 3")

    def logs() -> str:
        return both.kubectl("-n", namespace, "logs", "train-job", "--ignore-errors=true")

    def pods() -> list[str]:
        listed = both.kubectl("-n", namespace, "get", "pods", "--output=name")
        return listed.split()

    wait_until(lambda: pods() == ["pod/train-job"], PATIENCE_S, sandbox=both)
    wait_until(lambda: _phase(both, namespace) == "Running", PATIENCE_S, sandbox=both)
    wait_until(lambda: logs() == "begun\n", PATIENCE_S, sandbox=both)
    go.touch()
    wait_until(lambda: _phase(both, namespace) == "Failed", PATIENCE_S, sandbox=both)

    assert "begun\nover\n" == logs() == both.kubectl("slurm", "logs", "train", "-n", namespace)
    pod = json.loads(both.kubectl("-n", namespace, "get", "pod", "train-job", "--output=json"))
    (ended,) = pod["status"]["containerStatuses"]
    assert 3 == ended["state"]["terminated"]["exitCode"]
    assert BATCH_USER.uid == pod["spec"]["securityContext"]["runAsUser"]
    assert not pod["metadata"].get("finalizers")
    both.kubectl("-n", namespace, "delete", "slurmjob", "train")
    wait_until(lambda: pods() == [], PATIENCE_S, sandbox=both)


def test_the_companion_reads_as_the_jobs_user(both: Sandbox, namespace: str) -> None:
    """Another user's file on the same volume stays closed to it, whatever the script calls its output."""
    secret = both.instance.shared / "bob" / f"secret-{namespace}"
    secret.write_text("bob's own\n")
    secret.chmod(0o600)
    os.chown(secret, nss.PEOPLE[1].uid, nss.PEOPLE[1].gid)
    link = both.instance.shared / BATCH_USER.name / f"link-{namespace}"
    submit(
        both,
        namespace,
        "thief",
        f"#SBATCH --output={link}\nrm {link}; ln -s ../bob/secret-{namespace} {link}; sleep 2",
    )

    wait_until(lambda: _phase(both, namespace, "thief") == "Succeeded", PATIENCE_S, sandbox=both)

    logs = both.kubectl("-n", namespace, "logs", "thief-job")
    assert "bob's own" not in logs
    assert "Permission denied" in logs


def test_results_are_on_their_claim_before_the_slurm_job_has_succeeded(
    both: Sandbox, namespace: str
) -> None:
    shared, folder = both.instance.shared, f"kept-{namespace}"
    (shared / folder).mkdir(mode=0o700)
    os.chown(shared / folder, BATCH_USER.uid, BATCH_USER.gid)
    out = f"out-{namespace}"

    with claimed(both, namespace, "kept", f"/shared/{folder}"):
        submit(
            both,
            namespace,
            "train",
            f"mkdir {out}; echo 42 > {out}/answer; ln -s answer {out}/latest; chmod 640 {out}/answer",
            options={"chdir": f"{shared}/{BATCH_USER.name}"},
            results=[{"from": out, "to": {"claimName": "kept", "path": "runs/%j"}}],
        )
        job = ("-n", namespace, "slurmjob/train")
        both.kubectl("wait", *job, "--for=condition=Complete", "--timeout=120s")
        status = json.loads(both.kubectl("get", *job, "--output=json"))["status"]

        arrived = shared / folder / "runs" / str(status["jobId"]) / out
        assert ("Succeeded", "Collected") == (status["phase"], status["results"]["phase"])
        assert ("42\n", BATCH_USER.uid, 0o640) == (
            (arrived / "answer").read_text(),
            (arrived / "answer").stat().st_uid,
            (arrived / "answer").stat().st_mode & 0o777,
        )
        assert Path("answer") == (arrived / "latest").readlink()
        logs = both.kubectl("-n", namespace, "logs", "train-collect-1")
        assert "2 files, 3 bytes\n" == logs
        both.kubectl("-n", namespace, "delete", "slurmjob", "train")


def _phase(sandbox: Sandbox, namespace: str, name: str = "train") -> str:
    return sandbox.kubectl(
        *("-n", namespace, "get", "pod", f"{name}-job", "--ignore-not-found"),
        "--output=jsonpath={.status.phase}",
    )
