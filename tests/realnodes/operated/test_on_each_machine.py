"""Slurm forgets the node of a worker whose machine has another name now, and no other (`pruneSlurmNodeRecords`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.workers.placing import HOST_ANNOTATION
from sandbox.image.slurm import SlurmImage
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
FORGETS_S = 600.0
"""slurmctld looks every few minutes whether a slurmd answers."""
ON_EACH: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "NodeSet",
    "metadata": {"name": "each"},
    "spec": {
        "scalingMode": "DaemonSet",
        "controllerRef": {"name": "site"},
        "partition": {"enabled": True},
        "pruneSlurmNodeRecords": "NodeNotFound",
    },
}


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """A Slurm with a worker on each machine."""
    with slurm_in_pods(slurm_images) as found:
        found.scale("workers", 0)
        wait_until(lambda: found.workers() == [], LEAVES_S, sandbox=found.sandbox)
        found.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(ON_EACH))
        wait_until(lambda: len(listed(found)) == 2, STARTS_S, sandbox=found.sandbox)
        yield found


def listed(in_pods: InPods) -> set[str]:
    """The nodes that Slurm has in the partition of these workers."""
    return {*in_pods.run("sinfo", "-h", "-N", "-p", "each", "-o", "%N").split()}


def test_a_machine_with_another_name_leaves_none_of_its_old_one(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    first, second = in_pods.workers()
    where = f"/api/v1/namespaces/{NAMESPACE}/pods"
    old, other = (
        sandbox.admin.get(f"{where}/{each}")["spec"]["hostname"] for each in (first, second)
    )
    assert {old, other} == listed(in_pods)
    machine = first.removeprefix("each-")
    sandbox.admin.patch(
        f"/api/v1/nodes/{machine}", {"metadata": {"annotations": {HOST_ANNOTATION: "renamed"}}}
    )
    sandbox.admin.delete(f"{where}/{first}")
    wait_until(lambda: "renamed" in listed(in_pods), LEAVES_S, sandbox=sandbox)
    wait_until(lambda: listed(in_pods) == {"renamed", other}, FORGETS_S, sandbox=sandbox)
    state = ("sinfo", "-h", "-n", "renamed", "-o", "%t")
    wait_until(lambda: in_pods.run(*state) == "idle\n", STARTS_S, sandbox=sandbox)
