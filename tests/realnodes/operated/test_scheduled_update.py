"""An update at a time that a NodeSet names: Slurm keeps jobs off, and the job that runs then is waited for."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sandbox.image.slurm import SlurmImage
from slurmruntime.kube.meta import rfc3339
from slurmruntime.process.clock import SystemClock
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

NODE_SET = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/workers"
RESERVATION = "SlurmOperatorMaint-workers"
BEGINS_IN = timedelta(seconds=60)
JOB_S = 90
"""Longer than it takes until the window begins."""
REPLACED_S = 300.0


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images) as found:
        wait_until(lambda: found.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
        yield found


def uids(in_pods: InPods) -> set[str]:
    """The workers' pods."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    found = in_pods.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
    return {item["metadata"]["uid"] for item in found["items"]}


def reservation(in_pods: InPods, nodes: str) -> str:
    """What Slurm says of the reservation if it has these nodes, otherwise ""."""
    shown = in_pods.run("scontrol", "-o", "show", "reservation", RESERVATION)
    return shown if f" Nodes={nodes} " in shown else ""


def condition(in_pods: InPods, kind: str) -> str:
    return in_pods.condition("nodesets", "workers", kind)[0]


def test_workers_are_replaced_in_their_reservation(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    before = uids(in_pods)
    job = in_pods.submit("workers-1", JOB_S)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    begins = SystemClock().now() + BEGINS_IN
    window = {"startTime": rfc3339(begins.replace(microsecond=0)), "duration": "10m"}
    strategy = {"type": "ScheduledUpdate", "scheduledUpdate": window}
    template = {"metadata": {"annotations": {"example.test/rack": "7"}}}
    sandbox.admin.patch(NODE_SET, {"spec": {"updateStrategy": strategy, "template": template}})
    wait_until(
        lambda: condition(in_pods, "ReservationCreated") == "True", STARTS_S, sandbox=sandbox
    )
    # The operator may have read Slurm last when it did not have both workers yet.
    shown = wait_until(lambda: reservation(in_pods, "workers-[0-1]"), STARTS_S, sandbox=sandbox)
    assert "MAINT" in shown
    if SystemClock().now() < begins:
        assert before == uids(in_pods)

    wait_until(lambda: condition(in_pods, "Updated") == "True", REPLACED_S, sandbox=sandbox)
    assert SystemClock().now() > begins
    assert not before & uids(in_pods)
    assert "COMPLETED" == in_pods.state(job)
    wait_until(lambda: condition(in_pods, "ReservationCreated") == "", STARTS_S, sandbox=sandbox)
    assert RESERVATION not in in_pods.run("scontrol", "-o", "show", "reservation")
    wait_until(
        lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S, sandbox=sandbox
    )
