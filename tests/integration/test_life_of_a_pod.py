"""An ordinary pod, from CREATE to the end of its placeholder; and one that is none of our business."""

import re

import pytest

from slurmruntime.values import names
from tests.integration.worlds import (
    Worlds,
    condition,
    container,
    is_gated,
    is_released,
    job_id,
    played,
)

_RUN_S = 15.0  # long enough to be seen running


def test_an_ordinary_pod_runs_where_slurm_says_and_is_accounted_for(worlds: Worlds) -> None:
    uid = worlds.submit("ordinary", cpus="2", annotations=played(seconds=_RUN_S))

    running = worlds.await_phase("ordinary", "Running")
    job = worlds.live(uid)[0]
    assert "RUNNING" == job.state
    assert job.nodes == running["spec"]["nodeName"]
    assert job.id == job_id(running)
    assert job.nodes == running["metadata"]["annotations"][names.NODE_ANNOTATION]
    assert not is_gated(running)
    assert not is_released(running)

    ended = worlds.await_pod("ordinary", is_released)
    assert "Succeeded" == ended["status"]["phase"]
    assert not condition(ended)
    accounted = worlds.await_accounted(uid)
    assert ("COMPLETED", "0:0", job.nodes) == (
        accounted.state,
        accounted.exit_code,
        accounted.nodes,
    )


def test_the_webhook_hands_a_pod_over_at_create(worlds: Worlds) -> None:
    with_gate = {"containers": [container()], "schedulingGates": [{"name": "example.test/other"}]}
    body = {"metadata": {"name": "handed-over"}, "spec": with_gate}

    pod = worlds.sandbox.admin.create(f"{worlds.path}/pods", body)

    assert pod["spec"]["schedulerName"] in names.schedulers(names.SCHEDULER_NAME)
    gates = {gate["name"] for gate in pod["spec"]["schedulingGates"]}
    assert {"example.test/other", names.GATE} == gates
    assert [names.FINALIZER] == pod["metadata"]["finalizers"]
    tolerated = {toleration["key"] for toleration in pod["spec"]["tolerations"]}
    assert names.MANAGED_NODE_TAINT in tolerated


def test_a_pod_of_an_unlabelled_namespace_is_left_alone(elsewhere: Worlds) -> None:
    uid = elsewhere.submit("plain", annotations=played(seconds=1))

    ended = elsewhere.await_phase("plain", "Succeeded")

    assert "plain-0" == ended["spec"]["nodeName"]
    assert names.DEFAULT_SCHEDULER_NAME == ended["spec"]["schedulerName"]
    assert [] == re.findall(r"(?<!sandbox\.)slurm-bridge|slinky", str(ended))
    assert [] == elsewhere.accounted(uid)


def test_a_node_of_slurms_is_closed_to_pods_of_other_namespaces(elsewhere: Worlds) -> None:
    elsewhere.submit("too-big", cpus="8")
    elsewhere.submit("bigger-than-what-is-left", cpus="8")

    elsewhere.await_phase("too-big", "Running")
    says = elsewhere.await_pod(
        "bigger-than-what-is-left", lambda pod: condition(pod, "PodScheduled")
    )

    told = condition(says, "PodScheduled")["message"]
    assert "1 Insufficient cpu, 4 node(s) had untolerated taint" in told


@pytest.mark.parametrize("cpus", ["100m", "1500m"])
def test_cpus_are_rounded_up_to_whole_ones(worlds: Worlds, cpus: str) -> None:
    uid = worlds.submit("fraction", cpus=cpus)
    job = worlds.await_live(uid, lambda job: job.state == "RUNNING")

    asked = worlds.scontrol("show", "job", str(job.id))

    assert f"NumCPUs={'1' if cpus == '100m' else '2'} " in asked
    worlds.delete("fraction")
