"""Pods of groups that cannot be read wait and say so: none starts without the others.

The same for in-tree groups is in `test_pod_groups`.
"""

from typing import Any

import pytest

from bridge.domain.workloads.kinds import coscheduling, volcano
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from tests.integration.worlds import PATIENCE_S, Worlds, condition, container, is_gated, played
from tests.servers import wait_until

REASON = "PodGroupUnreadable"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"


def _member(worlds: Worlds, name: str, metadata: dict[str, Any], **spec: Any) -> str:
    notes = {**played(seconds=1), **metadata.pop("annotations", {})}
    body = {
        "metadata": {"name": name, "annotations": notes, **metadata},
        "spec": {"containers": [container()], "restartPolicy": "Never", **spec},
    }
    return str(worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"])


def _definition(plural: str, kind: str, group: str, version: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True


@pytest.mark.parametrize(
    ("metadata", "version"),
    [
        ({"labels": {coscheduling.LABEL: "ring"}}, "scheduling.x-k8s.io/v1alpha1"),
        ({"annotations": {volcano.ANNOTATION: "ring"}}, "scheduling.volcano.sh/v1beta1"),
    ],
    ids=["coscheduling", "Volcano"],
)
def test_a_group_whose_version_is_not_served_holds_its_pods(
    worlds: Worlds, metadata: dict[str, Any], version: str
) -> None:
    uids = [_member(worlds, name, dict(metadata)) for name in ("a", "b")]
    alone = worlds.submit("alone", annotations=played(seconds=1))

    for name in ("a", "b"):
        told = worlds.await_pod(name, lambda pod: condition(pod).get("reason") == REASON)
        assert is_gated(told)
        assert f"does not serve PodGroup in {version}" in condition(told)["message"]
    worlds.await_phase("alone", "Succeeded")
    assert [alone] == [job.uid for job in worlds.queue() if job.uid in {*uids, alone}]


def test_a_group_starts_together_once_it_can_be_read(worlds: Worlds, full_sandbox: Sandbox) -> None:
    for name in ("a", "b"):
        _member(worlds, name, {"labels": {coscheduling.LABEL: "ring"}})
        worlds.await_pod(name, lambda pod: condition(pod).get("reason") == REASON)

    group, version = "scheduling.x-k8s.io", "v1alpha1"
    full_sandbox.admin.create(DEFINITIONS, _definition("podgroups", "PodGroup", group, version))
    path = f"/apis/{group}/{version}/namespaces/{worlds.namespace}/podgroups"
    wait_until(lambda: _is_served(full_sandbox.admin, path), PATIENCE_S, sandbox=full_sandbox)
    full_sandbox.admin.create(
        path,
        {
            "apiVersion": f"{group}/{version}",
            "kind": "PodGroup",
            "metadata": {"name": "ring"},
            "spec": {"minMember": 2},
        },
    )

    for name in ("a", "b"):
        worlds.await_phase(name, "Succeeded", deadline_s=120)
    (job,) = worlds.jobs(f"PodGroup.{group}/{worlds.namespace}/ring")
    assert job.identity is not None
    assert 2 == len(job.identity.pods)
    full_sandbox.admin.delete(f"{DEFINITIONS}/podgroups.{group}")


def test_a_job_set_that_we_may_not_read_holds_its_pods(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    full_sandbox.admin.create(
        DEFINITIONS, _definition("jobsets", "JobSet", "jobset.x-k8s.io", "v1alpha2")
    )
    path = JOBSETS.format(worlds.namespace)
    wait_until(lambda: _is_served(full_sandbox.admin, path), PATIENCE_S, sandbox=full_sandbox)
    made = full_sandbox.admin.create(
        path,
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}},
    )
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-bridge-extender"
    rules = full_sandbox.admin.get(role)["rules"]
    fewer = [rule for rule in rules if "jobset.x-k8s.io" not in rule.get("apiGroups", [])]
    assert fewer != rules
    full_sandbox.admin.patch(role, {"rules": fewer})
    owner = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    try:
        _member(worlds, "a", {"ownerReferences": [owner]})
        told = worlds.await_pod("a", lambda pod: condition(pod).get("reason") == REASON)
        assert is_gated(told)
        assert f"JobSet {worlds.namespace}/train: cannot be read:" in condition(told)["message"]
        assert "forbidden" in condition(told)["message"]
    finally:
        full_sandbox.admin.patch(role, {"rules": rules})
        full_sandbox.admin.delete(f"{DEFINITIONS}/jobsets.jobset.x-k8s.io")
