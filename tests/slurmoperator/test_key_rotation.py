"""Another key for a Controller, on a real API server with its controllers of StatefulSets; its pods wait for a node."""

import asyncio
import contextlib
from typing import Any

import msgspec

from sandbox.client import Sandbox
from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.kube.errors import Conflict
from tests.slurmoperator.examples import BY_NAME, SLURM_KEY, path
from tests.slurmoperator.served import APPS, DEADLINE_S, PLAIN, World, world

RING = "site-auth-slurm-ring"
NUMBER = "slurm-bridge.dev/slurm-key-number"


def ask(cluster: World, number: str) -> None:
    cluster.change("Controller", {"metadata": {"annotations": {NUMBER: number}}})


async def looked_until(cluster: World, reason: str) -> str:
    """Look until the Controller is told this of its key, and return the rest of it."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with contextlib.suppress(Conflict):  # its StatefulSet was told something meanwhile
                await cluster.look("Controller")
                _, found, message = cluster.told("Controller", "SlurmKeyRotated")
                if found == reason:
                    return message


def steps(spec: Any) -> set[int]:
    found = msgspec.json.decode(msgspec.json.encode(spec), type=MountingSpec)
    return {*mounted_steps(found, msgspec.convert(SLURM_KEY, KeyOfObject))}


async def test_a_controller_comes_to_another_key_by_three_steps(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        await cluster.look("Controller")
        first = cluster.get("secrets/site-auth-slurm")
        ask(cluster, "2")
        assert "every daemon uses key 2" == await looked_until(cluster, "InForce")

        told = served.admin.get(path(BY_NAME["Controller"], namespace, "site"))["status"]
        assert 3 == told["slurmKeyStep"]
        kept = cluster.get(f"secrets/{RING}")
        assert {"slurm.key.2.jwks", "slurm.key.3.jwks"} == kept["data"].keys()
        assert "ownerReferences" not in kept["metadata"]
        assert first == cluster.get("secrets/site-auth-slurm")
        made = cluster.get("statefulsets/site-controller", APPS)["spec"]["template"]["spec"]
        assert {3} == steps(made)
        assert [{3}] == [steps(item["spec"]) for item in cluster.get("pods")["items"]]
        while await cluster.look("Controller"):
            pass


async def test_a_pod_with_the_first_key_holds_the_second_step(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        await cluster.look("Controller")
        volume = {"name": "key", "secret": {"secretName": SLURM_KEY["name"]}}
        container = {"name": "any", "image": "example.test/any"}
        where = f"/api/v1/namespaces/{namespace}/pods"
        body = {
            "metadata": {"name": "theirs"},
            "spec": {"containers": [container], "volumes": [volume]},
        }
        served.admin.create(where, body)
        ask(cluster, "2")
        async with asyncio.timeout(DEADLINE_S):
            while not (await looked_until(cluster, "Waiting")).endswith("waiting for pod theirs"):
                pass
        assert {"slurm.key.1.jwks"} == cluster.get(f"secrets/{RING}")["data"].keys()
        served.admin.delete(f"{where}/theirs")
        await looked_until(cluster, "InForce")


async def test_a_number_that_is_none_is_told(served: Sandbox, namespace: str) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        ask(cluster, "next")
        message = await looked_until(cluster, "BadInput")
        assert f"metadata.annotations[{NUMBER}]: expected a number" in message
        assert "found next" in message
