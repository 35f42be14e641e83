"""A worker on each machine that is selected: it comes with the machine, leaves it after its job, and Slurm forgets its old name."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from slurmoperator.nodesets.plan.placing import HOST_ANNOTATION
from tests.realnodes.in_pods import NAMESPACE, OPTIONS, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
JOB_S = 30
MACHINES = OPTIONS.real_node_names
FORGETS_S = 180.0
SLURM_CONF = "SlurmdTimeout=30\n"
"""slurmctld looks three times as often whether a slurmd answers."""
LABEL = "example.test/slurm"
ON_EACH: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "NodeSet",
    "metadata": {"name": "each"},
    "spec": {
        "scalingMode": "DaemonSet",
        "controllerRef": {"name": "site"},
        "partition": {"enabled": True},
        "pruneSlurmNodeRecords": "NodeNotFound",
        "template": {"spec": {"nodeSelector": {LABEL: "yes"}}},
    },
}


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """A Slurm with a worker on each of two machines; the first one was selected before the second."""
    with slurm_in_pods(slurm_images, slurm_conf=SLURM_CONF) as found:
        found.scale("workers", 0)
        wait_until(lambda: found.workers() == [], LEAVES_S, sandbox=found.sandbox)
        found.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(ON_EACH))
        for count, machine in enumerate(MACHINES, 1):
            select(found, machine, "yes")
            names = [f"each-{each}" for each in MACHINES[:count]]
            wait_until(
                lambda names=names: found.workers() == names,  # type: ignore[misc]  # bound now
                LEAVES_S,
                sandbox=found.sandbox,
            )
        wait_until(lambda: idle(found) == {*MACHINES}, STARTS_S, sandbox=found.sandbox)
        yield found


def select(in_pods: InPods, machine: str, said: str | None) -> None:
    """Label a machine; None takes the label away."""
    in_pods.sandbox.admin.patch(f"/api/v1/nodes/{machine}", {"metadata": {"labels": {LABEL: said}}})


def listed(in_pods: InPods) -> set[str]:
    """The nodes that Slurm has in the partition of these workers."""
    return {*in_pods.run("sinfo", "-h", "-N", "-p", "each", "-o", "%N").split()}


def idle(in_pods: InPods) -> set[str]:
    """Those of them that wait for jobs."""
    return {*in_pods.run("sinfo", "-h", "-N", "-p", "each", "-t", "idle", "-o", "%N").split()}


def test_a_worker_leaves_a_machine_that_is_not_selected_any_more_after_its_job(
    in_pods: InPods,
) -> None:
    sandbox, (first, second) = in_pods.sandbox, MACHINES
    both = in_pods.workers()
    job = in_pods.submit(second, JOB_S, partition="each")
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    select(in_pods, second, None)
    wait_until(lambda: second in in_pods.drained(), LEAVES_S, sandbox=sandbox)
    assert (both, "RUNNING") == (in_pods.workers(), in_pods.state(job))
    wait_until(lambda: in_pods.workers() == [f"each-{first}"], LEAVES_S, sandbox=sandbox)
    assert "COMPLETED" == in_pods.state(job)
    assert {first, second} == listed(in_pods), "the machine is still there"
    select(in_pods, second, "yes")
    wait_until(lambda: idle(in_pods) == {first, second}, LEAVES_S, sandbox=sandbox)


def test_a_machine_with_another_name_leaves_none_of_its_old_one(in_pods: InPods) -> None:
    sandbox, (machine, other) = in_pods.sandbox, MACHINES
    annotations = {HOST_ANNOTATION: "renamed"}
    sandbox.admin.patch(f"/api/v1/nodes/{machine}", {"metadata": {"annotations": annotations}})
    sandbox.admin.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/each-{machine}")
    wait_until(lambda: "renamed" in listed(in_pods), LEAVES_S, sandbox=sandbox)
    wait_until(lambda: listed(in_pods) == {"renamed", other}, FORGETS_S, sandbox=sandbox)
    wait_until(lambda: idle(in_pods) == {"renamed", other}, STARTS_S, sandbox=sandbox)
