"""Evictions on a real API server with the real disruption controller: those of workers with work are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmoperator.nodesets import nodeset, worker_bodies, worker_pods
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.plan.planning import NewWorker
from slurmoperator.nodesets.preparation import NodeSetPreparation, WorkerSource
from slurmoperator.objects.labels import PROTECTED_LABEL
from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from tests.servers import until
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.served import DEADLINE_S

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


class TwoWorkers:
    """A NodeSet with two protected workers, which run."""

    def __init__(self, served: Sandbox, namespace: str, kube: KubeClient) -> None:
        self.served, self.namespace, self.kube = served, namespace, kube
        self.where = path(NODE_SET, namespace)
        self.looks = 0

    def node_set(self) -> NodeSetObject:
        found = nodeset.NODE_SET.read(
            msgspec.json.encode(self.served.admin.get(f"{self.where}/gpu"))
        )
        assert found.parsed is not None
        return found.parsed

    def pod(self, number: int) -> Any:
        return self.served.admin.get(f"/api/v1/namespaces/{self.namespace}/pods/gpu-{number}")

    def budget(self, name: str) -> Any:
        where = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets/{name}"
        return self.served.admin.get(where)

    async def start(self) -> None:
        for number in (0, 1):
            body = worker_bodies.pod_body(
                self.node_set(), NewWorker(key=number), TEMPLATE, digest="x"
            )
            uid = self.node_set().metadata.uid
            await worker_pods.create(self.kube, self.namespace, body, owner_uid=uid)
        await until(
            lambda: {"Running"} == {self.pod(n)["status"].get("phase") for n in (0, 1)},
            DEADLINE_S,
            sandbox=self.served,
        )

    def look(self) -> None:
        """Have the disruption controller count anew: it does so when a pod changes, and knows a new kind only after a while."""
        self.looks += 1
        where = f"/api/v1/namespaces/{self.namespace}/pods/gpu-1"
        self.served.admin.patch(where, {"metadata": {"labels": {"looks": str(self.looks)}}})

    async def until_counted(self, budget: str) -> None:
        def is_counted() -> bool:
            self.look()
            return bool(self.budget(budget)["status"].get("currentHealthy") == 2)

        await until(is_counted, DEADLINE_S, sandbox=self.served)


@asynccontextmanager
async def two_workers(served: Sandbox, namespace: str) -> AsyncIterator[TwoWorkers]:
    made = manifest("NodeSet", "gpu", volumeClaimTemplates=..., replicas=2)
    made["metadata"]["namespace"] = namespace
    async with client(served) as kube:
        found = TwoWorkers(served, namespace, kube)
        served.admin.create(found.where, made)
        yield found


async def test_a_budget_that_asks_for_a_scale_lets_surplus_workers_go(
    served: Sandbox, namespace: str
) -> None:
    """Defect D4 of SchedMD's operator; the reason for the number in ours."""
    async with two_workers(served, namespace) as found:
        theirs = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "theirs"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {PROTECTED_LABEL: "true"}}},
        }
        where = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        served.admin.create(where, theirs)
        await found.start()
        await found.until_counted("theirs")
        assert {429} == {evicted(served, namespace, f"gpu-{number}") for number in (0, 1)}

        served.kubectl("scale", "nodeset/gpu", "--replicas=1", "-n", namespace)

        def lets_one_go() -> bool:
            found.look()
            return bool(found.budget("theirs")["status"].get("disruptionsAllowed") == 1)

        await until(lets_one_go, DEADLINE_S, sandbox=served)
        assert 201 == evicted(served, namespace, "gpu-0")


async def test_a_worker_is_evicted_only_after_it_was_released(
    served: Sandbox, namespace: str
) -> None:
    """Also while the NodeSet is scaled in, when budgets that ask for a scale let the surplus go."""
    async with two_workers(served, namespace) as found:
        source = WorkerSource(
            templates=lambda *_: TEMPLATE, key_step=lambda _: 0, tried=ConfTrials()
        )
        keeper = NodeSetPreparation(found.kube, source, SystemClock().monotonic)
        _, outcome = await keeper.keep_objects(found.node_set())
        assert not outcome.failures
        await found.start()
        await found.until_counted("gpu-workers")
        for replicas in (2, 1, 0):
            served.kubectl("scale", "nodeset/gpu", f"--replicas={replicas}", "-n", namespace)
            found.look()
            await until(
                lambda: (
                    found.budget("gpu-workers")["status"]["observedGeneration"]
                    == found.budget("gpu-workers")["metadata"]["generation"]
                ),
                DEADLINE_S,
                sandbox=served,
            )
            assert {429} == {evicted(served, namespace, f"gpu-{number}") for number in (0, 1)}

        released = worker_pods.WORKER_PODS.read(msgspec.json.encode(found.pod(0)))
        meta = released.metadata
        await worker_pods.release(found.kube, released, uid=meta.uid, version=meta.resource_version)
        assert 201 == evicted(served, namespace, "gpu-0")
        assert 429 == evicted(served, namespace, "gpu-1")
