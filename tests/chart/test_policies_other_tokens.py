"""What stolen tokens of our kube-scheduler and of the node agent are good for, on a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import Cluster, binding, pod, pods, policed, refusal

SYSTEM = "kube-system"
NODE = "k1-node"
PINNING = {"config": {"agent": {"pin_cores": True}}}


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=PINNING) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def waiting(cluster: Cluster) -> str:
    """The path of a pod of ours."""
    return pods(cluster.bridged, cluster.create(pod("waiting")))


@pytest.fixture(scope="module")
def strangers(cluster: Cluster) -> Iterator[tuple[str, ...]]:
    """Paths of pods that are nobody's of ours."""
    paths = tuple(
        pods(where, cluster.create(pod("k1-theirs", ours=False), namespace=where, by=cluster.admin))
        for where in (SYSTEM, cluster.other)
    )
    yield paths
    for path in paths:
        cluster.admin.delete(path)


@pytest.mark.attack(
    "with a stolen token of our kube-scheduler, whose stock role may delete and bind any pod, end or place pods that are not Slurm's",
    "policies `accounts-deletes` and `accounts-bindings`: it never preempts, so it deletes nothing else; elsewhere a Binding does not show its pod",
)
def test_our_scheduler_deletes_and_binds_no_strangers(
    cluster: Cluster, waiting: str, strangers: tuple[str, ...]
) -> None:
    by = cluster.program("scheduler")

    for path in strangers:
        assert "deletes pods that Slurm places" in refusal(by, "DELETE", path, None)
    for namespace in (SYSTEM, cluster.ours):
        path = pods(namespace, "any", "binding")
        assert "binds no pods in namespace" in refusal(by, "POST", path, binding("any", NODE))
    assert "" == refusal(by, "DELETE", waiting, None)


@pytest.mark.attack(
    "with the node agent's token, from a node that is broken into, write the cores of others' pods, evict them, enter them, or have more tokens issued",
    "role: it lists and watches pods, and nothing else",
)
def test_the_agents_token_writes_and_enters_nothing(
    cluster: Cluster, waiting: str, strangers: tuple[str, ...]
) -> None:
    by = cluster.program("agent")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": waiting.rpartition("/")[2]},
    }
    account = f"/api/v1/namespaces/{cluster.ours}/serviceaccounts/slurm-bridge-extender/token"
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    cores = {"metadata": {"annotations": {names.CPUS_ANNOTATION: "0-63"}}}

    for path in (waiting, *strangers):
        assert "cannot patch" in refusal(by, "PATCH", path, cores)
        assert "cannot patch" in refusal(by, "PATCH", f"{path}/status", cores)
        assert "cannot delete" in refusal(by, "DELETE", path, None)
    assert "cannot create" in refusal(by, "POST", f"{waiting}/eviction", eviction)
    assert "cannot create" in refusal(by, "POST", f"{waiting}/exec?command=sh", None)
    assert "cannot create" in refusal(by, "POST", account, token)
    assert "cannot get" in refusal(by, "GET", f"/api/v1/nodes/{NODE}/proxy/pods", None)
    assert "cannot list" in refusal(by, "GET", f"/api/v1/namespaces/{cluster.ours}/secrets", None)
