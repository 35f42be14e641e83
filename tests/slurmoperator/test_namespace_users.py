"""What people with Kubernetes' role `edit` can do to a Slurm in pods: everything in its own namespace, nothing from another one."""

import base64

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmcli.doctor import keys as examine_keys
from slurmclient.transport import jwt
from slurmruntime.kube.client import KubeClient
from tests.servers import fresh_namespace
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.people import editor
from tests.slurmoperator.served import PLAIN, World, world

FORBIDDEN = 403
ASKED_FOR = ("Token", "LoginSet", "NodeSet", "RestApi")


async def found_by_the_doctor(served: Sandbox, namespace: str) -> list[str]:
    async with KubeClient.open(
        str(served.kubeconfig), request_timeout_s=10, user_agent="doctor"
    ) as client:
        found = await examine_keys.holders(client, release="slurm-bridge-system")
    return list(found[namespace])


async def controller(cluster: World) -> bytes:
    """Have a Controller made; return its key of tokens."""
    cluster.create("Controller", **PLAIN)
    await cluster.look("Controller")
    return base64.b64decode(cluster.get("secrets/site-auth-jwt")["data"]["jwt.key"])


async def test_who_may_edit_a_controllers_namespace_is_root_in_its_slurm_and_the_doctor_says_so(
    served: Sandbox, namespace: str
) -> None:
    """The boundary that docs/security.md states: nothing in Kubernetes can keep a key from them."""
    async with world(served, namespace) as cluster:
        key = await controller(cluster)
        assert [] == await found_by_the_doctor(served, namespace)

        with editor(served, namespace) as eve:
            secret = eve.get(f"/api/v1/namespaces/{namespace}/secrets/site-auth-jwt")

            assert key == base64.b64decode(secret["data"]["jwt.key"])
            (who,) = await found_by_the_doctor(served, namespace)
            assert who.startswith("User eve-")
            assert "-edit)" in who
            with pytest.raises(ApiError) as error:
                eve.create(path(BY_NAME["NodeSet"], namespace), manifest("NodeSet"))
            assert FORBIDDEN == error.value.status


@pytest.mark.attack(
    "with the role `edit` in another namespace, read the keys of a Slurm in pods, or get into its daemons",
    "role: its namespace is not theirs",
)
async def test_from_another_namespace_nobody_has_the_keys(served: Sandbox, namespace: str) -> None:
    async with world(served, namespace) as cluster:
        await controller(cluster)
    there = f"/api/v1/namespaces/{namespace}"
    with (
        fresh_namespace(served, labels={}) as own,
        editor(served, own, also=ASKED_FOR) as eve,
    ):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"}}
        for method, where, body in (
            ("GET", f"{there}/secrets/site-auth-jwt", None),
            ("GET", f"{there}/secrets/site-auth-slurm", None),
            ("GET", f"{there}/secrets", None),
            ("POST", f"{there}/pods/site-controller-0/exec", {}),
            ("POST", f"{there}/pods", pod),
            ("POST", path(BY_NAME["Token"], namespace), manifest("Token")),
        ):
            with pytest.raises(ApiError) as error:
                eve.request(method, where, body)
            assert FORBIDDEN == error.value.status, where
    assert [] == await found_by_the_doctor(served, namespace)


@pytest.mark.attack(
    "ask slurm-operator, from another namespace, for a token signed with a Slurm's key, or for pods that have its keys",
    "objects name Secrets and Controllers of their own namespace only",
)
async def test_the_operator_hands_no_key_to_another_namespace(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as theirs:
        await controller(theirs)
    with (
        fresh_namespace(served, labels={}) as own,
        editor(served, own, also=ASKED_FOR) as eve,
    ):
        async with world(served, own) as mine:
            for kind, changes in (
                ("Token", {"username": "alice"}),
                ("LoginSet", {}),
                ("RestApi", {}),
            ):
                wanted = manifest(kind, **changes)
                wanted["metadata"]["namespace"] = own
                eve.create(path(BY_NAME[kind], own), wanted)

                written = await mine.look(kind)

                assert [] == [each for each in written if "status" not in each], kind
                assert ("False", "BadInput") == mine.told(kind, "Accepted")[:2], kind
            made = {
                item["metadata"]["name"]
                for item in eve.get(f"/api/v1/namespaces/{own}/secrets")["items"]
            }
            assert not made


@pytest.mark.attack(
    "make a key of one's own, and have slurm-operator sign a token of root with it for the Slurm of another namespace",
    "a token of another key is no token there",
)
async def test_a_key_of_ones_own_signs_nothing_for_another_slurm(
    served: Sandbox, namespace: str
) -> None:
    async with world(served, namespace) as theirs:
        key = await controller(theirs)
    with (
        fresh_namespace(served, labels={}) as own,
        editor(served, own, also=ASKED_FOR) as eve,
    ):
        async with world(served, own) as mine:
            forged = {"jwt.key": base64.b64encode(b"k" * 64).decode()}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "site-auth-jwt"}}
            eve.create(f"/api/v1/namespaces/{own}/secrets", {**secret, "data": forged})
            for user in ("root", "slurm", "0"):
                wanted = manifest("Token", username=user, secretRef=...)
                wanted["metadata"] = {"name": "site", "namespace": own}
                where = path(BY_NAME["Token"], own)
                eve.create(where, wanted)
                await mine.look("Token")
                assert f"may not have a token of user {user}" in mine.told("Token", "Accepted")[2]
                eve.delete(f"{where}/site")
            wanted = manifest("Token", username="alice")
            wanted["metadata"]["namespace"] = own
            eve.create(path(BY_NAME["Token"], own), wanted)
            await mine.look("Token")
            held = eve.get(f"/api/v1/namespaces/{own}/secrets/alice-token")["data"]["token"]
            signed = base64.b64decode(held).decode()
            issued = jwt.issued_at(signed)
            assert issued is not None
            real = jwt.mint(key, user="alice", now_s=int(issued.timestamp()), lifetime_s=5400)
            assert real != signed
