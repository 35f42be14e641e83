"""Labelled Kubernetes nodes are Slurm's to hand out, as big as what is left of them, for as long as both sides want that."""

import httpx
import pytest

from sandbox.api import Api
from slurmruntime.values import names
from tests.integration.machines import Machine
from tests.integration.tampering import BREAK_GLASS
from tests.integration.worlds import Manifest, Worlds, condition, container, is_released
from tests.servers import wait_until

_PATIENCE_S = 60.0


def test_a_labelled_node_is_registered_as_big_as_what_daemons_leave_of_it(
    machine: Machine, elsewhere: Worlds
) -> None:
    daemon_set(elsewhere, machine)
    elsewhere.await_one_pod("app=daemon", lambda pod: pod["status"]["phase"] == "Running")
    assert {} == machine.in_slurm()

    machine.label("true")

    node = machine.await_in_slurm(lambda node: node["State"].startswith("IDLE"))
    assert ("7", "16284", "gpu:2") == (node["CPUTot"], node["RealMemory"], node["Gres"])
    assert "EXTERNAL" in node["State"]
    assert "slurm-bridge" == node["Partitions"].strip()
    assert [names.MANAGED_NODE_TAINT] == machine.taints()


@pytest.mark.safeguard(
    "fillers",
    "a tenant runs a pod on Slurm's node past Slurm, which no user is charged for",
    "what it takes, without a charge. No tenant of a bridged namespace can, and elsewhere policies `bypass` and `direct` decide whether a pod may tolerate our taint",
)
@pytest.mark.attack(
    "make Slurm start and cancel jobs without end by a pod on its node that it does not know, or have the node drained",
    "fillers hold what such pods take; they drain no node in use",
)
def test_what_gets_to_a_node_past_slurm_is_held_back_and_drains_nothing(
    machine: Machine, worlds: Worlds, elsewhere: Worlds
) -> None:
    """Else Slurm would start jobs there whose pods do not fit, again and again."""
    machine.label("true")
    machine.await_in_slurm(lambda node: node["State"].startswith("IDLE"))
    resident = worlds.submit("resident", cpus="2", nodeSelector=machine.selector)
    worlds.await_phase("resident", "Running")

    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        elsewhere.submit("squatter", cpus="3", by=medic, nodeName=machine.name)
    node = machine.await_in_slurm(lambda node: int(node["CPUAlloc"]) == 5)
    fat = worlds.submit("fat", cpus="4", nodeSelector=machine.selector)
    worlds.await_pod("fat", lambda pod: condition(pod).get("reason") == "Resources")

    assert "DRAIN" not in node["State"]
    assert ["RUNNING"] == [job.state for job in worlds.live(resident)]
    assert ["PENDING"] == [job.state for job in worlds.live(fat)]
    assert "NodeMisfit" not in worlds.events("fat")
    url = worlds.sandbox.instance.url("controllers-health")
    metrics = httpx.get(f"{url}/metrics", trust_env=False).text
    assert f'slurm_bridge_other_pods{{namespace="{elsewhere.namespace}"}} 1.0' in metrics

    elsewhere.clear()
    worlds.await_phase("fat", "Running")


@pytest.mark.attack(
    "take a node's GPUs past Slurm, so that it starts and cancels jobs there without end",
    "fillers hold them in Slurm, too",
)
def test_gpus_that_are_taken_past_slurm_are_held_back(
    machine: Machine, worlds: Worlds, elsewhere: Worlds
) -> None:
    """And given back one by one: the filler of two makes room for its successor of one."""
    machine.label("true")
    machine.await_in_slurm(lambda node: node["State"].startswith("IDLE"))
    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        elsewhere.submit("both", containers=[with_gpus(2)], by=medic, nodeName=machine.name)
        machine.await_in_slurm(lambda node: "gres/gpu=2" in node["AllocTRES"])
        elsewhere.submit("one", containers=[with_gpus(1)], by=medic, nodeName=machine.name)
    uid = worlds.submit("wants", containers=[with_gpus(1)], nodeSelector=machine.selector)
    worlds.await_pod("wants", lambda pod: condition(pod).get("reason") == "Resources")

    elsewhere.delete("both")
    worlds.await_phase("wants", "Running")

    assert "NodeMisfit" not in worlds.events("wants")
    assert 1 == len(worlds.jobs(uid))
    machine.await_in_slurm(lambda node: "gres/gpu=2" in node["AllocTRES"])


def test_an_address_follows_in_place(machine: Machine) -> None:
    machine.label("true")
    machine.await_in_slurm()
    machine.set_status({"addresses": [{"type": "InternalIP", "address": "127.0.0.9"}]})

    machine.await_in_slurm(lambda node: node["NodeAddr"] == "127.0.0.9")


def test_an_unlabelled_nodes_pods_finish_before_slurm_lets_it_go(
    machine: Machine, worlds: Worlds
) -> None:
    machine.label("true")
    machine.await_in_slurm(bool)
    uid = worlds.submit("last", nodeSelector=machine.selector)
    worlds.await_phase("last", "Running")

    machine.label(None)

    machine.await_in_slurm(lambda node: "DRAIN" in node["State"])
    assert "Running" == worlds.await_pod("last", bool)["status"]["phase"]
    assert ["RUNNING"] == [job.state for job in worlds.live(uid)]
    assert [names.MANAGED_NODE_TAINT] == machine.taints()

    worlds.delete("last")
    machine.await_not_in_slurm()
    wait_until(lambda: not machine.taints(), _PATIENCE_S, sandbox=machine.sandbox)


def test_a_deleted_nodes_pod_gives_its_placeholder_back(machine: Machine, worlds: Worlds) -> None:
    machine.label("true")
    machine.await_in_slurm(bool)
    uid = worlds.submit("stranded", nodeSelector=machine.selector)
    worlds.await_phase("stranded", "Running")

    machine.sandbox.admin.delete(machine.path)
    machine.await_in_slurm(lambda node: "DRAIN" in node["State"])
    assert ["RUNNING"] == [job.state for job in worlds.live(uid)]
    worlds.delete("stranded")

    wait_until(lambda: _is_let_go(worlds.pod("stranded")), _PATIENCE_S, sandbox=machine.sandbox)
    assert "CANCELLED" == worlds.await_accounted(uid).state
    machine.await_not_in_slurm()


def with_gpus(count: int) -> Manifest:
    """A container that takes devices, which Kubernetes wants limited."""
    size = {"cpu": "1", "memory": "64Mi", "nvidia.com/gpu": str(count)}
    return {**container(), "resources": {"requests": size, "limits": size}}


def _is_let_go(pod: Manifest | None) -> bool:
    return pod is None or is_released(pod)


def daemon_set(worlds: Worlds, machine: Machine) -> None:
    """One of 500m CPU and 100 MiB, on this node only; it was there before the node was tainted."""
    labels = {"app": "daemon"}
    worlds.sandbox.admin.create(
        f"/apis/apps/v1/namespaces/{worlds.namespace}/daemonsets",
        {
            "metadata": {"name": "daemon"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [container("500m", "100Mi")],
                        "nodeSelector": machine.selector,
                    },
                },
            },
        },
    )
