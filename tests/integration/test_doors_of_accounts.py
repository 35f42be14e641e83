"""Attacks with the credentials of our own programs: whoever takes one over gets its work, and no more."""

import pytest

from sandbox import chart
from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.attacks import attack
from tests.integration.tampering import refusal
from tests.integration.worlds import container

RELEASE = f"/api/v1/namespaces/{chart.NAMESPACE}"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("component", "method", "path", "body"),
    [
        attack(
            "extender deletes",
            "use the extender's account to delete pods",
            "role",
            "extender",
            "DELETE",
            f"{PODS}/hers",
            None,
        ),
        attack(
            "extender creates",
            "use the extender's account to create pods",
            "role",
            "extender",
            "POST",
            PODS,
            {"metadata": {"name": "x"}, "spec": {"containers": [container()]}},
        ),
        attack(
            "extender and nodes",
            "use the extender's account to change nodes",
            "role",
            "extender",
            "PATCH",
            "/api/v1/nodes/node-0",
            {"spec": {"taints": []}},
        ),
        attack(
            "controllers and policies",
            "use the controllers' account to turn off a policy",
            "role",
            "controllers",
            "DELETE",
            f"{ADMISSION}/validatingadmissionpolicies/slurm-bridge-keys",
            None,
        ),
        attack(
            "controllers and roles",
            "use the controllers' account to get more rights",
            "role",
            "controllers",
            "PATCH",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-bridge-controllers",
            {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
        ),
        attack(
            "controllers and secrets",
            "use the controllers' account to read Slurm's token from its Secret",
            "role: the kubelet mounts it",
            "controllers",
            "GET",
            f"{RELEASE}/secrets/slurm-token",
            None,
        ),
        attack(
            "scheduler and keys",
            "use kube-scheduler's account to change a pod's keys",
            "role",
            "scheduler",
            "PATCH",
            f"{PODS}/hers",
            {"metadata": {"labels": {names.JOB_ID_LABEL: "999999"}}},
        ),
    ],
)
def test_an_account_of_ours_does_no_more_than_its_work(
    full_sandbox: Sandbox, component: str, method: str, path: str, body: object
) -> None:
    with Api(chart.credentials(full_sandbox.instance, component)) as account:
        said = refusal(account, method, path, body)

    assert "cannot" in said, said
    assert "resource" in said, said
