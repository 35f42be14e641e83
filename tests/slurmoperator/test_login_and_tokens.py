"""A LoginSet and a Token on a real API server."""

import base64
from datetime import timedelta
from typing import Any

from sandbox.client import Sandbox
from slurmclient.transport import jwt
from slurmoperator.rendering.ssh import HOST_KEY_FILES
from tests.slurmoperator.served import APPS, PLAIN, secret, world


async def test_a_login_set_gets_its_host_keys_once_and_is_scaled(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        cluster.create("LoginSet")
        await cluster.look("LoginSet")
        status, reason, message = cluster.told("LoginSet", "Accepted")
        assert ("False", "BadInput") == (status, reason)
        assert "there is no Secret site-sssd" in message

        secret(served, namespace, "site-sssd", sssd_conf="[sssd]")
        first = await cluster.look("LoginSet")
        assert ["POST secrets", "PATCH configmaps", "PATCH services", "PATCH deployments"] == [
            each for each in first if "status" not in each
        ]
        assert ("True", "Accepted") == cluster.told("LoginSet", "Accepted")[:2]
        keys = cluster.get("secrets/site-ssh-host-keys")
        assert set(HOST_KEY_FILES) == keys["data"].keys()

        served.kubectl("scale", "loginset/site", "--replicas=2", "-n", namespace)
        again = await cluster.look("LoginSet")
        assert ["PATCH deployments"] == [each for each in again if "status" not in each]
        assert 2 == cluster.get("deployments/site", APPS)["spec"]["replicas"]
        where = f"/apis/slinky.slurm.net/v1beta1/namespaces/{namespace}/loginsets/site/scale"
        assert "app.kubernetes.io/name=login" in served.admin.get(where)["status"]["selector"]
        assert keys == cluster.get("secrets/site-ssh-host-keys")
        while await cluster.look("LoginSet"):
            pass


async def test_a_token_is_signed_with_the_clusters_key_for_whom_the_policy_names(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as cluster:
        cluster.create("Controller", **PLAIN)
        cluster.create("Token")
        await cluster.look("Token")
        assert "the Controller that names it creates it" in cluster.told("Token", "Accepted")[2]

        await cluster.look("Controller")
        await cluster.look("Token")
        assert ("True", "AllReady") == cluster.told("Token", "Ready")[:2]
        signed = of(cluster.get("secrets/alice-token"), "token")
        issued = jwt.issued_at(signed)
        assert issued is not None
        key = base64.b64decode(cluster.get("secrets/site-auth-jwt")["data"]["jwt.key"])
        now_s = int(issued.timestamp())
        assert jwt.mint(key, user="alice", now_s=now_s, lifetime_s=5400) == signed
        assert issued + timedelta(minutes=90) == jwt.expires_at(signed)
        assert [] == await cluster.look("Token")

        cluster.change("Token", {"spec": {"username": "root"}})
        assert [] == [each for each in await cluster.look("Token") if "status" not in each]
        assert "may not have a token of user root" in cluster.told("Token", "Accepted")[2]
        assert "alice" == jwt.user_of(of(cluster.get("secrets/alice-token"), "token"))


def of(found: dict[str, Any], key: str) -> str:
    return base64.b64decode(found["data"][key]).decode()
