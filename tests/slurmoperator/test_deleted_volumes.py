"""Claims that are deleted under pods of Slurm, on a real API server: told before their data goes with the pods."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sandbox.client import Sandbox
from slurmoperator.nodesets.volumes.claims import WorkerClaims
from slurmoperator.nodesets.volumes.deleted_claims import ClaimDeletions
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.kube.client import KubeClient
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.served import PLAIN, secret, world

STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
IN_USE = {"metadata": {"finalizers": ["example.test/in-use"]}}
"""Kubernetes puts one of its own on a claim whose pod is on a node; no pod is on one here."""


@pytest.mark.parametrize("kind", ["Controller", "Accounting", "LoginSet"])
async def test_that_of_a_daemon_or_of_login_pods_is_told(
    served: Sandbox, namespace: str, kind: str
) -> None:
    where = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    served.admin.create(
        where, {"metadata": {"name": "home", **IN_USE["metadata"]}, "spec": STORAGE}
    )
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
    secret(served, namespace, "mariadb-password", password="any")  # noqa: S106  # nobody's
    secret(served, namespace, "site-sssd", sssd_conf="[sssd]")
    async with world(served, namespace) as cluster:
        for each in {"Controller", kind}:
            plain = PLAIN if each == "Controller" else {}
            volumes = {"template": {"spec": {"volumes": [home]}}} if each == kind else {}
            cluster.create(each, **plain, **volumes)
        await cluster.look("Controller")
        await cluster.look(kind)
        assert "being deleted" not in cluster.told(kind, "Ready")[2]

        served.admin.delete(f"{where}/home")
        await cluster.look(kind)

        status, _, message = cluster.told(kind, "Ready")
        assert status == "False"
        assert "PVC home is being deleted; its data is lost" in message
    served.admin.patch(f"{where}/home", {"metadata": {"finalizers": None}})


async def test_that_of_a_worker_is_told(served: Sandbox, namespace: str) -> None:
    admin, where = served.admin, path(BY_NAME["NodeSet"], namespace)
    body = manifest(
        "NodeSet",
        "gpu",
        replicas=1,
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": STORAGE}],
    )
    body["metadata"]["namespace"] = namespace
    admin.create(where, body)
    node_set = msgspec.convert(admin.get(f"{where}/gpu"), NodeSetObject, strict=False)
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    admin.create(claims, {"metadata": {"name": "home"}, "spec": STORAGE})
    used = [
        {"persistentVolumeClaim": {"claimName": name}} for name in ("data-gpu-0", "home", "absent")
    ]
    pod: dict[str, Any] = {
        "metadata": {"name": "gpu-0", "namespace": namespace, "uid": "1"},
        "spec": {"volumes": [{"emptyDir": {}}, *used]},
    }
    pods = [msgspec.convert(pod, WorkerPodObject, strict=False)]
    async with KubeClient.open(
        str(served.kubeconfig),
        request_timeout_s=10,
        user_agent="slurm-bridge-operator/1",
        on_call=lambda *_: None,
    ) as client:
        at_s = 0.0
        await WorkerClaims(client, lambda: at_s).create(node_set, 0)
        looks = ClaimDeletions(client, lambda: at_s)
        assert (await looks.of(node_set, pods)).deleted_claims == ()
        for name in ("data-gpu-0", "home"):
            admin.patch(f"{claims}/{name}", IN_USE)
            admin.delete(f"{claims}/{name}")
        said = await looks.of(node_set, pods)
        assert (said.deleted_claims, said.delays) == ((), (timedelta(seconds=30),))
        at_s = 30.0
        said = await looks.of(node_set, pods)
        assert [each.split(" is ")[0] for each in said.deleted_claims] == [
            "PVC data-gpu-0",
            "PVC home",
        ]
    for name in ("data-gpu-0", "home"):
        admin.patch(f"{claims}/{name}", {"metadata": {"finalizers": None}})
