"""Whose pods pass Slurm by may not create one that looks placed by Slurm: what it says of its job would be believed.

Without a job of that name, a placed pod's job counts as lost, and is requested again as the pod says: for any user, ahead of all others.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, WorkloadKey
from tests.chart.policed import BREAK_GLASS, Cluster, pod, pods, policed, refusal
from tests.chart.rendering import Manifest

NODE = "passing"
MIRROR = {"kubernetes.io/config.mirror": "forged"}
DAEMON_SETS = "system:serviceaccount:kube-system:daemon-set-controller"
CREATORS = {"policies": {"podCreators": [DAEMON_SETS, "ci"]}}
SCHEDULERS = {
    "scheduler": names.SCHEDULER_NAME,
    "binder": names.binder(names.SCHEDULER_NAME),
}


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=CREATORS) as cluster:
        cluster.admin.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        yield cluster
        cluster.admin.delete(f"/api/v1/nodes/{NODE}")


def as_placed(**annotations: str) -> dict[str, Any]:
    """The metadata of a pod whose job Slurm has lost, and whose operator wants it again; it was bob's."""
    identity = Identity(
        cluster=ClusterId("c"), kind="Pod", namespace="", name="", key=WorkloadKey("k"), pods=()
    )
    had = Grant(name="x", user="bob", group="bob", memory_mib_per_node=4096, started_s=1)
    return {
        "labels": {names.BRIDGED_LABEL: "true", names.JOB_ID_LABEL: "4711"},
        "annotations": {
            names.NODE_ANNOTATION: "node-0",
            names.WORKLOAD_ANNOTATION: "k",
            names.GRANT_ANNOTATION: grant.encode(identity, had),
            names.WHEN_LOST_ANNOTATION: "restore",
            **annotations,
        },
    }


def forged(*, annotations: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    body = pod("forged", ours=False, metadata=as_placed(**(annotations or {})), spec=spec)
    body["metadata"]["finalizers"] = [names.FINALIZER]
    return body


def refused_and_passed(cluster: Cluster, by: Api, **spec: Any) -> None:
    """Whoever creates pods like this passes Slurm by, and none of them asks for us."""
    path = pods(cluster.bridged)
    notes = spec.get("annotations", {})
    for key in ("scheduler", "binder", "finalizer"):
        body = forged(schedulerName=SCHEDULERS.get(key, names.DEFAULT_SCHEDULER_NAME), **spec)
        assert "it would count as placed by Slurm" in refusal(by, "POST", path, body), key
    own = {field: value for field, value in spec.items() if field != "annotations"}
    plain = pod("plain", ours=False, metadata={"annotations": notes}, spec=own)
    assert "" == refusal(by, "POST", path, plain), "their own pods pass as ever"


@pytest.mark.attack(
    "have the DaemonSet controller create a pod that says it has lost a job of another user",
    "policy `bypass`: who passes us by may not ask for us",
)
def test_the_daemon_set_controller_creates_no_pod_that_looks_placed(cluster: Cluster) -> None:
    controller = cluster.user(DAEMON_SETS, "system:masters")

    refused_and_passed(cluster, controller)


def test_nor_does_whom_the_administrator_lists(cluster: Cluster) -> None:
    refused_and_passed(cluster, cluster.user("ci", "system:masters"))


@pytest.mark.attack(
    "create a mirror pod, as the kubelet of one node, that says it has lost a job of another user, to have that requested again",
    "policy `bypass`: who passes us by may not ask for us",
)
def test_a_kubelet_creates_no_mirror_pod_that_looks_placed(cluster: Cluster) -> None:
    kubelet = cluster.user(f"system:node:{NODE}", "system:nodes")

    refused_and_passed(cluster, kubelet, nodeName=NODE, annotations=MIRROR)


def test_break_glass_may_restore_a_placed_pod(cluster: Cluster) -> None:
    by = cluster.user("root", BREAK_GLASS, "system:masters")

    body = forged(schedulerName=names.SCHEDULER_NAME)
    assert "" == refusal(by, "POST", pods(cluster.bridged), body)
