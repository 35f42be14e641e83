"""Kubernetes ends a pod, or loses its node: the allocation is given back when its containers are surely gone, never before."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.worlds import (
    Manifest,
    Worlds,
    condition,
    job_manifest,
    moment,
    played,
)
from tests.servers import wait_until

_STOPS_WITHIN_S = 3.0
_OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


@pytest.mark.ending("deleted", "deleted-waiting")
def test_a_deleted_namespace_takes_its_pods_along_and_leaves_nothing(
    full_sandbox: Sandbox,
) -> None:
    name = "goes-away"
    labels = {names.ENABLED_LABEL: "true"}
    full_sandbox.admin.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    worlds = Worlds(full_sandbox, name)
    runs = worlds.submit("runs", annotations=played(stop_seconds=_STOPS_WITHIN_S))
    waits = worlds.submit("waits", annotations={"slurmjob.slinky.slurm.net/hold": "true"})
    worlds.await_phase("runs", "Running")
    worlds.await_live(waits)

    full_sandbox.admin.delete(f"/api/v1/namespaces/{name}")

    assert "CANCELLED" == worlds.await_accounted(runs).state
    worlds.await_gone("runs")
    worlds.await_gone("waits")
    assert ["CANCELLED"] == [job.state for job in worlds.jobs(waits)]
    wait_until(
        lambda: name not in full_sandbox.kubectl("get", "namespaces", "-o", "name"),
        60,
        sandbox=full_sandbox,
    )


@pytest.mark.ending("deleted")
def test_a_deleted_owner_takes_its_pod_along(worlds: Worlds) -> None:
    worlds.create_job(job_manifest("owner", annotations=played(stop_seconds=_STOPS_WITHIN_S)))
    pod = worlds.await_one_pod("job-name=owner", lambda pod: pod["status"]["phase"] == "Running")

    worlds.sandbox.kubectl("-n", worlds.namespace, "delete", "job", "owner", "--wait=false")

    ended = worlds.await_accounted(pod["metadata"]["uid"])
    worlds.await_gone(pod["metadata"]["name"])
    assert "CANCELLED" == ended.state


@pytest.mark.ending("deleted")
def test_a_drained_node_evicts_its_pod_by_the_eviction_api(worlds: Worlds) -> None:
    uid = worlds.submit("drained", annotations=played(stop_seconds=_STOPS_WITHIN_S))
    worlds.await_phase("drained", "Running")

    worlds.sandbox.admin.create(
        f"{worlds.path}/pods/drained/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "drained"}},
    )

    evicted = worlds.await_eviction("drained")
    ended = worlds.await_accounted(uid)
    worlds.await_gone("drained")
    assert "EvictionByEvictionAPI" == condition(evicted, "DisruptionTarget")["reason"]
    assert "CANCELLED" == ended.state
    assert ended.ended_at is not None
    grace = timedelta(seconds=evicted["metadata"]["deletionGracePeriodSeconds"])
    asked = moment(evicted["metadata"]["deletionTimestamp"]) - grace
    assert ended.ended_at >= asked + timedelta(seconds=_STOPS_WITHIN_S)


@pytest.mark.parametrize("how", ["out-of-service", "deleted"])
@pytest.mark.ending("node-gone")
def test_a_dead_kubelets_allocation_is_kept_until_its_node_is_declared_gone(
    worlds: Worlds, full_sandbox: Sandbox, how: str
) -> None:
    uid = worlds.submit("silent")
    other = worlds.submit("other")
    node = worlds.await_phase("silent", "Running")["spec"]["nodeName"]
    worlds.await_phase("other", "Running")
    with dead_kubelets(full_sandbox):
        full_sandbox.admin.delete(f"{worlds.path}/pods/silent", gracePeriodSeconds=0)
        worlds.scancel(worlds.live(other)[0].id)
        worlds.await_eviction("other")
        # By then the controllers have seen the forced deletion, too.
        assert ["RUNNING"] == [job.state for job in worlds.live(uid)]
        assert worlds.pod("silent") is not None

        with gone(full_sandbox, node, how):
            assert "CANCELLED" == worlds.await_accounted(uid).state
            worlds.await_gone("silent")


@contextmanager
def dead_kubelets(sandbox: Sandbox) -> Iterator[None]:
    """Nobody says any more what becomes of containers. Not stopped: a new one waits until the nodes' leases run out."""
    sandbox.pause("kwok")
    try:
        yield
    finally:
        sandbox.resume("kwok")


@contextmanager
def gone(sandbox: Sandbox, name: str, how: str) -> Iterator[None]:
    """An administrator says that a node is off for good, and puts it back afterwards."""
    path = f"/api/v1/nodes/{name}"
    node = sandbox.admin.get(path)
    if how == "deleted":
        sandbox.admin.delete(path)
    else:
        _set_taints(sandbox, path, [*node["spec"].get("taints", []), _OUT_OF_SERVICE])
    try:
        yield
    finally:
        if how == "deleted":
            sandbox.admin.create("/api/v1/nodes", _as_new(node))
        else:
            _set_taints(sandbox, path, node["spec"].get("taints", []))
        wait_until(lambda: _is_in_slurm(sandbox, name), 30, sandbox=sandbox)


def _set_taints(sandbox: Sandbox, path: str, taints: list[Manifest]) -> None:
    sandbox.admin.request(
        "PATCH",
        path,
        {"spec": {"taints": taints}},
        content_type="application/merge-patch+json",
    )


def _as_new(node: Manifest) -> Manifest:
    new = copy.deepcopy(node)
    metadata = {key: node["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
    return {**new, "metadata": metadata, "spec": {}}


def _is_in_slurm(sandbox: Sandbox, name: str) -> bool:
    lines = sandbox.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines()
    return any(line.split() in ([name, "idle"], [name, "mix"]) for line in lines)
