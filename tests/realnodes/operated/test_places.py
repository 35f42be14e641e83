"""Where workers are and what they keep there: their machines, their volumes, their places in Slurm's topology, and their service."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from slurmoperator.rendering.node_sets.claims import UNNEEDED_ANNOTATION
from slurmruntime.values.names import TOPOLOGY_ANNOTATION
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
REACHES_S = 240.0
UNNEEDED_S = 180.0
"""A volume goes a minute after its worker."""
NODE_SET = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/kept"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SWITCHES = """\
- topology: switches
  cluster_default: true
  tree:
    switches:
      - {switch: root, children: "s[0-1]"}
      - {switch: s0}
      - {switch: s1}
"""
SLURM_CONF = "SlurmdTimeout=30\n"
"""Seconds until a worker that does not answer is DOWN."""
SIZE = "1Mi"
FOLDER = "/var/lib/kubelet"
"""Of each machine, on its own disk."""
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "",
    "resources": {"requests": {"storage": SIZE}},
}
KEPT: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "NodeSet",
    "metadata": {"name": "kept"},
    "spec": {
        "replicas": 2,
        "controllerRef": {"name": "site"},
        "partition": {"enabled": True},
        "pinToNode": True,
        "slurmd": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
    },
}


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """A Slurm with two switches, and a worker with a volume on each of two machines."""
    files = {"topology.yaml": SWITCHES}
    with slurm_in_pods(slurm_images, files=files, slurm_conf=SLURM_CONF) as found:
        found.scale("workers", 0)
        wait_until(lambda: found.workers() == [], LEAVES_S, sandbox=found.sandbox)
        for number in range(2):
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": SIZE},
                "hostPath": {"path": f"{FOLDER}/kept-{number}", "type": "DirectoryOrCreate"},
            }
            volume = {"metadata": {"name": f"kept-{number}"}, "spec": spec}
            found.sandbox.admin.create("/api/v1/persistentvolumes", volume)
        found.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(KEPT))
        wait_until(lambda: is_ready(found), STARTS_S, sandbox=found.sandbox)
        # The kubelet brings slurmctld the partition with its next look at the configuration.
        for worker in found.workers():
            wait_until(
                lambda worker=worker: state(found, worker) == "idle",  # type: ignore[misc]  # bound now
                REACHES_S,
                sandbox=found.sandbox,
            )
        yield found


def is_ready(in_pods: InPods) -> bool:
    """Check whether there are as many ready workers as are wanted."""
    return in_pods.condition("nodesets", "kept", "Ready")[0] == "True"


def state(in_pods: InPods, worker: str) -> str:
    """How Slurm has a worker."""
    return in_pods.run("sinfo", "-h", "-N", "-n", worker, "-p", "kept", "-o", "%t").strip()


def in_worker(in_pods: InPods, worker: str, script: str) -> str:
    """Run a script beside slurmd; return what it prints."""
    command = ("exec", worker, "-c", "slurmd", "--", "sh", "-c", script)
    return in_pods.sandbox.kubectl("-n", NAMESPACE, *command)


def claims(in_pods: InPods) -> dict[str, dict[str, Any]]:
    """The metadata of the claims that nobody has deleted, by name."""
    path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    found = [item["metadata"] for item in in_pods.sandbox.admin.get(path)["items"]]
    return {each["name"]: each for each in found if "deletionTimestamp" not in each}


def is_unneeded(in_pods: InPods, claim: str) -> bool:
    """Check whether a claim is there and marked."""
    found = claims(in_pods).get(claim, {})
    return UNNEEDED_ANNOTATION in found.get("annotations", {})


def test_a_worker_that_comes_back_at_once_has_its_volume_and_later_there_is_none(
    in_pods: InPods,
) -> None:
    sandbox = in_pods.sandbox
    before = claims(in_pods)
    assert {"data-kept-0", "data-kept-1"} == {*before}
    in_worker(in_pods, "kept-1", "echo written > /data/file")
    in_pods.scale("kept", 1)
    wait_until(lambda: is_unneeded(in_pods, "data-kept-1"), LEAVES_S, sandbox=sandbox)
    assert ["kept-0"] == in_pods.workers()
    in_pods.scale("kept", 2)
    wait_until(
        lambda: in_pods.workers() == ["kept-0", "kept-1"] and in_pods.is_ready("kept-1"),
        STARTS_S,
        sandbox=sandbox,
    )
    assert not is_unneeded(in_pods, "data-kept-1")
    assert "written\n" == in_worker(in_pods, "kept-1", "cat /data/file")

    in_pods.scale("kept", 1)
    wait_until(lambda: {*claims(in_pods)} == {"data-kept-0"}, UNNEEDED_S, sandbox=sandbox)
    assert before["data-kept-0"]["uid"] == claims(in_pods)["data-kept-0"]["uid"]
    assert not is_unneeded(in_pods, "data-kept-0")
    assert ["kept-0"] == in_pods.workers()


def test_a_worker_waits_for_its_own_machine_and_has_its_volume_there(in_pods: InPods) -> None:
    """After the test above: the other machine is free."""
    sandbox, where = in_pods.sandbox, f"{PODS}/kept-0"
    pod = sandbox.admin.get(where)
    machine, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
    assert {"0": machine} == sandbox.admin.get(NODE_SET)["status"]["ordinalToNode"]
    in_worker(in_pods, "kept-0", "echo written > /data/file")
    sandbox.kubectl("cordon", machine)
    try:
        sandbox.kubectl("-n", NAMESPACE, "delete", "pod", "kept-0")

        def waits() -> bool:
            found = sandbox.admin.get(PODS, fieldSelector="metadata.name=kept-0")["items"]
            return any(each["metadata"]["uid"] != uid and is_unfit(each) for each in found)

        wait_until(waits, LEAVES_S, sandbox=sandbox)
        assert "nodeName" not in sandbox.admin.get(where)["spec"]
    finally:
        sandbox.kubectl("uncordon", machine)
    wait_until(lambda: state(in_pods, "kept-0") == "idle", STARTS_S, sandbox=sandbox)
    assert machine == sandbox.admin.get(where)["spec"]["nodeName"]
    assert "written\n" == in_worker(in_pods, "kept-0", "cat /data/file")


def is_unfit(pod: dict[str, Any]) -> bool:
    """Check whether kube-scheduler has found no machine for a pod."""
    conditions = pod["status"].get("conditions", ())
    return any(condition.get("reason") == "Unschedulable" for condition in conditions)


def test_a_worker_is_where_its_machine_says_in_slurms_topology(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    machine = sandbox.admin.get(f"{PODS}/kept-0")["spec"]["nodeName"]

    def say(topology: str) -> None:
        annotations = {TOPOLOGY_ANNOTATION: topology}
        sandbox.admin.patch(f"/api/v1/nodes/{machine}", {"metadata": {"annotations": annotations}})

    def place() -> list[str]:
        return re.findall(r"Topology=(\S+)", in_pods.run("scontrol", "show", "node", "kept-0"))

    for switch in ("switches:s1", "switches:s0"):
        say(switch)
        wait_until(lambda switch=switch: place() == [switch], LEAVES_S, sandbox=sandbox)  # type: ignore[misc]  # bound now
    say("switches:nowhere")
    wait_until(
        lambda: "nowhere" in in_pods.condition("nodesets", "kept", "Accepted")[1],
        LEAVES_S,
        sandbox=sandbox,
    )
    assert machine in in_pods.condition("nodesets", "kept", "Accepted")[1]
    assert ["switches:s0"] == place()
    assert in_pods.is_ready("kept-0")
    say("switches:s1")
    wait_until(lambda: place() == ["switches:s1"], LEAVES_S, sandbox=sandbox)


def test_a_worker_that_was_down_is_in_service_again_when_it_answers(in_pods: InPods) -> None:
    """Once because it was out of reach, and once because somebody said so."""
    sandbox = in_pods.sandbox
    with in_pods.frozen("slurmd"):
        wait_until(lambda: state(in_pods, "kept-0") == "down*", LEAVES_S, sandbox=sandbox)
    wait_until(lambda: state(in_pods, "kept-0") == "idle", LEAVES_S, sandbox=sandbox)

    in_pods.run("scontrol", "update", "nodename=kept-0", "state=down", "reason=mine")
    assert "down" == state(in_pods, "kept-0")
    in_pods.kill_worker("kept-0")
    wait_until(lambda: state(in_pods, "kept-0") == "idle", LEAVES_S, sandbox=sandbox)
    job = in_pods.submit("kept-0", 1, partition="kept")
    wait_until(lambda: in_pods.state(job) == "COMPLETED", LEAVES_S, sandbox=sandbox)


def test_volumes_outlive_a_nodeset_unless_it_says_otherwise(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox

    def delete() -> None:
        sandbox.kubectl("-n", NAMESPACE, "delete", "nodeset", "kept", f"--timeout={LEAVES_S:g}s")

    (kept,) = claims(in_pods).values()
    delete()
    assert [] == in_pods.workers()
    (left,) = claims(in_pods).values()
    assert kept["uid"] == left["uid"]
    fate = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    again = {**KEPT["spec"], "replicas": 1, "persistentVolumeClaimRetentionPolicy": fate}
    sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps({**KEPT, "spec": again}))
    wait_until(lambda: is_ready(in_pods), STARTS_S, sandbox=sandbox)
    assert kept["uid"] == claims(in_pods)["data-kept-0"]["uid"]
    delete()
    wait_until(lambda: claims(in_pods) == {}, LEAVES_S, sandbox=sandbox)
