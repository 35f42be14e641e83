"""What `explain` tells of the pods that a manifest would make, among recording peers: `test_explained_jobs` has the real pair."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.diagnosis.explained import TemplateReport
from bridge.domain.workloads.kinds import kueue
from bridge.settings.schema import Settings
from slurmcli.access import Access
from slurmcli.explain import _Explainer
from slurmcli.installation import Installation
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values import names
from tests.make import placing as make

SETTINGS = Settings.model_validate(
    {
        "slurm": {"user": "kubernetes", "group": "kubernetes"},
        "placement": {
            "priority_classes": {"urgent": {"qos": "high"}},
        },
        "policy": {
            "rules": [
                {
                    "name": "everybody",
                    "user": "kubernetes",
                    "group": "kubernetes",
                    "qos": {"allowed": ["*"]},
                }
            ]
        },
    }
)
INSTALLED = Installation(settings=SETTINGS, faults=(), cluster=make.CLUSTER)
SLURM_NODE = make.slurm_node("k1")
KUBE_NODE = {
    "metadata": {
        "name": "k1",
        "uid": "uid-of-k1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-05-04T12:00:00Z",
        "labels": {names.EXTERNAL_NODE_LABEL: "true"},
    },
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}


def pod(cpu: str = "2", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {"spec": {"containers": [{"name": "main", "resources": resources}], **spec}}


def bare(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, **pod(**spec)}


def minutes(number: int) -> dict[str, object]:
    """As slurmrestd takes numbers."""
    return {"set": True, "infinite": False, "number": number}


def a_job(annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "train", "annotations": dict(annotations or {})}
    return {"kind": "Job", "metadata": metadata, "spec": {"template": pod(), **spec}}


def a_jobset() -> dict[str, Any]:
    jobs = [
        {"name": "driver", "replicas": 1, "template": {"spec": {"template": pod("1")}}},
        {"name": "work", "replicas": 2, "template": {"spec": {"template": pod()}}},
    ]
    return {"kind": "JobSet", "metadata": {"name": "set"}, "spec": {"replicatedJobs": jobs}}


GANG = {names.GANG_ANNOTATION: "true"}


class ApiServer(KubeClient):
    """Admits every pod as the webhook would."""

    def __init__(self) -> None:
        """Need no session."""

    @override
    async def request(self, method: str, path: str, *, body: object = None, **_: object) -> bytes:
        if method == "GET":
            assert path.endswith("/nodes")
            return json.dumps({"metadata": {"resourceVersion": "1"}, "items": [KUBE_NODE]}).encode()
        assert isinstance(body, dict)
        metadata = {
            **body["metadata"],
            "name": "made-up",
            "namespace": "team-a",
            "creationTimestamp": "2026-05-04T12:00:00Z",
        }
        spec = {**body["spec"], "schedulingGates": [{"name": names.GATE}]}
        spec["schedulerName"] = names.SCHEDULER_NAME
        toleration = {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}
        spec["tolerations"] = [toleration]
        whole = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        return json.dumps(whole).encode()


class Looking(Access):
    """Sees one node in Slurm."""

    @override
    async def slurm_nodes(self) -> tuple[SlurmNodeFacts, ...] | None:
        return (SLURM_NODE,)


async def explained(manifest: dict[str, Any], *more: dict[str, Any]) -> list[TemplateReport]:
    access = Looking(kube=ApiServer(), slurm=None)
    asked = _Explainer(
        access, INSTALLED, [manifest, *more], release="slurm-bridge-system", excluded=frozenset()
    )
    return list(await asked.explain("team-a"))


@pytest.mark.parametrize(
    ("manifest", "fields"),
    [
        (bare("one"), {"name": "one", "cpus_per_task": 2}),
        (bare("one", priorityClassName="urgent"), {"qos": "high"}),
        (a_job(), {"cpus_per_task": 2}),
        (a_job(activeDeadlineSeconds=601), {"time_limit": minutes(11)}),
        (a_job({f"{names.REQUEST_PREFIX}timelimit": "90"}), {"time_limit": minutes(90)}),
        (
            {"kind": "CronJob", "spec": {"jobTemplate": a_job(activeDeadlineSeconds=601)}},
            {"time_limit": minutes(11)},
        ),
    ],
)
async def test_a_pod_is_told_the_job_that_follows_from_all_that_asks(
    manifest: dict[str, Any], fields: dict[str, object]
) -> None:
    (found,) = await explained(manifest)

    assert () == found.faults
    assert found.job is not None
    assert fields == {key: found.job.get(key) for key in fields}
    assert ("", 1, "everybody") == (found.note, found.pods, found.rule)


async def test_a_gang_is_told_its_one_job() -> None:
    job = a_job(GANG, parallelism=3, completions=3, completionMode="Indexed")

    (found,) = await explained(job)

    assert found.job is not None
    assert (3, 3, "train") == (found.pods, found.job["tasks"], found.job["name"])


async def test_templates_of_one_gang_are_told_the_same_job_with_all_its_components() -> None:
    driver, work = await explained(a_jobset())

    assert driver.job is not None
    assert (1, 1, "set") == (driver.job["tasks"], driver.job["cpus_per_task"], driver.job["name"])
    (component,) = driver.components
    assert (2, 2) == (component["tasks"], component["cpus_per_task"])
    assert (driver.job, driver.components, 3) == (work.job, work.components, work.pods)


async def test_pods_of_a_group_are_explained_together_and_absent_ones_are_told() -> None:
    first, second = bare("a"), bare("b")
    for each in (first, second):
        each["metadata"]["labels"] = {names.POD_GROUP_LABEL: "ring"}
        each["metadata"]["annotations"] = {names.POD_GROUP_SIZE_ANNOTATION: "3"}

    found = await explained(first, second)

    assert ["waits for 1 more pods that are not in the manifest"] * 2 == [f.note for f in found]
    assert [3, 3] == [each.job["tasks"] for each in found if each.job]


async def test_a_gang_without_a_size_is_refused() -> None:
    lone = bare("a")
    lone["metadata"]["labels"] = {names.POD_GROUP_LABEL: "ring"}

    (found,) = await explained(lone)

    assert found.job is None
    assert "every pod of the group must name the group's size" in found.faults[0]


async def test_every_fault_of_owner_and_pod_is_told() -> None:
    wrong = a_job(
        {f"{names.REQUEST_PREFIX}timelimit": "soon", f"{names.REQUEST_PREFIX}colour": "x"}
    )

    (found,) = await explained(wrong)

    assert 2 == len(found.faults)


async def test_a_pod_that_two_groups_claim_gets_no_job() -> None:
    torn = bare("a")
    torn["metadata"]["labels"] = {
        names.POD_GROUP_LABEL: "ring",
        kueue.LABEL: "other",
    }

    (found,) = await explained(torn)

    assert found.job is None
    assert "two groups claim the pod" in found.faults[0]


async def test_a_job_that_makes_no_pods_gets_none() -> None:
    (found,) = await explained(a_job(GANG, parallelism=0))

    assert ("creates no pods", None, ()) == (found.note, found.job, found.faults)
