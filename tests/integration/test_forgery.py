"""An ordinary user with the role `edit` cannot get round Slurm; Kubernetes' own programs and older pods are not in the way.

The policies one by one: tests/chart. Here the webhook, the scheduler and our programs are there too.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, WorkloadKey
from tests.integration.tampering import refusal
from tests.integration.worlds import (
    Manifest,
    Worlds,
    container,
    is_gated,
    is_released,
    job_id,
    played,
)
from tests.servers import wait_until

_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}
_EFFECTIVE_S = 30.0
"""The API server takes the namespace's label up within a few seconds."""
_DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "forged",
    "uid": "00000000-0000-0000-0000-000000000000",
    "controller": True,
}
_ANOTHERS = Identity(
    cluster=ClusterId("c"), kind="Pod", namespace="", name="", key=WorkloadKey("forged"), pods=()
)
_AS_ANOTHER = Grant(
    name="forged", user="kubernetes", group="kubernetes", memory_mib_per_node=64, started_s=1
)


@pytest.fixture
def alice(worlds: Worlds, full_sandbox: Sandbox) -> Iterator[Api]:
    """She has the role `edit` in the namespace."""
    full_sandbox.kubectl(
        *("create", "rolebinding", "edit", "--clusterrole=edit", "--user=alice"),
        *("--namespace", worlds.namespace),
    )
    with Api(full_sandbox.user_kubeconfig("alice")) as api:
        path = f"{worlds.path}/pods"
        wait_until(lambda: refusal(api, "GET", path) == "", 10, sandbox=full_sandbox)
        yield api


@pytest.mark.attack(
    "set nodeName or another scheduler, imitate a DaemonSet's or mirror pod",
    "policy `bypass` goes by the requester",
)
@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({}, {"nodeName": "node-0"}),
        ({}, {"schedulerName": "another-scheduler"}),
        ({"ownerReferences": [_DAEMON_SET]}, {}),
        ({"annotations": {"kubernetes.io/config.mirror": "forged"}}, {"nodeName": "node-0"}),
        ({"labels": {names.JOB_ID_LABEL: "1"}}, {}),
        ({"annotations": {names.NODE_ANNOTATION: "node-0"}}, {}),
    ],
    ids=["nodeName", "scheduler", "DaemonSet", "mirror", "job-id", "node"],
)
def test_a_pod_that_would_get_round_slurm_is_refused(
    worlds: Worlds, alice: Api, metadata: dict[str, Any], spec: dict[str, Any]
) -> None:
    body = {
        "metadata": {"name": "forged", **metadata},
        "spec": {"containers": [container()], **spec},
    }

    assert "slurm" in refusal(alice, "POST", f"{worlds.path}/pods", body).lower()
    assert worlds.pod("forged") is None


@pytest.mark.attack(
    "remove the gate or the finalizer; write job id or node; bind by hand",
    "policy `keys`, role",
)
def test_a_pod_that_waits_cannot_be_helped_along(worlds: Worlds, alice: Api) -> None:
    uid = worlds.submit("waits", annotations=_HELD, by=alice)
    job = worlds.await_live(uid)
    pod = f"{worlds.path}/pods/waits"
    binding = {
        "metadata": {"name": "waits"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
    }
    tried = {
        "label": refusal(
            alice, "PATCH", pod, {"metadata": {"labels": {names.JOB_ID_LABEL: "4711"}}}
        ),
        "annotation": refusal(
            alice, "PATCH", pod, {"metadata": {"annotations": {names.NODE_ANNOTATION: "node-0"}}}
        ),
        "finalizer": refusal(alice, "PATCH", pod, {"metadata": {"finalizers": None}}),
        "gate": refusal(
            alice,
            "PATCH",
            pod,
            [{"op": "remove", "path": "/spec/schedulingGates/0"}],
            kind="json-patch+json",
        ),
        "binding": refusal(alice, "POST", f"{pod}/binding", binding),
    }

    assert [] == [what for what, said in tried.items() if "forbidden" not in said]
    assert is_gated(worlds.await_pod("waits", bool))

    worlds.scontrol("release", str(job.id))
    assert job.id == job_id(worlds.await_phase("waits", "Running"))


def test_she_may_delete_and_relabel_her_pod(worlds: Worlds, alice: Api) -> None:
    uid = worlds.submit("hers", by=alice)
    worlds.await_phase("hers", "Running")
    pod = f"{worlds.path}/pods/hers"

    assert "" == refusal(alice, "PATCH", pod, {"metadata": {"labels": {"team": "a"}}})
    assert "" == refusal(alice, "DELETE", pod)

    worlds.await_gone("hers")
    assert "CANCELLED" == worlds.await_accounted(uid).state


def daemon_set() -> Manifest:
    """One that tolerates everything, as those of the cluster's own infrastructure do."""
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {
            "containers": [container("10m", "1Mi")],
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
        },
    }
    return {
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }


@pytest.mark.attack(
    "create a DaemonSet that tolerates the taint, with the real DaemonSet controller",
    "policy `daemonsets`",
)
def test_a_daemon_set_does_not_get_round_slurm(worlds: Worlds, alice: Api) -> None:
    path = f"/apis/apps/v1/namespaces/{worlds.namespace}/daemonsets"

    assert "a DaemonSet of this namespace may not tolerate" in refusal(
        alice, "POST", path, daemon_set()
    )


@pytest.mark.attack(
    "create a DaemonSet whose pods say that they have lost a job of another user, and that an operator wants it again, so that it is requested as that user",
    "policy `bypass`: not even the DaemonSet controller creates a pod that asks for us",
)
def test_no_pod_of_a_daemon_set_has_a_job_requested(worlds: Worlds, alice: Api) -> None:
    path = f"/apis/apps/v1/namespaces/{worlds.namespace}/daemonsets"
    lost = {
        names.NODE_ANNOTATION: "node-0",
        names.WORKLOAD_ANNOTATION: "forged",
        names.GRANT_ANNOTATION: grant.encode(_ANOTHERS, _AS_ANOTHER),
        names.WHEN_LOST_ANNOTATION: "restore",
    }
    body = daemon_set()
    template = body["spec"]["template"]
    template["metadata"] |= {"annotations": lost, "finalizers": [names.FINALIZER]}
    template["spec"] |= {"tolerations": [], "schedulerName": names.SCHEDULER_NAME}
    alice.create(path, body)

    def refused() -> str:
        events = said_because(worlds, "FailedCreate")
        return next((text for text in events if "would count as placed by Slurm" in text), "")

    try:
        wait_until(refused, 30, sandbox=worlds.sandbox)
        assert not worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
        assert "forged" not in worlds.sandbox.run("squeue", "--noheader", "--format=%j")
    finally:
        worlds.sandbox.admin.delete(f"{path}/agent")


def said_because(worlds: Worlds, reason: str) -> list[str]:
    """What was said in the namespace for that reason."""
    listed = worlds.sandbox.admin.get(f"{worlds.path}/events", fieldSelector=f"reason={reason}")
    return [event["message"] for event in listed["items"]]


def test_a_system_daemon_sets_pods_run_on_slurms_nodes_and_go(full_sandbox: Sandbox) -> None:
    worlds = Worlds(full_sandbox, "kube-system")
    path = f"/apis/apps/v1/namespaces/{worlds.namespace}/daemonsets"
    full_sandbox.admin.create(path, daemon_set())
    machines = {*full_sandbox.instance.options.node_names}

    def pods() -> dict[str, str]:
        listed = full_sandbox.admin.get(f"{worlds.path}/pods", labelSelector="app=agent")
        return {
            pod["spec"]["nodeName"]: pod["metadata"]["name"]
            for pod in listed["items"]
            if pod["status"]["phase"] == "Running"
        }

    wait_until(lambda: machines <= pods().keys(), 30, sandbox=full_sandbox)
    agent = worlds.await_pod(pods()["node-0"], bool)
    assert names.DEFAULT_SCHEDULER_NAME == agent["spec"]["schedulerName"]
    assert is_released(agent)

    full_sandbox.admin.patch(
        f"{worlds.path}/pods/{agent['metadata']['name']}", {"metadata": {"labels": {"x": "y"}}}
    )
    full_sandbox.admin.delete(f"{path}/agent")
    wait_until(lambda: not pods(), 30, sandbox=full_sandbox)


def test_a_pod_older_than_the_label_runs_on_is_updated_and_goes(
    elsewhere: Worlds, full_sandbox: Sandbox
) -> None:
    elsewhere.submit("older")
    elsewhere.submit("older-and-waiting", schedulingGates=[{"name": "example.test/gate"}])
    before = elsewhere.await_phase("older", "Running")
    full_sandbox.admin.patch(
        f"/api/v1/namespaces/{elsewhere.namespace}",
        {"metadata": {"labels": {names.ENABLED_LABEL: "true"}}},
    )
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [container()]}}

    def is_bridged() -> bool:
        try:
            made = full_sandbox.admin.request(
                "POST", f"{elsewhere.path}/pods", probe, params={"dryRun": "All"}
            )
        except ApiError:
            return False  # policies may see the label a moment before the webhook does
        return is_gated(made)

    wait_until(is_bridged, _EFFECTIVE_S, sandbox=full_sandbox)

    for name in ("older", "older-and-waiting"):
        pod = f"{elsewhere.path}/pods/{name}"
        full_sandbox.admin.patch(pod, {"metadata": {"labels": {"still": "mine"}}})
    full_sandbox.admin.patch(
        f"{elsewhere.path}/pods/older-and-waiting", {"spec": {"schedulingGates": None}}
    )
    elsewhere.await_phase("older-and-waiting", "Running")
    after = elsewhere.await_pod("older", bool)
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert is_released(after)

    for name in ("older", "older-and-waiting"):
        elsewhere.delete(name)
        elsewhere.await_gone(name)


@pytest.mark.attack(
    "remove the namespace's label",
    "pods are recognised by what they carry",
)
def test_a_namespace_that_loses_its_label_unprotects_and_loses_nobody(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    uid = worlds.submit("stays", annotations=played(seconds=3))
    worlds.await_phase("stays", "Running")

    full_sandbox.admin.patch(
        f"/api/v1/namespaces/{worlds.namespace}",
        {"metadata": {"labels": {names.ENABLED_LABEL: None}}},
    )

    stripped = {"metadata": {"finalizers": None}}
    assert refusal(full_sandbox.admin, "PATCH", f"{worlds.path}/pods/stays", stripped)
    worlds.await_pod("stays", is_released)
    assert "COMPLETED" == worlds.await_accounted(uid).state
