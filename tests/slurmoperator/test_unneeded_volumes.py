"""Claims of workers that were scaled in, on a real API server: marked, taken up again, and deleted in the version that has the mark."""

from typing import Any

import msgspec
import pytest

from sandbox.client import Sandbox
from slurmoperator.nodesets.volumes.claims import WorkerClaims
from slurmoperator.nodesets.volumes.unneeded import PATIENCE
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering.node_sets.claims import UNNEEDED_ANNOTATION
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Conflict
from slurmruntime.process.clock import SystemClock
from tests.servers import until
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.served import DEADLINE_S, answers

TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def test_a_claim_is_marked_taken_up_again_and_deleted(
    served: Sandbox, namespace: str
) -> None:
    admin, where = served.admin, path(BY_NAME["NodeSet"], namespace)
    body = manifest(
        "NodeSet",
        "gpu",
        replicas=1,
        volumeClaimTemplates=[TEMPLATE],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
    )
    body["metadata"]["namespace"] = namespace

    def node_set() -> NodeSetObject:
        return msgspec.convert(admin.get(f"{where}/gpu"), NodeSetObject, strict=False)

    def claim(number: int) -> str:
        return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-gpu-{number}"

    def mark(number: int) -> Any:
        return admin.get(claim(number))["metadata"]["annotations"].get(UNNEEDED_ANNOTATION)

    admin.create(where, body)
    now = SystemClock().now()
    async with KubeClient.open(
        str(served.kubeconfig),
        request_timeout_s=10,
        user_agent="slurm-bridge-operator/1",
        on_call=lambda *_: None,
    ) as client:
        for number in (0, 1):
            await WorkerClaims(client, SystemClock().monotonic).create(node_set(), number)
        assert PATIENCE >= await delete(client, node_set(), now)
        assert (None, now.replace(microsecond=0).isoformat()) == (mark(0), mark(1))
        await WorkerClaims(client, SystemClock().monotonic).create(node_set(), 1)
        assert None is mark(1)

        await delete(client, node_set(), now)
        before = node_set()
        admin.patch(f"{where}/gpu", {"spec": {"replicas": 2}})
        with pytest.raises(Conflict, match="has changed"):
            await delete(client, before, now + PATIENCE)
        assert mark(1)
        await delete(client, node_set(), now + PATIENCE)
        await until(lambda: not answers(admin, claim(1)), DEADLINE_S, sandbox=served)
        assert None is mark(0)


async def delete(client: KubeClient, node_set: NodeSetObject, now: Any) -> Any:
    """Look as a new leader does, while only the first worker is needed; return when to look again."""
    claims = WorkerClaims(client, SystemClock().monotonic)
    outcome = await claims.delete_unneeded(node_set, needed={0}, now=now)
    return outcome.delays[0]
