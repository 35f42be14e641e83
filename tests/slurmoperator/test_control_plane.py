"""A Controller and an Accounting on a real API server: what is made of them, what is told, and what is left alone."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from bridge.settings.schema import Settings
from deploy.operator_rights import NAME, rights
from sandbox import kubeconfig
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmoperator import __main__ as program
from slurmoperator import rivals
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from tests.servers import fresh_namespace, until, wait_until
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.rival import Rival
from tests.slurmoperator.served import APPS, DEADLINE_S, PLAIN, answers, world


async def test_a_controller_is_made_told_and_changed_and_its_state_and_keys_outlive_it(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)

        first = await cluster.look("Controller")

        assert [each for each in first if "status" not in each] == [
            "PATCH controllers",
            "POST secrets",
            "POST secrets",
            "PATCH configmaps",
            "PATCH services",
            "PATCH configmaps",
            "PATCH services",
            "PATCH services",
            "PATCH statefulsets",
        ]
        assert cluster.told("Controller", "Accepted")[:2] == ("True", "Accepted")
        assert cluster.told("Controller", "Configured") == (
            "Unknown",
            "NotTried",
            "there is no pod of slurmctld yet",
        )
        async with asyncio.timeout(DEADLINE_S):
            while (
                "pod site-controller-0: Unschedulable" not in cluster.told("Controller", "Ready")[2]
            ):
                await cluster.look("Controller")
            while await cluster.look("Controller"):
                pass
        status, reason, message = cluster.told("Controller", "Ready")
        assert (status, reason) == ("False", "NotReady")
        assert "StatefulSet site-controller: 0 of 1 pods are ready" in message

        note = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
        where = f"{APPS}/namespaces/{namespace}/statefulsets/site-controller"
        served.admin.patch(where, {"spec": {"template": {"metadata": {"annotations": note}}}})
        in_force = cluster.get("configmaps/site-config")["data"]
        cluster.change("Controller", {"spec": {"extraConf": "SchedulerTpye=sched/backfill"}})
        wrong = await cluster.look("Controller")
        assert [each for each in wrong if "status" not in each] == []
        status, _, message = cluster.told("Controller", "Configured")
        assert status == "False"
        assert "did you mean SchedulerType?" in message
        assert cluster.get("configmaps/site-config")["data"] == in_force

        cluster.change("Controller", {"spec": {"extraConf": "SchedulerType=sched/backfill"}})
        right = await cluster.look("Controller")
        assert [each for each in right if "status" not in each] == ["PATCH configmaps"] * 2
        assert (
            "SchedulerType=sched/backfill"
            in cluster.get("configmaps/site-config")["data"]["slurm.conf"]
        )
        after = served.admin.get(where)["spec"]["template"]["metadata"]["annotations"]
        assert note.items() <= after.items()

        claim = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/statesave-site-controller-0"
        wait_until(lambda: answers(served.admin, claim), DEADLINE_S, sandbox=served)
        for kept in (claim, f"/api/v1/namespaces/{namespace}/secrets/site-auth-slurm"):
            assert "ownerReferences" not in served.admin.get(kept)["metadata"]


async def test_an_accounting_waits_for_its_password_and_a_lost_key_is_not_replaced(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Accounting")
        await cluster.look("Accounting")
        status, reason, message = cluster.told("Accounting", "Accepted")
        assert (status, reason) == ("False", "BadInput")
        assert "there is no Secret mariadb-password" in message

        served.admin.create(
            f"/api/v1/namespaces/{namespace}/secrets",
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "mariadb-password"},
                "stringData": {"password": "hunter2"},
            },
        )
        await cluster.look("Accounting")
        assert cluster.told("Accounting", "Accepted")[0] == "True"
        assert cluster.get("statefulsets/site-accounting", APPS)["spec"]["replicas"] == 1

        served.admin.delete(f"/api/v1/namespaces/{namespace}/secrets/site-auth-slurm")
        writes = await cluster.look("Accounting")
        assert not any("secrets" in write for write in writes)
        assert "daemons run with its key: restore it" in cluster.told("Accounting", "Accepted")[2]


async def test_what_somebody_else_has_made_is_left_alone_until_it_is_handed_over(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        where = f"/api/v1/namespaces/{namespace}/configmaps"
        foreign = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "site-config", "namespace": namespace},
        }
        served.admin.create(where, {**foreign, "data": {"note": "mine"}})
        before = cluster.get("configmaps/site-config")
        cluster.create("Controller", **PLAIN)

        writes = await cluster.look("Controller")

        assert [write for write in writes if "status" not in write] == []
        status, reason, message = cluster.told("Controller", "Accepted")
        assert (status, reason) == ("False", "NotOurs")
        assert "was not created by us" in message
        assert cluster.get("configmaps/site-config") == before

        cluster.change("Controller", {"metadata": {"annotations": {TAKE_OVER_ANNOTATION: "true"}}})
        await cluster.look("Controller")
        assert cluster.told("Controller", "Accepted") == ("True", "Accepted", "")
        assert "SlurmctldHost" in cluster.get("configmaps/site-config")["data"]["slurm.conf"]


@pytest.fixture
def rival(served: Sandbox, namespace: str) -> Iterator[Rival]:
    found = Rival(served.admin, namespace)
    yield found
    found.leave()


async def test_another_operator_is_known_by_its_webhook_and_by_a_lease_that_it_renews(
    served: Sandbox, namespace: str, rival: Rival
) -> None:
    now = SystemClock().now()
    async with KubeClient.open(
        str(served.kubeconfig), request_timeout_s=10, user_agent="slurm-bridge-operator/1"
    ) as client:
        assert await rivals.find(client, now, release=namespace) is None

        rival.register()
        assert f"rival-{namespace} is registered for slinky.slurm.net" in (
            await rivals.find(client, now, release=namespace) or ""
        )
        rival.leave()
        assert await rivals.find(client, now, release=namespace) is None

        rival.hold(until=now + timedelta(hours=1))
        assert f"theirs holds the lease {namespace}/slurm-operator" in (
            await rivals.find(client, now, release=namespace) or ""
        )
        assert await rivals.find(client, now + timedelta(hours=2), release=namespace) is None


@pytest.fixture
def as_operator(served: Sandbox, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of the program's service account, which has the rights of the manifest."""
    admin, group = served.admin, "/apis/rbac.authorization.k8s.io/v1"
    account, *others = rights(namespace, [namespace])
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    everywhere = [
        (f"{group}/{other['kind'].lower()}s", other)
        for other in others
        if other["kind"].startswith("Cluster")
    ]
    ours = [other for other in others if not other["kind"].startswith("Cluster")]
    for where, each in (
        (accounts, account),
        *everywhere,
        *((f"{group}/namespaces/{namespace}/{our['kind'].lower()}s", our) for our in ours),
    ):
        admin.create(where, each)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    token = admin.create(f"{accounts}/{NAME}/token", request)["status"]["token"]
    instance = served.instance
    file = tmp_path / "operator-token"
    file.write_text(token)
    yield kubeconfig.with_token_file(
        tmp_path / "operator.kubeconfig",
        server=instance.url("apiserver", "https"),
        ca=(instance.kube / "ca.crt").read_bytes(),
        token_file=file,
    )
    for where, each in everywhere:
        admin.delete(f"{where}/{each['metadata']['name']}")


def is_renewed(admin: Api, lease: str) -> bool:
    """Whether somebody has led for some seconds: long enough to have acted."""
    if not answers(admin, lease):
        return False
    spec = admin.get(lease)["spec"]
    return bool(spec["renewTime"] > spec["acquireTime"])


async def test_the_program_does_nothing_until_it_is_alone(
    served: Sandbox, namespace: str, rival: Rival, as_operator: Path, tmp_path: Path
) -> None:
    """With no right but those in its manifest, where it serves this namespace only."""
    admin = served.admin
    token = tmp_path / "token"
    token.write_text("none")
    settings = Settings.model_validate(
        {
            "kubernetes": {"kubeconfig": str(as_operator), "namespace": namespace},
            "slurm": {"url": "http://127.0.0.1:1", "token_file": str(token)},
            "health": {"listen": "127.0.0.1:0"},
            "operator": {"token_users": {namespace: "alice"}, "namespaces": [namespace]},
        }
    )
    monitored = {"enabled": True, "serviceMonitor": {"enabled": True}}
    made = manifest("Controller", **PLAIN, metrics=monitored)
    made["metadata"]["namespace"] = namespace
    stop = asyncio.Event()
    rival.register()
    others = (manifest("RestApi"), manifest("LoginSet"), manifest("Token"))
    workers = manifest("NodeSet", "gpu", replicas=0, volumeClaimTemplates=..., extraConf="")
    sssd = {
        "kind": "Secret",
        "metadata": {"name": "site-sssd"},
        "stringData": {"sssd.conf": "[sssd]"},
    }
    admin.create(f"/api/v1/namespaces/{namespace}/secrets", {"apiVersion": "v1", **sssd})
    for each in (made, *others, workers):
        each["metadata"]["namespace"] = namespace
        admin.create(path(BY_NAME[each["kind"]], namespace), each)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/slurm-bridge-operator"
    marker = f"/api/v1/namespaces/{namespace}/configmaps"
    async with asyncio.TaskGroup() as group:
        group.create_task(program.run(settings, stop))
        try:
            await until(lambda: is_renewed(admin, lease), DEADLINE_S, sandbox=served)
            mark = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark"}}
            left = int(admin.create(marker, mark)["metadata"]["resourceVersion"])
            rival.leave()
            where = path(BY_NAME["Controller"], namespace, "site")
            await until(
                lambda: "Unschedulable" in str(admin.get(where)), DEADLINE_S, sandbox=served
            )
            apps, core = f"{APPS}/namespaces/{namespace}", f"/api/v1/namespaces/{namespace}"
            for there in (
                f"{apps}/deployments/site-restapi",
                f"{apps}/deployments/site",
                f"{core}/secrets/site-ssh-host-keys",
                f"{core}/secrets/alice-token",
                f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/gpu-workers",
            ):
                await until(lambda: answers(admin, there), DEADLINE_S, sandbox=served)  # noqa: B023  # awaited here
            said = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
            await until(
                lambda: {"NotReady", "NotTried"} <= _reasons(admin, said, "Controller"),
                DEADLINE_S,
                sandbox=served,
            )
            address = {"host": "slurm.example.org", "port": 6817}
            admin.patch(where, {"spec": {"external": True, "externalConfig": address}})
            gone = f"{apps}/statefulsets/site-controller"
            await until(lambda: not answers(admin, gone), DEADLINE_S, sandbox=served)
            left_over = path(BY_NAME["NodeSet"], namespace, "gpu")
            admin.delete(left_over)  # it has a finalizer, which only the program takes off
            await until(lambda: not answers(admin, left_over), DEADLINE_S, sandbox=served)
        finally:
            stop.set()

    secret = admin.get(f"/api/v1/namespaces/{namespace}/secrets/site-auth-slurm")
    assert int(secret["metadata"]["resourceVersion"]) > left


def _reasons(admin: Api, where: str, kind: str) -> set[str]:
    """The reasons of the program's Events about objects of a kind."""
    events = admin.get(where)["items"]
    return {event["reason"] for event in events if event["regarding"]["kind"] == kind}


async def test_where_it_does_not_serve_it_says_so_and_has_no_right_to_secrets(
    served: Sandbox, namespace: str, as_operator: Path, tmp_path: Path
) -> None:
    admin = served.admin
    token = tmp_path / "token"
    token.write_text("none")
    settings = Settings.model_validate(
        {
            "kubernetes": {"kubeconfig": str(as_operator), "namespace": namespace},
            "slurm": {"url": "http://127.0.0.1:1", "token_file": str(token)},
            "health": {"listen": "127.0.0.1:0"},
            "operator": {"namespaces": [namespace]},
        }
    )
    stop = asyncio.Event()
    with fresh_namespace(served, labels={}) as other, Api(as_operator) as api:
        plural = {each: path(BY_NAME[each], other) for each in ("Controller", "NodeSet")}
        for kind, where in plural.items():
            made = manifest(kind)
            made["metadata"]["namespace"] = other
            admin.create(where, made)
        async with asyncio.TaskGroup() as group:
            group.create_task(program.run(settings, stop))
            try:
                for where in plural.values():
                    told = partial(lambda at: "NotServed" in str(admin.get(at)), where)
                    await until(told, DEADLINE_S, sandbox=served)
            finally:
                stop.set()
        there = f"/api/v1/namespaces/{other}"
        assert not admin.get(f"{there}/secrets")["items"]
        for method, where, body in (
            ("GET", f"{there}/secrets/any", None),
            ("POST", f"{there}/secrets", {"metadata": {"name": "any"}}),
            ("POST", f"{there}/pods", {"metadata": {"name": "any"}}),
        ):
            with pytest.raises(ApiError) as error:
                api.request(method, where, body)
            assert error.value.status == 403, where
        with pytest.raises(ApiError) as error:
            api.get(f"/api/v1/namespaces/{namespace}/secrets/any")
        assert error.value.status == 404
