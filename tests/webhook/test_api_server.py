"""A real API server calls the webhook: what it makes of our answers, and what a user sees."""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.servers import wait_until
from tests.webhook.running import Webhook

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where pods are created for show (dry run): admission is real, nothing stays."""

    sandbox: Sandbox
    namespace: str

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The pod as it would be stored."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.sandbox.admin.request("POST", path, body, params={"dryRun": "All"})

    def kubectl_create(self, body: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        """What kubectl's user sees."""
        kubectl = self.sandbox.instance.bin / "kubectl"
        where = (f"--kubeconfig={self.sandbox.kubeconfig}", f"--namespace={self.namespace}")
        return subprocess.run(
            [str(kubectl), *where, "create", "--dry-run=server", "--filename=-"],
            input=json.dumps(body),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, webhook: Webhook) -> Iterator[Cluster]:
    """The control plane with the webhook registered for the namespace `default`."""
    ca = base64.b64encode(webhook.authority.certificate).decode()
    folder = "/apis/admissionregistration.k8s.io/v1"
    for kind, path in (("Mutating", "mutate"), ("Validating", "validate")):
        hook = {
            "name": f"{path}.slurm-bridge.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": f"{webhook.url}/{path}", "caBundle": ca},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "rules": [RULE],
        }
        body = {"kind": f"{kind}WebhookConfiguration", "metadata": {"name": "test-webhook"}}
        api_version = "admissionregistration.k8s.io/v1"
        control_plane.admin.create(
            f"{folder}/{kind.lower()}webhookconfigurations",
            {**body, "apiVersion": api_version, "webhooks": [hook]},
        )
    registered = Cluster(sandbox=control_plane, namespace="default")
    try:
        wait_until(
            lambda: registered.create(pod())["spec"].get("schedulingGates"),
            30,
            sandbox=control_plane,
        )
        yield registered
    finally:
        for kind in ("mutating", "validating"):
            control_plane.admin.delete(f"{folder}/{kind}webhookconfigurations/test-webhook")


def pod(*, annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    fields = {f"{names.REQUEST_PREFIX}{key}": value for key, value in (annotations or {}).items()}
    container = {"name": "main", "image": "example.test/main"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "annotations": fields},
        "spec": {"containers": [container], **spec},
    }


def test_an_ordinary_pod_is_created_for_slurm(cluster: Cluster) -> None:
    created = cluster.create(pod(annotations={"timelimit": "30"}))
    spec = created["spec"]
    tolerations = [t for t in spec["tolerations"] if t["key"] == names.MANAGED_NODE_TAINT]

    assert names.SCHEDULER_NAME == spec["schedulerName"]
    assert [{"name": names.GATE}] == spec["schedulingGates"]
    assert [names.FINALIZER] == created["metadata"]["finalizers"]
    assert [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}] == tolerations
    assert "SchedulingGated" == created["status"]["conditions"][0]["reason"]


def test_the_user_sees_every_fault_on_a_line_of_its_own(cluster: Cluster) -> None:
    faulty = pod(
        annotations={"timelimit": "10 minutes", "time": "5", "user-id": "root"},
        resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}],
    )
    done = cluster.kubectl_create(faulty)

    assert 1 == done.returncode
    assert "is invalid" in done.stderr
    for fault in (
        "metadata.annotations[slurmjob.slinky.slurm.net/timelimit]: expected minutes",
        "metadata.annotations[slurmjob.slinky.slurm.net/time]: no such field; did you mean timelimit?",
        "metadata.annotations[slurmjob.slinky.slurm.net/user-id]: expected kubernetes",
        "spec.resourceClaims: cannot be honoured",
    ):
        assert any(fault in line for line in done.stderr.splitlines()), done.stderr


def test_the_user_is_warned_of_what_has_no_effect(cluster: Cluster) -> None:
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 1, "preference": preference}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    done = cluster.kubectl_create(pod(affinity=affinity))

    assert 0 == done.returncode, done.stderr
    assert "Warning: spec.affinity.nodeAffinity.preferred" in done.stderr


def test_pods_of_others_are_left_alone(cluster: Cluster) -> None:
    created = cluster.create(pod(schedulerName="volcano"))

    assert "volcano" == created["spec"]["schedulerName"]
    assert "finalizers" not in created["metadata"]


@pytest.fixture
def stored(cluster: Cluster) -> Iterator[str]:
    """The path of a pod that stays; at the end nothing holds it."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/train"
    try:
        yield path
    finally:
        cluster.sandbox.admin.patch(path, {"metadata": {"finalizers": None}})
        cluster.sandbox.admin.request("DELETE", path, {"gracePeriodSeconds": 0})


def applied(
    cluster: Cluster, path: str, body: Mapping[str, Any], *, force: str = "false"
) -> dict[str, Any]:
    """Apply server-side."""
    named = {**body, "metadata": {**body["metadata"], "name": path.rpartition("/")[2]}}
    return cluster.sandbox.admin.request(
        "PATCH",
        path,
        {"apiVersion": "v1", "kind": "Pod", **named},
        content_type="application/apply-patch+yaml",
        params={"fieldManager": "a-tool", "force": force},
    )


def test_no_account_of_fields_is_kept_and_a_pod_can_still_be_applied(
    cluster: Cluster, stored: str
) -> None:
    admin = cluster.sandbox.admin
    admin.create(f"/api/v1/namespaces/{cluster.namespace}/pods", pod())

    changed = admin.patch(stored, {"metadata": {"annotations": {"example.test/by": "update"}}})
    assert "managedFields" not in changed["metadata"]
    for value in ("1", "2"):
        written = applied(cluster, stored, {"metadata": {"annotations": {"example.test/a": value}}})
        assert value == written["metadata"]["annotations"]["example.test/a"]
    left = applied(cluster, stored, {"metadata": {}})
    assert "update" == left["metadata"]["annotations"]["example.test/by"]
    assert "example.test/a" not in left["metadata"]["annotations"]


def test_who_applies_a_pod_may_change_it_again(cluster: Cluster, stored: str) -> None:
    body = {"spec": {"containers": [{"name": "main", "image": "example.test/main"}]}}
    applied(cluster, stored, {**body, "metadata": {"labels": {"example.test/a": "1"}}})

    again = applied(cluster, stored, {**body, "metadata": {"labels": {"example.test/a": "2"}}})

    assert "2" == again["metadata"]["labels"]["example.test/a"]
    assert "a-tool" in [
        managed_field["manager"] for managed_field in again["metadata"]["managedFields"]
    ]


def test_the_first_apply_later_meets_one_manager_of_all_that_was_there(
    cluster: Cluster, stored: str
) -> None:
    """Its own values it gets by force only, what it had in common stays when left out, and accounts are kept again."""
    admin = cluster.sandbox.admin
    body = pod()
    body["metadata"]["labels"] = {"example.test/a": "1", "example.test/b": "1"}
    admin.create(f"/api/v1/namespaces/{cluster.namespace}/pods", body)
    other = {"metadata": {"labels": {"example.test/a": "2", "example.test/b": "1"}}}

    with pytest.raises(ApiError, match='conflict with "before-first-apply"') as refused:
        applied(cluster, stored, other)
    assert 409 == refused.value.status
    forced = applied(cluster, stored, other, force="true")
    left = applied(cluster, stored, {"metadata": {}})
    noted = admin.patch(stored, {"metadata": {"annotations": {"example.test/by": "update"}}})

    assert "2" == forced["metadata"]["labels"]["example.test/a"]
    assert "example.test/a" not in left["metadata"]["labels"]  # its own alone, since it was forced
    assert "1" == left["metadata"]["labels"]["example.test/b"]  # in common with what was there
    assert {names.GATE} == {gate["name"] for gate in left["spec"]["schedulingGates"]}
    assert "before-first-apply" in {
        managed_field["manager"] for managed_field in noted["metadata"]["managedFields"]
    }
    assert "Update" in {
        managed_field["operation"] for managed_field in noted["metadata"]["managedFields"]
    }
