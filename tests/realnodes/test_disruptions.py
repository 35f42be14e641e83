"""Pods that go for no fault of their own: both systems, and the pods' controllers, hear that."""

import pytest

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers, running
from tests.realnodes.disrupted import UNLESS_DISRUPTED


def test_pods_of_a_node_that_crashed_are_not_held_against_their_jobs(
    real: Sandbox, containers: Containers
) -> None:
    gpu = {"nvidia.com/gpu": "1", "cpu": "500m"}
    containers.create_job("plain", "sleep 600", node="real-0", spec=UNLESS_DISRUPTED)
    containers.create_job("device", "sleep 600", node="real-0", limits=gpu, spec=UNLESS_DISRUPTED)
    first = {job: containers.pod_of(job) for job in ("plain", "device")}
    for name in first.values():
        containers.runs(name)
    ids = {job: containers.job_of(name) for job, name in first.items()}

    real.restart("real-0", signal="KILL")

    for job, name in first.items():
        ended = containers.accounted_job(ids[job])[0]
        status = containers.get(name)["status"]
        assert "NODE_FAIL" == ended, status
        disrupted = [c["reason"] for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert ["SlurmNodeFail"] == disrupted
        containers.runs(containers.pod_of(job, after=name))


@pytest.mark.real_all
def test_a_critical_pod_that_a_kubelet_is_given_by_name_throws_others_out(
    real: Sandbox, containers: Containers
) -> None:
    """Only from excluded and listed namespaces (policy `direct`): the administrator's own."""
    containers.create("ordinary", "sleep 600", node="real-1", limits={"cpu": "1500m"})
    containers.runs("ordinary")
    usual = running(["sleep 600"], limits={"cpu": "1"})
    spec = {**usual, "nodeName": "real-1", "priorityClassName": "system-node-critical"}
    path = "/api/v1/namespaces/kube-system/pods"

    real.admin.create(path, {"metadata": {"name": "urgent"}, "spec": spec})
    try:
        status = containers.ends("ordinary")["status"]
        assert "Preempting" == status["reason"]
        assert ("FAILED", "255:0") == containers.accounted("ordinary")
        reasons = [c["reason"] for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert ["TerminationByKubelet"] == reasons
    finally:
        real.admin.delete(f"{path}/urgent")
