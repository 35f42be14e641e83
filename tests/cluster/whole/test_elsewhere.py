"""SlurmClusters of namespaces that this operator does not serve."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

from bridge.kube.cache import Cache
from bridge.leading.workqueue import WorkQueue
from bridge.process.clock import SystemClock
from bridge.process.metrics import Metrics
from bridge.reconcile.set_aside import SetAside
from cluster.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from cluster.rendering.site import ServedNamespaces
from cluster.whole.loop import ClusterLoop
from cluster.whole.slurm_cluster import FINALIZER, SLURM_CLUSTERS, WatchedCluster
from tests.cluster.nodesets.peers import node_set

LEAVING = {
    "metadata": {
        "name": "slurm",
        "namespace": "slurm",
        "uid": "uid-slurm",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "finalizers": ["another", FINALIZER],
    },
    "spec": {},
}


class Recorder:
    """An API server that takes every write."""

    def __init__(self) -> None:
        self.changes: list[Any] = []

    async def request(self, method: str, path: str, *, body: Any, content_type: str) -> bytes:
        assert ("PATCH", "application/json-patch+json") == (method, content_type)
        assert "/namespaces/slurm/slurmclusters/slurm" in path
        self.changes.append(body[-1])
        return msgspec.json.encode(LEAVING)


def owned_node_set() -> WatchedNodeSet:
    made = node_set(replicas=1)
    owner = {"apiVersion": "v1", "kind": "SlurmCluster", "name": "slurm", "uid": "uid-slurm"}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return NODE_SETS.read(msgspec.json.encode(made))


@pytest.mark.parametrize("has_workers", [False, True])
def test_a_deleted_one_goes_when_it_has_no_workers(*, has_workers: bool) -> None:
    """Its finalizer is ours: nobody else would take it off, and its namespace could never go."""
    clock, metrics, kube = SystemClock(), Metrics("test"), Recorder()
    clusters: Cache[WatchedCluster] = Cache(SLURM_CLUSTERS)
    clusters.put_listed(SLURM_CLUSTERS.read(msgspec.json.encode(LEAVING)))
    node_sets: Cache[WatchedNodeSet] = Cache(NODE_SETS)
    if has_workers:
        node_sets.put_listed(owned_node_set())
    loop = ClusterLoop(
        kube=kube,  # type: ignore[arg-type]  # all it calls
        clusters=clusters,
        parts={},
        node_sets=node_sets,
        served=ServedNamespaces(frozenset({"another"})),
        queue=WorkQueue(rng=random.Random(0)),  # noqa: S311  # nothing secret
        clock=clock,
        metrics=metrics,
        set_aside=SetAside(metrics, clock),
    )
    asyncio.run(loop.reconcile("uid-slurm"))

    (change,) = kube.changes
    if has_workers:
        told = change["value"].conditions[0]
        assert ("/status", "NotServed") == (change["path"], told.reason)
    else:
        assert {"op": "remove", "path": "/metadata/finalizers/1"} == change
