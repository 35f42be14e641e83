"""Which gangs the pods are that operators were recorded to make."""

import pytest

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import claims, workload
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Workload
from tests.recorded import recording

MPI = ["pi-launcher", "pi-worker-0", "pi-worker-1", "pi-worker-2", "pi-worker-3"]
PYTORCH = ["bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"]


def workloads(name: str) -> list[Workload]:
    """What a recording's pods amount to, in the order in which the first of each was made."""
    found = recording.load(name)
    groups: dict[str, list[tuple[Membership, Pod]]] = {}
    for pod, owners in found.members():
        member = claims.of(pod, owners)
        groups.setdefault(member.key, []).append((member, pod))
    declared = next(found.read("PodGroup"), None)
    return [workload.evaluate(members, declared) for members in groups.values()]


def begins(found: Workload, members: list[str]) -> bool:
    """Whether these are the members, in rank order; names end in what is random of them."""
    assert found.is_complete, found.faults
    pairs = zip(found.members, members, strict=True)
    return all(pod.name.startswith(expected) for pod, expected in pairs)


@pytest.mark.parametrize(
    ("name", "kind", "title", "members"),
    [
        ("mpijob", "MPIJob", "pi", MPI),
        ("mpijob-pod-group", "PodGroup", "pi", MPI),
        ("pytorchjob", "PyTorchJob", "bert", PYTORCH),
        ("pytorchjob-pod-group", "PodGroup", "bert", PYTORCH),
        (
            "tfjob",
            "TFJob",
            "mnist",
            ["mnist-chief-0", "mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1"],
        ),
        ("trainjob", "JobSet", "llm", [f"llm-node-0-{index}-" for index in range(4)]),
        ("raycluster", "RayCluster", "ray", ["ray-head-", *["ray-gpu-worker-"] * 3]),
        ("kueue-pod-group", "KueuePodGroup", "sample", ["sample-0", "sample-1", "sample-2"]),
    ],
)
def test_the_pods_of_one_object_are_one_gang(
    name: str, kind: str, title: str, members: list[str]
) -> None:
    (found,) = workloads(name)
    assert (kind, title) == (found.kind, found.name)
    assert begins(found, members)
    assert len(members) == found.size


@pytest.mark.parametrize("name", ["mpijob", "mpijob-pod-group"])
def test_a_launcher_is_of_another_size_than_its_workers(name: str) -> None:
    (found,) = workloads(name)
    assert [("pi-launcher", 1), ("pi-worker-0", 4)] == [
        (pod.name.rpartition("-")[0] if "launcher" in pod.name else pod.name, count)
        for pod, count in found.kinds()
    ]


def test_what_submits_to_a_ray_cluster_is_none_of_the_gang() -> None:
    """It is made when the cluster runs: to wait for it would be to wait for ever."""
    cluster, submitter = workloads("rayjob")
    assert ("RayJob", "tune", 4) == (cluster.kind, cluster.name, cluster.size)
    assert cluster.is_complete
    assert "head" in cluster.members[0].name
    assert ("Pod", 1) == (submitter.kind, submitter.size)


def test_the_pods_of_a_stateful_set_are_no_gang_because_kueue_counts_them() -> None:
    """The second is made when the first is ready."""
    assert [("Pod", "web-0"), ("Pod", "web-1")] == [
        (found.kind, found.name) for found in workloads("kueue-stateful-set")
    ]


@pytest.mark.parametrize("name", ["mpijob", "pytorchjob", "tfjob", "raycluster", "rayjob"])
def test_without_the_annotation_each_pod_stands_for_itself(name: str) -> None:
    found = recording.load(name)
    for manifest in found.objects:
        manifest["metadata"].pop("annotations", None)
    memberships = [claims.of(pod, owners) for pod, owners in found.members()]
    assert {"Pod"} == {member.kind for member in memberships}
