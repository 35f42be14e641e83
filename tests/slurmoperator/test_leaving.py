"""A Controller that is deleted while something needs it, on a real API server with its garbage collector."""

import asyncio
import contextlib
from typing import Any

from sandbox.client import Sandbox
from slurmruntime.kube.errors import Conflict
from tests.servers import wait_until
from tests.slurmoperator.examples import BY_NAME, path
from tests.slurmoperator.served import APPS, DEADLINE_S, PLAIN, World, answers, world

SETS: dict[str, Any] = {"NodeSet": {"ssh": ...}, "RestApi": {}}


async def a_slurm(cluster: World) -> dict[str, Any]:
    """A Controller that a NodeSet and a RestApi name; return its StatefulSet."""
    cluster.create("Controller", **PLAIN)
    for kind, changes in SETS.items():
        cluster.create(kind, **changes)
    await cluster.look("Controller")
    await cluster.look("RestApi")
    return dict(cluster.get("statefulsets/site-controller", APPS))


def where(kind: str, namespace: str) -> str:
    return path(BY_NAME[kind], namespace, "site")


async def test_slurmctld_stays_until_its_workers_and_its_slurmrestd_are_gone(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        before = await a_slurm(cluster)
        deletion = ("--wait=false", "--namespace", namespace)
        served.kubectl("delete", "controllers.slinky.slurm.net/site", "restapi/site", *deletion)
        for kind in ("RestApi", "Controller"):
            await cluster.look(kind)
            status, reason, message = cluster.told(kind, "Ready")
            assert (status, reason) == ("False", "Deleting")
            assert "NodeSet site" in message
        after = cluster.get("statefulsets/site-controller", APPS)["metadata"]
        assert after["uid"] == before["metadata"]["uid"]
        assert "deletionTimestamp" not in after

        served.admin.delete(where("NodeSet", namespace))
        await cluster.look("RestApi")
        assert not answers(served.admin, where("RestApi", namespace))
        await cluster.look("Controller")
        assert not answers(served.admin, where("Controller", namespace))
        made = f"{APPS}/namespaces/{namespace}/statefulsets/site-controller"
        wait_until(lambda: not answers(served.admin, made), DEADLINE_S, sandbox=served)


async def test_deleted_in_the_foreground_slurmctld_is_made_again_once(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        await a_slurm(cluster)
        deletion = ("--wait=false", "--cascade=foreground", "--namespace", namespace)
        served.kubectl("delete", "controllers.slinky.slurm.net/site", *deletion)
        ours = ["slurm-bridge.dev/needed"]
        wait_until(  # the garbage collector is done with it
            lambda: (
                served.admin.get(where("Controller", namespace))["metadata"]["finalizers"] == ours
            ),
            DEADLINE_S,
            sandbox=served,
        )
        made = f"{APPS}/namespaces/{namespace}/statefulsets/site-controller"
        async with asyncio.timeout(DEADLINE_S):
            while True:
                with contextlib.suppress(Conflict):  # it is still going
                    await cluster.look("Controller")
                    if answers(served.admin, made):
                        break
        assert "NodeSet site" in cluster.told("Controller", "Ready")[2]
        served.admin.delete(where("NodeSet", namespace))


async def test_what_is_orphaned_stays_without_its_controller(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        before = await a_slurm(cluster)
        deletion = ("--wait=false", "--cascade=orphan", "--namespace", namespace)
        served.kubectl("delete", "controllers.slinky.slurm.net/site", *deletion)
        ours = ["slurm-bridge.dev/needed"]
        wait_until(  # the garbage collector is done with it before slurm-operator looks
            lambda: (
                served.admin.get(where("Controller", namespace))["metadata"]["finalizers"] == ours
            ),
            DEADLINE_S,
            sandbox=served,
        )
        await cluster.look("Controller")
        assert not answers(served.admin, where("Controller", namespace))
        after = cluster.get("statefulsets/site-controller", APPS)["metadata"]
        assert after["uid"] == before["metadata"]["uid"]
        assert "ownerReferences" not in after
        assert "deletionTimestamp" not in after


async def test_who_takes_the_finalizer_off_has_it_gone_at_once(
    served: Sandbox, namespace: str
) -> None:
    """Nothing else is there to do it when slurm-operator is uninstalled."""
    async with world(served, namespace) as cluster:
        await a_slurm(cluster)
        served.admin.delete(where("Controller", namespace))
        assert answers(served.admin, where("Controller", namespace))
        served.kubectl(
            *("patch", "controllers.slinky.slurm.net/site", "--namespace", namespace),
            *("--type=merge", '--patch={"metadata":{"finalizers":null}}'),
        )
        assert not answers(served.admin, where("Controller", namespace))
