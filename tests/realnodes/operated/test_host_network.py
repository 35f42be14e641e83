"""Workers with the network of their machines: Slurm has them by their own names, and no second one gets a machine's port."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
JOB_S = 30
MACHINES: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "NodeSet",
    "metadata": {"name": "machines"},
    "spec": {
        "replicas": 2,
        "controllerRef": {"name": "site"},
        "partition": {"enabled": True},
        "template": {"spec": {"hostNetwork": True}},
    },
}


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """A Slurm whose only workers have the network of their machines."""
    with slurm_in_pods(slurm_images) as found:
        found.scale("workers", 0)
        wait_until(lambda: found.workers() == [], LEAVES_S, sandbox=found.sandbox)
        found.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(MACHINES))
        wait_until(lambda: is_ready(found), STARTS_S, sandbox=found.sandbox)
        yield found


def is_ready(in_pods: InPods) -> bool:
    return in_pods.condition("nodesets", "machines", "Ready")[0] == "True"


def submit(in_pods: InPods) -> str:
    """Submit a job that wants both machines; return its id."""
    size = ("--parsable", "--output=/dev/null", "-p", "machines", "-N2")
    return in_pods.run("sbatch", *size, "--wrap", f"srun sleep {JOB_S}").strip()


def test_a_job_runs_on_two_of_them_and_one_that_goes_waits_for_it(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    assert ["machines-0", "machines-1"] == in_pods.workers()
    for name in in_pods.workers():
        told = sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")["status"]
        assert told["hostIP"] == told["podIP"]
    listed = ("sinfo", "-h", "-N", "-p", "machines", "-o", "%N %t")
    wait_until(
        lambda: in_pods.run(*listed).splitlines() == ["machines-0 idle", "machines-1 idle"],
        STARTS_S,
        sandbox=sandbox,
    )
    job = submit(in_pods)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    in_pods.scale("machines", 1)
    wait_until(lambda: {*in_pods.workers()} & {*in_pods.drained()}, LEAVES_S, sandbox=sandbox)
    assert ["machines-0", "machines-1"] == in_pods.workers()
    wait_until(lambda: len(in_pods.workers()) == 1, LEAVES_S, sandbox=sandbox)
    assert "COMPLETED" == in_pods.state(job)


def test_a_worker_for_which_no_machine_has_a_port_waits_and_says_so(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    in_pods.scale("machines", 3)
    wait_until(
        lambda: "free ports" in in_pods.condition("nodesets", "machines", "Ready")[1],
        LEAVES_S,
        sandbox=sandbox,
    )
    in_pods.scale("machines", 2)
    wait_until(lambda: is_ready(in_pods), LEAVES_S, sandbox=sandbox)
    assert ["machines-0", "machines-1"] == in_pods.workers()
