"""Nobody's pods push ours off a full node: a real kube-scheduler, and pods of every class that users have."""

from collections.abc import Iterator

import pytest

from sandbox.api import Api
from sandbox.client import Sandbox
from tests.chart.objects import pod_spec
from tests.chart.rendering import Manifest, Rendered
from tests.integration.machines import Machine, a_machine
from tests.integration.policed import person
from tests.integration.worlds import Worlds

ROOM = 8


@pytest.fixture
def machine(control_plane: Sandbox) -> Iterator[Machine]:
    with a_machine(control_plane) as machine:
        yield machine


@pytest.fixture
def mallory(control_plane: Sandbox, namespace: str) -> Iterator[Api]:
    """Somebody who may edit the own namespace, and nothing else."""
    with person(control_plane, namespace, "mallory") as api:
        yield api


@pytest.mark.attack(
    "preempt our pods by pods of a critical class, so that nobody's pods are admitted",
    "ours have the highest class there is",
)
def test_no_class_that_users_have_preempts_ours(
    chart: Rendered, machine: Machine, mallory: Api, namespace: str
) -> None:
    here = Worlds(machine.sandbox, namespace)
    ours = pod_spec(chart, "webhook")["priorityClassName"]
    here.submit("ours", cpus=str(ROOM), priorityClassName=ours, nodeSelector=machine.selector)
    here.await_phase("ours", "Running")

    for theirs in ("system-cluster-critical", "system-node-critical"):
        here.submit(theirs, by=mallory, priorityClassName=theirs, nodeSelector=machine.selector)
        told = here.await_pod(theirs, lambda pod: is_placed(pod) or finds_no_victim(pod))
        assert not is_placed(told), theirs

    assert "deletionTimestamp" not in here.await_pod("ours", bool)["metadata"]


def is_placed(pod: Manifest) -> bool:
    """Whether it has a node, or will have one as soon as another pod is gone."""
    return bool(pod["spec"].get("nodeName") or pod.get("status", {}).get("nominatedNodeName"))


def finds_no_victim(pod: Manifest) -> bool:
    """Whether kube-scheduler has looked for pods to preempt, and has found none."""
    told = [
        condition.get("message", "") for condition in pod.get("status", {}).get("conditions", [])
    ]
    return any("No preemption victims found" in message for message in told)
