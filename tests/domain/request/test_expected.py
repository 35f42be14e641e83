"""The pods that follow from a manifest, and whether they make the gang that the real controllers' pods make."""

from collections.abc import Mapping
from typing import Any

import pytest

from bridge.domain.model.pods import Pod
from bridge.domain.request import expected, manifests
from bridge.domain.workloads import claims, workload
from bridge.domain.workloads.kinds import jobset as jobset_kind
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Workload
from slurmruntime.values import names
from tests.make import placing

POD = {"spec": {"containers": [{"name": "main"}]}}
GANG = {names.GANG_ANNOTATION: "true"}


def members(manifest: Mapping[str, Any]) -> list[tuple[Membership, Pod]]:
    found = []
    for number, template in enumerate(manifests.templates(manifest)):
        made = placing.pod(
            uid=f"u{number}",
            labels=template.metadata.get("labels", {}),
            annotations=template.metadata.get("annotations", {}),
        )
        pods = expected.pods(template, made)
        found += [(claims.of(pod, template.owners), pod) for pod in pods]
    return found


def gang(manifest: Mapping[str, Any]) -> Workload:
    """All pods have to be of one workload, which is evaluated."""
    found = members(manifest)
    assert 1 == len({member.key for member, _ in found}), found
    whole = workload.evaluate(found)
    assert () == whole.faults
    return whole


def job(annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": "train", "annotations": annotations or {}},
        "spec": {"template": POD, **spec},
    }


def jobset(*jobs: dict[str, Any], annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "kind": "JobSet",
        "metadata": {"name": "set", "annotations": annotations or {}},
        "spec": {"replicatedJobs": list(jobs)},
    }


def replicated(name: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": POD, **spec}}}


def lws(size: int, *, has_leader: bool = False, **spec: Any) -> dict[str, Any]:
    templates = {"workerTemplate": POD} | ({"leaderTemplate": POD} if has_leader else {})
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": size, **templates}, **spec},
    }


def test_a_pod_is_itself() -> None:
    manifest = {"kind": "Pod", "metadata": {"name": "one"}, **POD}

    ((member, pod),) = members(manifest)

    assert "one" == pod.name
    assert not member.is_gang


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 0}, 0),
        ({"parallelism": "many"}, 1),
    ],
)
def test_a_job_makes_as_many_pods_as_run_side_by_side(spec: dict[str, Any], count: int) -> None:
    found = members(job(**spec))

    assert count == len(found)
    assert not any(member.is_gang for member, _ in found)


def test_a_job_that_wants_to_be_a_gang_is_one() -> None:
    found = gang(job(GANG, parallelism=3, completions=3, completionMode="Indexed"))

    assert (3, 3, "train") == (found.size, len(found.members), found.name)
    assert [0, 1, 2] == list(found.wanted.values())


def test_the_pods_of_a_jobset_are_one_gang_in_the_order_of_its_jobs() -> None:
    found = gang(jobset(replicated("driver"), replicated("work", 2, parallelism=2)))

    assert (5, 5) == (found.size, len(found.members))
    jobs = [pod.labels[jobset_kind.REPLICATED_JOB] for pod in found.members]
    assert ["driver", "work", "work", "work", "work"] == jobs


def test_with_exclusive_topology_each_job_of_a_jobset_is_a_gang() -> None:
    exclusive = {jobset_kind.EXCLUSIVE: "rack"}

    found = members(jobset(replicated("work", 2, parallelism=3), annotations=exclusive))

    keys = [member.key for member, _ in found]
    assert [3, 3] == [keys.count(key) for key in dict.fromkeys(keys)]
    assert (3, 1, "rack") == _first(found)


def _first(found: list[tuple[Membership, Pod]]) -> tuple[int, int, str]:
    whole = workload.evaluate([each for each in found if each[0].key == found[0][0].key])
    return whole.size, whole.needed, whole.shared_label


@pytest.mark.parametrize("has_leader", [False, True])
def test_the_first_group_of_a_leader_worker_set_is_a_gang(*, has_leader: bool) -> None:
    found = gang(lws(3, has_leader=has_leader))

    assert (3, 3, 3) == (found.size, found.needed, len(found.members))
    assert "serve-0" == found.name


def test_leaders_come_first_where_the_workers_wait_for_them() -> None:
    assert 1 == gang(lws(3, startupPolicy="LeaderReady")).needed


def test_owners_of_any_kind_say_how_many_pods_each_template_makes() -> None:
    size = {names.POD_GROUP_SIZE_ANNOTATION: "4"}
    specs = {"Master": {"template": POD}, "Worker": {"replicas": 3, "template": POD}}
    manifest = {
        "kind": "PyTorchJob",
        "metadata": {"name": "fit", "annotations": size},
        "spec": {"pytorchReplicaSpecs": specs},
    }

    found = gang(manifest)

    assert (4, 4) == (found.size, len(found.members))


def test_more_pods_than_a_gang_may_have_are_not_made() -> None:
    found = members(job(GANG, parallelism=10**9))

    assert workload.MAX_SIZE + 1 == len(found)
    assert "expected at most 2000 pods in one gang" in workload.evaluate(found).faults[0].text


@pytest.mark.parametrize(
    "spec",
    [
        {"template": POD},
        {"replicatedJobs": [{"template": POD}]},
        {"replicatedJobs": ["no job", replicated("work")]},
        {"replicatedJobs": [replicated("work", replicas="two")]},  # type: ignore[arg-type]
    ],
)
def test_a_jobset_of_another_shape_harms_nobody(spec: dict[str, Any]) -> None:
    assert members({"kind": "JobSet", "metadata": {"name": "odd"}, "spec": spec})
