"""What is wanted no more, on a real API server: what we made goes, and nothing else does."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.servers import until, wait_until
from tests.slurmoperator.served import APPS, DEADLINE_S, DEFINITIONS, PLAIN, answers, world

ELSEWHERE: dict[str, Any] = {
    "external": True,
    "externalConfig": {"host": "slurm.example.org", "port": 6817},
}


async def test_a_controller_that_moves_elsewhere_leaves_its_claim_its_keys_and_what_others_took(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        await cluster.look("Controller")
        apps = f"{APPS}/namespaces/{namespace}"
        core = f"/api/v1/namespaces/{namespace}"
        claim = f"{core}/persistentvolumeclaims/statesave-site-controller-0"
        await until(lambda: answers(served.admin, claim), DEADLINE_S, sandbox=served)
        taken = f"{core}/services/site-controller-internal"
        served.admin.patch(taken, {"metadata": {"ownerReferences": None}})
        cluster.change("Controller", {"spec": ELSEWHERE})

        writes_ = await cluster.look("Controller")
        # The Service that somebody took away from us is not wanted any more, so it is nobody's business.
        assert ["DELETE statefulsets", "DELETE services", "DELETE configmaps"] == [
            write for write in writes_ if write.startswith("DELETE")
        ]
        gone = f"{apps}/statefulsets/site-controller"
        await until(lambda: not answers(served.admin, gone), DEADLINE_S, sandbox=served)
        assert not answers(served.admin, f"{core}/services/site-controller")
        for kept in (
            claim,
            taken,
            f"{core}/secrets/site-auth-slurm",
            f"{core}/secrets/site-auth-jwt",
            f"{core}/services/slurm-workers-site",
        ):
            assert "deletionTimestamp" not in served.admin.get(kept)["metadata"]
        assert "slurm.example.org" in cluster.get("configmaps/site-config")["data"]["slurm.conf"]
        assert ("True", "AllReady") == cluster.told("Controller", "Ready")[:2]
        assert [] == await cluster.look("Controller")


async def test_a_kind_that_is_not_served_is_noted_and_costs_nothing_else(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        monitored = {"enabled": True, "serviceMonitor": {"enabled": True}}
        cluster.create("Controller", **PLAIN, metrics=monitored)
        await cluster.look("Controller")

        status, reason, message = cluster.told("Controller", "Accepted")
        assert ("True", "PartlyServed") == (status, reason)
        assert "does not serve ServiceMonitor" in message
        assert 1 == cluster.get("statefulsets/site-controller", APPS)["spec"]["replicas"]


@pytest.fixture
def monitors(served: Sandbox, namespace: str) -> Iterator[str]:
    """The path of ServiceMonitors, which are served; in any shape, as this is not Prometheus' own definition."""
    name = "servicemonitors.monitoring.coreos.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": "ServiceMonitor", "plural": "servicemonitors", "singular": "servicemonitor"}
    spec = {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
    }
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    served.admin.create(DEFINITIONS, {**body, "metadata": {"name": name}, "spec": spec})
    where = f"/apis/monitoring.coreos.com/v1/namespaces/{namespace}/servicemonitors"
    wait_until(lambda: answers(served.admin, where), DEADLINE_S, sandbox=served)
    yield where
    served.admin.delete(f"{DEFINITIONS}/{name}")


async def test_a_monitor_is_made_where_the_kind_is_served_and_goes_when_it_is_switched_off(
    served: Sandbox, namespace: str, monitors: str
) -> None:
    async with world(served, namespace) as cluster:
        monitored = {"enabled": True, "serviceMonitor": {"enabled": True}}
        cluster.create("Controller", **PLAIN, metrics=monitored)
        await cluster.look("Controller")
        assert ("True", "Accepted", "") == cluster.told("Controller", "Accepted")
        made = served.admin.get(f"{monitors}/site-controller")
        assert 4 == len(made["spec"]["endpoints"])
        settled = [each for each in await cluster.look("Controller") if "status" not in each]
        assert [] == settled

        cluster.change("Controller", {"spec": {"metrics": {"serviceMonitor": {"enabled": False}}}})
        gone = await cluster.look("Controller")
        assert ["DELETE servicemonitors"] == [each for each in gone if "status" not in each]
        assert not answers(served.admin, f"{monitors}/site-controller")
