"""A real kubelet with the static CPU manager: what Slurm places there, it takes, and gives cores of its own.

The node has the two processors of a small machine: the kubelet keeps one for what shares, and Slurm has the other.
"""

import json
import os
from collections.abc import Iterator

import pytest

from bridge.domain.model.cores import cpu_list
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NODE = "real-0"
KUBELET = "/etc/kubernetes/kubelet.json"
STATE = "/var/lib/kubelet/cpu_manager_state"
OPTIONS = Options(nodes=0, plain_nodes=0, real_nodes=1)
CPUS = (os.cpu_count() or 2) - 1
ALL = {"cpu": str(CPUS), "memory": "64Mi"}
"""Guaranteed, and all that Slurm has there."""


@pytest.fixture(scope="module")
def node(able: None) -> Iterator[Sandbox]:
    if not CPUS:
        pytest.skip(
            "the static CPU manager keeps one processor for itself: this machine has no more"
        )
    with running_sandbox(OPTIONS) as sandbox:
        configured = json.loads(sandbox.on_node(NODE, "cat", KUBELET)) | {
            "cpuManagerPolicy": "static",
            "cpuManagerReconcilePeriod": "1s",
            "kubeReserved": {"cpu": "500m"},
        }
        # A kubelet does not start with the state of another policy.
        script = f"cat > {KUBELET} <<'END'\n{json.dumps(configured)}\nEND\nrm -f {STATE}"
        sandbox.hold_daemon(NODE, "kubelet", held=True)
        sandbox.on_node(NODE, "sh", "-c", script)
        sandbox.hold_daemon(NODE, "kubelet", held=False)
        wait_until(lambda: slurm_has(sandbox, CPUS), STARTS_S * 2, sandbox=sandbox)
        yield sandbox


@pytest.fixture
def containers(node: Sandbox) -> Iterator[Containers]:
    with fresh_namespace(node, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Containers(node, namespace)


def slurm_has(sandbox: Sandbox, cpus: int) -> bool:
    """Check whether Slurm gives just so many processors of the node to jobs."""
    told = sandbox.run("scontrol", "show", "node", NODE, "-o")
    return f"CPUTot={cpus} " in told and "DRAIN" not in told


def cores(containers: Containers, name: str) -> frozenset[int]:
    """The processors of a pod's first container, as its first process sees them."""
    said = containers.exec(name, "grep", "Cpus_allowed_list", "/proc/1/status")
    return cpu_list.parse(said.split()[-1]) or frozenset()


def test_guaranteed_pods_that_slurm_places_one_after_the_other_have_cores_of_their_own(
    containers: Containers,
) -> None:
    """The numbers fit: the kubelet refuses none of them at its door."""
    for name in ("first", "second"):
        containers.create(name, "exec sleep 600", limits=ALL)
    containers.runs("first")
    assert "Guaranteed" == containers.get("first")["status"]["qosClass"]
    assert CPUS == len(cores(containers, "first"))
    assert not containers.get("second")["spec"].get("nodeName")

    containers.sandbox.run("scancel", containers.job_of("first"))
    containers.ends("first")
    second = containers.runs("second")
    assert CPUS == len(cores(containers, "second"))
    assert not any(
        container_status["restartCount"]
        for container_status in second["status"]["containerStatuses"]
    )


def test_a_pod_that_is_not_guaranteed_shares_what_is_left(
    node: Sandbox, containers: Containers
) -> None:
    containers.create("shares", "exec sleep 600", limits={"memory": "64Mi"})
    containers.runs("shares")

    everything = cpu_list.parse(node.on_node(NODE, "cat", "/sys/devices/system/cpu/online").strip())
    assert everything == cores(containers, "shares")
