"""What is wanted no more, on a real API server: what we made goes, and nothing else does."""

from typing import Any

from sandbox.client import Sandbox
from tests.cluster.served import APPS, DEADLINE_S, PLAIN, answers, world
from tests.servers import until

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
        assert ["DELETE statefulsets", "DELETE services"] == [
            each for each in writes_ if each.startswith("DELETE")
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
