"""Labelled Kubernetes nodes are Slurm's to hand out, as big as what is left of them, for as long as both sides want that."""

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from bridge.domain import names
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from tests.integration.worlds import Manifest, Worlds, container, is_released
from tests.servers import wait_until

_PATIENCE_S = 30.0
_LABELLED = {names.EXTERNAL_NODE_LABEL: "true"}


@dataclass(frozen=True, slots=True)
class Machine:
    """One more node of the sandbox."""

    sandbox: Sandbox
    name: str

    @property
    def path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        return {"kubernetes.io/hostname": self.name}

    def label(self, value: str | None) -> None:
        self.sandbox.admin.patch(
            self.path, {"metadata": {"labels": {names.EXTERNAL_NODE_LABEL: value}}}
        )

    def cordon(self, *, on: bool) -> None:
        self.sandbox.admin.patch(self.path, {"spec": {"unschedulable": on}})

    def taints(self) -> list[str]:
        taints = self.sandbox.admin.get(self.path)["spec"].get("taints", [])
        return [taint["key"] for taint in taints]

    def in_slurm(self) -> dict[str, str]:
        """What scontrol shows of it; {} if Slurm has no such node."""
        try:
            line = self.sandbox.run("scontrol", "--oneliner", "show", "node", self.name)
        except SandboxError:
            return {}
        return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line.strip()))

    def await_in_slurm(self, is_so: Callable[[dict[str, str]], object]) -> dict[str, str]:
        def found() -> dict[str, str]:
            node = self.in_slurm()
            return node if node and is_so(node) else {}

        return wait_until(found, _PATIENCE_S, sandbox=self.sandbox)

    def await_not_in_slurm(self) -> None:
        wait_until(lambda: not self.in_slurm(), _PATIENCE_S, sandbox=self.sandbox)


@pytest.fixture
def machine(full_sandbox: Sandbox) -> Iterator[Machine]:
    """A node of 8 CPUs, 16 GiB and 2 GPUs, not labelled yet; in the end neither side has it."""
    machine = Machine(full_sandbox, f"extra-{uuid.uuid4().hex[:6]}")
    size = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
    full_sandbox.admin.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": machine.name,
                "labels": machine.selector,
                "annotations": {
                    "kwok.x-k8s.io/node": "fake",
                    names.PARTITIONS_ANNOTATION: "slurm-bridge",
                },
            },
            "status": {"capacity": size, "allocatable": size},
        },
    )
    wait_until(lambda: not machine.taints(), _PATIENCE_S, sandbox=full_sandbox)
    yield machine
    full_sandbox.kubectl("delete", "node", machine.name, "--ignore-not-found")
    machine.await_not_in_slurm()


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


def test_a_cordoned_node_is_drained_and_comes_back(machine: Machine) -> None:
    machine.label("true")
    machine.await_in_slurm(lambda node: "DRAIN" not in node["State"])

    machine.cordon(on=True)
    drained = machine.await_in_slurm(lambda node: "DRAIN" in node["State"])
    assert drained["Reason"].startswith("slurm-bridge: cordoned in Kubernetes")

    machine.cordon(on=False)
    machine.await_in_slurm(lambda node: "DRAIN" not in node["State"])


def test_what_an_administrator_drained_stays_drained(machine: Machine) -> None:
    machine.label("true")
    machine.await_in_slurm(bool)
    update = ("update", f"NodeName={machine.name}")
    machine.sandbox.run("scontrol", *update, "State=DRAIN", "Reason=bad memory")

    machine.cordon(on=True)
    machine.cordon(on=False)
    moved = {"addresses": [{"type": "InternalIP", "address": "127.0.0.9"}]}
    machine.sandbox.admin.patch(f"{machine.path}/status", {"status": moved})

    node = machine.await_in_slurm(lambda node: node["NodeAddr"] == "127.0.0.9")
    assert "DRAIN" in node["State"]
    assert node["Reason"].startswith("bad memory")


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


def _is_let_go(pod: Manifest | None) -> bool:
    return pod is None or is_released(pod)


def daemon_set(worlds: Worlds, machine: Machine) -> None:
    """One of 500m CPU and 100 MiB, on this node only, whatever taints it has."""
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
                        "tolerations": [{"operator": "Exists"}],
                    },
                },
            },
        },
    )
