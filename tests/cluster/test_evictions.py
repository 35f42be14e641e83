"""Evictions on a real API server with the real disruption controller: those of workers with work are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bridge.kube.client import KubeClient
from bridge.process.clock import SystemClock
from cluster.nodesets import nodeset, planning, worker_pods
from cluster.nodesets.owned.belongings import NodeSetBelongings
from cluster.objects.nodeset import NodeSetObject
from sandbox.api import ApiError
from sandbox.client import Sandbox
from tests.cluster.examples import BY_NAME, manifest, path
from tests.cluster.served import DEADLINE_S
from tests.servers import until

NODE_SET = BY_NAME["NodeSet"]
TEMPLATE: dict[str, Any] = {
    "spec": {"containers": [{"name": "slurmd", "image": "example.test/slurmd"}]}
}


@asynccontextmanager
async def client(served: Sandbox) -> AsyncIterator[KubeClient]:
    async with KubeClient.open(
        str(served.kubeconfig), request_timeout_s=10, user_agent="slurm-bridge-operator/1"
    ) as opened:
        yield opened


def evicted(served: Sandbox, namespace: str, name: str) -> int:
    """Ask for an eviction, as `kubectl drain` does; return the HTTP status."""
    where = f"/api/v1/namespaces/{namespace}/pods/{name}"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        served.admin.create(f"{where}/eviction", body)
    except ApiError as error:
        return error.status
    return 201


async def test_a_worker_is_evicted_only_after_it_was_released(
    served: Sandbox, namespace: str
) -> None:
    """Also while the NodeSet is scaled in, when budgets that ask for a scale let the surplus go."""
    admin, where = served.admin, path(NODE_SET, namespace)
    made = manifest("NodeSet", "gpu", volumeClaimTemplates=..., replicas=2)
    made["metadata"]["namespace"] = namespace
    admin.create(where, made)

    def current() -> NodeSetObject:
        found = nodeset.read(msgspec.json.encode(admin.get(f"{where}/gpu"))).node_set
        assert found is not None
        return found

    def pod(number: int) -> Any:
        return admin.get(f"/api/v1/namespaces/{namespace}/pods/gpu-{number}")

    async with client(served) as kube:
        keeper = NodeSetBelongings(kube, SystemClock().monotonic)
        assert not (await keeper.keep(current())).failures
        for number in (0, 1):
            body = planning.stamped(current(), number, TEMPLATE, digest="x")
            await worker_pods.create(kube, namespace, body, owner_uid=current().metadata.uid)
        await until(
            lambda: {"Running"} == {pod(n)["status"].get("phase") for n in (0, 1)},
            DEADLINE_S,
            sandbox=served,
        )
        budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/gpu-workers"
        await until(
            lambda: admin.get(budget)["status"].get("currentHealthy") == 2,
            DEADLINE_S,
            sandbox=served,
        )
        for replicas in (2, 1, 0):
            served.kubectl("scale", "nodeset/gpu", f"--replicas={replicas}", "-n", namespace)
            await until(
                lambda: (
                    admin.get(budget)["status"]["observedGeneration"]
                    == admin.get(budget)["metadata"]["generation"]
                ),
                DEADLINE_S,
                sandbox=served,
            )
            assert {429} == {evicted(served, namespace, f"gpu-{number}") for number in (0, 1)}

        released = worker_pods.read(msgspec.json.encode(pod(0)))
        meta = released.metadata
        await worker_pods.release(kube, released, uid=meta.uid, version=meta.resource_version)
        assert 201 == evicted(served, namespace, "gpu-0")
        assert 429 == evicted(served, namespace, "gpu-1")
