"""A lease by which a tenant passes for SchedMD's operator, while which ours does nothing at all."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmoperator import rivals
from slurmoperator.rivals import LEASE, THEIRS, Rivals
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from tests.servers import fresh_namespace
from tests.slurmoperator.people import editor
from tests.slurmoperator.rival import Rival
from tests.virtual_time import VirtualClock, run

RELEASE = "slurm-bridge-system"
FOREVER = "9999-12-31T23:59:59.000000Z"
LEASES = "/apis/coordination.k8s.io/v1"


class Forged:
    """An API server where a lease of SchedMD's name is in one namespace, held until the end of all time."""

    def __init__(self, namespace: str) -> None:
        meta = {"name": LEASE, "namespace": namespace}
        spec = {
            "holderIdentity": "mallory",
            "leaseDurationSeconds": 2**31 - 1,
            "renewTime": FOREVER,
        }
        self._lease = {"metadata": meta, "spec": spec}
        self._where = (f"{LEASES}/leases", f"{LEASES}/namespaces/{namespace}/leases")

    async def request(self, _method: str, path: str, **_: Any) -> bytes:
        items = [self._lease] if path in self._where else []
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()


async def is_alone(clock: VirtualClock, namespace: str) -> bool:
    api = Forged(namespace)
    watched = Rivals(api, clock, release=RELEASE)  # type: ignore[arg-type]  # all it calls
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(60, stop.set)
    await watched.run(stop)
    return watched.alone.is_set()


@pytest.mark.attack(
    "stop slurm-operator for everybody by a lease of the name of SchedMD's operator's in one's own namespace, renewed in the year 9999",
    "such a lease counts only in the namespaces of the two operators, to which no tenant writes",
)
def test_a_lease_in_a_tenants_namespace_stops_nobody() -> None:
    async def main(clock: VirtualClock) -> None:
        assert await is_alone(clock, "mallory")
        assert not await is_alone(clock, THEIRS)
        assert not await is_alone(clock, RELEASE)

    run(main)


async def test_whoever_may_edit_a_namespace_is_no_operator_there(
    served: Sandbox, namespace: str
) -> None:
    """With Kubernetes' role, on a real API server."""
    now = SystemClock().now()
    async with KubeClient.open(
        str(served.kubeconfig), request_timeout_s=10, user_agent="slurm-bridge-operator/1"
    ) as client:
        with fresh_namespace(served, labels={}) as own, editor(served, own) as eve:
            Rival(eve, own).hold(until=now + timedelta(days=365))

            assert await rivals.find(client, now, release=namespace) is None
            assert "holds the lease" in (await rivals.find(client, now, release=own) or "")
