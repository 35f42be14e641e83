"""What a node is in Slurm is not for its kubelet to say: a real API server, as a kubelet's user."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import STRATEGIC, Cluster, binding, pod, pods, policed, refusal

NODE = "broken-into"
PATH = f"/api/v1/nodes/{NODE}"


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm) as cluster:
        yield cluster


@pytest.fixture
def kubelet(cluster: Cluster) -> Iterator[Cluster]:
    """Its node is there, registered by its kubelet as an external one."""
    own = {names.EXTERNAL_NODE_LABEL: "true"}
    by = cluster.user(f"system:node:{NODE}", "system:nodes")
    by.create("/api/v1/nodes", {"metadata": {"name": NODE, "labels": own}})
    yield cluster
    cluster.admin.delete(PATH)


LABELS = (names.SLURM_NODE_NAME_LABEL, names.HYBRID_NODE_LABEL, names.EXTERNAL_NODE_LABEL)
ANNOTATIONS = (
    names.PARTITIONS_ANNOTATION,
    names.TOPOLOGY_ANNOTATION,
    names.WEIGHT_ANNOTATION,
    names.THREADS_ANNOTATION,
    names.CORDON_ANNOTATION,
)


@pytest.mark.attack(
    "take another node's name in Slurm, or enter partitions, with a node's own credentials",
    "policy `nodes`",
)
def test_a_kubelet_does_not_say_what_its_node_is_in_slurm(kubelet: Cluster) -> None:
    by = kubelet.user(f"system:node:{NODE}", "system:nodes")

    for path in (PATH, f"{PATH}/status"):
        for kind, keys in (("labels", LABELS), ("annotations", ANNOTATIONS)):
            for key in keys:
                told = refusal(by, "PATCH", path, {"metadata": {kind: {key: "7"}}})
                assert f"metadata: {key}: what a node is in Slurm" in told
        assert not refusal(
            by, "PATCH", path, {"metadata": {"annotations": {"example.test/a": "b"}}}
        )
    for key in LABELS:
        assert not refusal(kubelet.admin, "PATCH", PATH, {"metadata": {"labels": {key: "7"}}})


def test_a_kubelet_registers_its_node_under_its_own_name_only(cluster: Cluster) -> None:
    by = cluster.user(f"system:node:{NODE}", "system:nodes")
    body = {"metadata": {"name": NODE, "labels": {names.SLURM_NODE_NAME_LABEL: "node-0"}}}

    assert names.SLURM_NODE_NAME_LABEL in refusal(by, "POST", "/api/v1/nodes", body)


@pytest.mark.attack(
    "say as its kubelet that Slurm has refused a running pod, so that it may ask Slurm for something else",
    "policy `keys`: only of a pod that still has its gate is that believed",
)
def test_a_kubelet_frees_no_pods_request_by_a_condition(kubelet: Cluster) -> None:
    name = kubelet.create(pod("hers"))
    kubelet.assign(name, NODE)
    path = pods(kubelet.bridged, name)
    kubelet.program("extender").create(f"{path}/binding", binding(name, NODE))
    by = kubelet.user(f"system:node:{NODE}", "system:nodes")
    refused = {"type": names.ALLOCATED_CONDITION, "status": "False", "reason": "SubmitRefused"}
    said = {"status": {"conditions": [refused]}}
    by.request("PATCH", f"{path}/status", said, content_type=STRATEGIC)

    asked = {"metadata": {"annotations": {f"{names.REQUEST_PREFIX}account": "theirs"}}}
    for api, where in ((by, f"{path}/status"), (kubelet.user(), path)):
        assert "fixed at CREATE" in refusal(api, "PATCH", where, asked)
