"""Slurm picks a node that Kubernetes cannot take: the pod ends up elsewhere, and nobody has to go for it."""

import pytest

from bridge.domain.lifecycle.actions import OwnCause
from sandbox.api import Api
from slurmruntime.values import names
from tests.integration.machines import Machine
from tests.integration.tampering import BREAK_GLASS
from tests.integration.volumes import a_resource, a_volume, mounted
from tests.integration.worlds import HOST_PORT, Worlds, condition, container, job_id

_TOLERATES_SLURMS_NODES = [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}]


def test_a_pod_goes_elsewhere_when_foreign_pods_are_in_its_way_on_the_node_slurm_picked(
    worlds: Worlds, elsewhere: Worlds
) -> None:
    elsewhere.submit(
        "squatter",
        containers=[{**container("100m"), **HOST_PORT}],
        tolerations=_TOLERATES_SLURMS_NODES,
        nodeSelector={"kubernetes.io/hostname": "node-0"},
    )
    elsewhere.await_phase("squatter", "Running")
    with worlds.strangers_on("node-1", "node-2", "node-3") as strangers:
        uid = worlds.submit("moves", containers=[{**container("2"), **HOST_PORT}])

        told = worlds.await_event("moves", "NodeMisfit")
        assert "got node node-0, but host port 8080/TCP is taken" in told
        second = worlds.await_live(uid, lambda job: job.state == "PENDING")

        worlds.scancel(strangers["node-2"])
        running = worlds.await_phase("moves", "Running")

    assert "node-2" == running["spec"]["nodeName"]
    assert second.id == job_id(running)
    assert uid == running["metadata"]["uid"]
    ends = {job.id: (job.state, job.identity.cause) for job in worlds.jobs(uid) if job.identity}
    first = min(ends)
    assert {first: ("CANCELLED", OwnCause.MISFIT), second.id: ("RUNNING", "")} == ends
    assert "Running" == elsewhere.await_pod("squatter", bool)["status"]["phase"]


def test_a_pod_goes_elsewhere_when_foreign_pods_have_all_the_slots_of_a_node(
    machine: Machine, worlds: Worlds, elsewhere: Worlds
) -> None:
    """Slurm counts no pods, so its first choice is wrong once; and the next submit avoids the node."""
    machine.set_status({"allocatable": {"pods": "1"}})
    machine.label("true")
    machine.await_in_slurm(lambda node: node["State"].startswith("IDLE"))
    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        elsewhere.submit("squatter", cpus="100m", by=medic, nodeName=machine.name)
    elsewhere.await_phase("squatter", "Running")
    nodes = {
        "key": "kubernetes.io/hostname",
        "operator": "In",
        "values": [machine.name, "node-2"],
    }
    terms = {"nodeSelectorTerms": [{"matchExpressions": [nodes]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    with worlds.strangers_on("node-2") as strangers:
        uid = worlds.submit("moves", affinity=affinity)

        told = worlds.await_event("moves", "NodeMisfit")
        assert f"got node {machine.name}, but too many pods (1 allowed)" in told
        worlds.await_live(uid, lambda job: job.state == "PENDING")
        worlds.scancel(strangers["node-2"])
        running = worlds.await_phase("moves", "Running")

    assert "node-2" == running["spec"]["nodeName"]
    assert 2 == len(worlds.jobs(uid))


def test_a_pod_waits_for_what_terminates_on_its_node(worlds: Worlds) -> None:
    """Slurm frees a node at once, containers take their grace."""
    with worlds.strangers_on("node-1", "node-2", "node-3"):
        before = worlds.submit(
            "before",
            cpus="8",
            annotations={"sandbox.slurm-bridge.dev/stop-seconds": "5"},
            terminationGracePeriodSeconds=10,
        )
        worlds.await_phase("before", "Running")
        uid = worlds.submit("after", cpus="8")
        worlds.await_live(uid, lambda job: job.state == "PENDING")

        worlds.scancel(worlds.live(before)[0].id)

        told = worlds.await_pod(
            "after", lambda pod: condition(pod).get("reason") == "NodeTerminatingPods"
        )
        job = worlds.live(uid)[0]
        assert f"Slurm job {job.id} has node node-0" in condition(told)["message"]
        running = worlds.await_phase("after", "Running")
        assert ("node-0", job.id) == (running["spec"]["nodeName"], job_id(running))
        assert [job.id] == [one.id for one in worlds.jobs(uid)]


def test_a_pod_goes_where_its_volume_is(worlds: Worlds) -> None:
    with a_volume(worlds, "data", "node-2"):
        uid = worlds.submit("reads", volumes=[mounted("data")])
        running = worlds.await_phase("reads", "Running")

        assert "node-2" == running["spec"]["nodeName"]
        assert 1 == len(worlds.jobs(uid))
        lost = worlds.submit("lost", volumes=[mounted("missing")])
        told = worlds.await_pod("lost", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    assert "claim missing does not exist" in condition(told)["message"]
    assert [] == worlds.jobs(lost)


@pytest.mark.attack(
    "ask for what no node has, so that jobs start and are cancelled without end",
    "such a pod is not submitted",
)
def test_a_pod_goes_where_there_is_what_slurm_does_not_count(worlds: Worlds) -> None:
    """And not to Slurm at all, if no node could ever hold it."""

    def asking(name: str, **amounts: str) -> str:
        resources = {
            key: {"cpu": "1", "memory": "64Mi", **amounts} for key in ("requests", "limits")
        }
        return worlds.submit(name, containers=[{**container(), "resources": resources}])

    with a_resource(worlds, "node-3", "example.test/hca", 4):
        uid = asking("feasible", **{"example.test/hca": "1"})
        running = worlds.await_phase("feasible", "Running")
        assert "node-3" == running["spec"]["nodeName"]
        assert 1 == len(worlds.jobs(uid))

        hopeless = {"hca": {"example.test/hca": "5"}, "disk": {"ephemeral-storage": "10Ti"}}
        for name, amounts in hopeless.items():
            uid = asking(name, **amounts)
            told = worlds.await_pod(
                name, lambda pod: condition(pod).get("reason") == "SubmitRefused"
            )
            assert "nodes that suit the pod has" in condition(told)["message"]
            assert [] == worlds.jobs(uid)
