"""Slurm comes back without its state, Kubernetes from an older backup: real containers run on, and both sides meet again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests import backups
from tests.realnodes.conftest import OPTIONS
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

RESTORED_S = 120.0
LITTLE = {"cpu": "500m"}
SCRIPT = "until [ -e /go ]; do sleep 0.1; done; exit 3"


@pytest.fixture
def containers(able: None) -> Iterator[Containers]:
    """In a sandbox of its own: job ids begin anew."""
    with (
        running_sandbox(replace(OPTIONS, real_nodes=1, real_gpus=0)) as sandbox,
        fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace,
    ):
        yield Containers(sandbox, namespace)


def test_containers_run_on_and_get_their_jobs_back(containers: Containers) -> None:
    sandbox = containers.sandbox
    containers.create("stays", SCRIPT)
    began = containers.runs("stays")["status"]["containerStatuses"]

    lost = running(sandbox)

    sandbox.restart("slurmctld", signal="KILL", wipe=True)
    wait_until(lambda: running(sandbox) not in ([], lost), RESTORED_S, sandbox=sandbox)

    assert began == containers.get("stays")["status"]["containerStatuses"]
    containers.exec("stays", "touch", "/go")
    containers.ends("stays")
    assert ("FAILED", "3:0") == containers.accounted("stays")


def test_containers_run_on_while_kubernetes_comes_back_older(
    containers: Containers, tmp_path: Path
) -> None:
    """Its kubelet ends the container of a pod that the backup does not know; then Slurm's job ends, too."""
    sandbox = containers.sandbox
    containers.create("stays", SCRIPT, limits=LITTLE)
    began = containers.runs("stays")["status"]["containerStatuses"]
    backups.keep_kubernetes(sandbox, tmp_path / "etcd")
    containers.create("younger", SCRIPT, limits=LITTLE)
    containers.runs("younger")
    younger = containers.job_of("younger")

    backups.put_back_kubernetes(sandbox, tmp_path / "etcd")

    assert "CANCELLED" == containers.accounted_job(younger, RESTORED_S)[0]
    assert began == containers.get("stays")["status"]["containerStatuses"]
    containers.exec("stays", "touch", "/go")
    containers.ends("stays")
    assert ("FAILED", "3:0") == containers.accounted("stays")


def running(sandbox: Sandbox) -> list[str]:
    """Return the ids of the jobs that run, and when they were submitted."""
    return sandbox.run("squeue", "-h", "-t", "RUNNING", "-o", "%i %V").splitlines()
