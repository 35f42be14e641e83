"""In-tree pod groups (`spec.schedulingGroup`), with Kubernetes' feature gates on: a sandbox of its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.worlds import Worlds, condition, container, is_gated, is_released, played
from tests.servers import fresh_namespace, running_sandbox

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups"


@pytest.fixture(scope="module")
def gated_sandbox() -> Iterator[Sandbox]:
    gates = ("GenericWorkload", "GangScheduling")
    with running_sandbox(Options(accounting=True, feature_gates=gates)) as sandbox:
        yield sandbox


@pytest.fixture
def worlds(gated_sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(gated_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        yield Worlds(gated_sandbox, name)


def group(worlds: Worlds, name: str, policy: dict[str, Any]) -> None:
    body = {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}
    worlds.sandbox.admin.create(GROUPS.format(worlds.namespace), body)


def member(worlds: Worlds, name: str, group: str, **play: Any) -> str:
    body = {
        "metadata": {"name": name, "annotations": played(**play)},
        "spec": {
            "containers": [container()],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "schedulingGroup": {"podGroupName": group},
        },
    }
    return str(worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"])


def uid_of(worlds: Worlds, group: str) -> str:
    return f"PodGroup.scheduling.k8s.io/{worlds.namespace}/{group}"


def test_a_pod_group_starts_together_and_is_accounted_for(worlds: Worlds) -> None:
    group(worlds, "ring", {"gang": {"minCount": 3}})
    for name in ("a", "b"):
        member(worlds, name, "ring", seconds=4)
    alone = worlds.submit("alone", annotations=played(seconds=1))
    worlds.await_accounted(alone)
    assert [] == worlds.jobs(uid_of(worlds, "ring"))

    member(worlds, "c", "ring", seconds=4)

    pods = [worlds.await_phase(name, "Running") for name in ("a", "b", "c")]
    (job,) = worlds.live(uid_of(worlds, "ring"))
    assert job.identity is not None
    assert ("PodGroup", "ring") == (job.identity.kind, job.identity.name)
    ranks = [pod["metadata"]["annotations"][names.RANK_ANNOTATION] for pod in pods]
    assert ["0", "1", "2"] == ranks
    ended = worlds.await_accounted(uid_of(worlds, "ring"))
    assert ("COMPLETED", "0:0") == (ended.state, ended.exit_code)
    for name in ("a", "b", "c"):
        worlds.await_pod(name, is_released)


def test_what_the_group_and_its_workload_ask_for_reaches_slurm(worlds: Worlds) -> None:
    """As in the manifests of SchedMD's bridge: there the annotations stand on these objects."""
    api = GROUPS.format(worlds.namespace).rpartition("/")[0]
    gang = {"gang": {"minCount": 1}}
    templates = [{"name": "one", "schedulingPolicy": gang}]
    asked = {
        "Workload": {f"{names.REQUEST_PREFIX}job-name": "by-workload"},
        "PodGroup": {
            f"{names.REQUEST_PREFIX}timelimit": "17",
            f"{names.REQUEST_PREFIX}job-name": "by-group",
        },
    }
    reference = {"workload": {"workloadName": "all", "podGroupTemplateName": "one"}}
    specs = {
        "Workload": {"podGroupTemplates": templates},
        "PodGroup": {"schedulingPolicy": gang, "podGroupTemplateRef": reference},
    }
    for kind, name in (("Workload", "all"), ("PodGroup", "one")):
        metadata = {"name": name, "annotations": asked[kind]}
        body = {"metadata": metadata, "spec": specs[kind]}
        worlds.sandbox.admin.create(f"{api}/{kind.lower()}s", body)

    member(worlds, "a", "one")

    worlds.await_phase("a", "Running")
    job = worlds.await_live(uid_of(worlds, "one")).id
    shown = worlds.scontrol("show", "job", str(job))
    assert "JobName=by-workload" in shown
    assert "TimeLimit=00:17:00" in shown


def test_a_group_of_policy_basic_is_no_gang(worlds: Worlds) -> None:
    group(worlds, "loose", {"basic": {}})
    uid = member(worlds, "a", "loose", seconds=1)
    assert "COMPLETED" == worlds.await_accounted(uid).state


def test_members_wait_for_a_group_that_is_created_later(worlds: Worlds) -> None:
    for name in ("a", "b"):
        member(worlds, name, "late", seconds=2)
    told = condition(worlds.await_pod("a", condition))
    assert "PodGroupInvalid" == told["reason"]
    assert "not found" in told["message"]

    group(worlds, "late", {"gang": {"minCount": 2}})

    assert "COMPLETED" == worlds.await_accounted(uid_of(worlds, "late"), deadline_s=60).state


def test_members_of_a_group_that_we_may_not_read_wait_and_say_so(worlds: Worlds) -> None:
    """As where the API server serves another version: they must not start one by one."""
    group(worlds, "hidden", {"gang": {"minCount": 2}})
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-bridge-extender"
    rules = worlds.sandbox.admin.get(role)["rules"]
    fewer = [rule for rule in rules if "scheduling.k8s.io" not in rule.get("apiGroups", [])]
    worlds.sandbox.admin.patch(role, {"rules": fewer})
    try:
        uids = {member(worlds, name, "hidden", seconds=1) for name in ("a", "b")}
        for name in ("a", "b"):
            told = worlds.await_pod(
                name, lambda pod: condition(pod).get("reason") == "PodGroupUnreadable"
            )
            assert is_gated(told)
            assert "forbidden" in condition(told)["message"]
        assert uids.isdisjoint(job.uid for job in worlds.queue())
    finally:
        worlds.sandbox.admin.patch(role, {"rules": rules})

    ended = worlds.await_accounted(uid_of(worlds, "hidden"), deadline_s=120)
    assert "COMPLETED" == ended.state
