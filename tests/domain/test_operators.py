"""Pods as operators make them, and the gangs they are.

Shapes from: kubeflow/mpi-operator `pkg/controller/mpi_job_controller.go` (workers are the MPIJob's own pods, the launcher is a
batch Job's), kubeflow/training-operator (`training.kubeflow.org/replica-type` and `-index`), kubeflow/trainer v2 (a TrainJob
makes a JobSet), ray-project/kuberay (`ray.io/cluster`, `ray.io/node-type`; pods are the RayCluster's own).
"""

from bridge.domain import grouping, names, workload
from bridge.domain.objects import KubeObject
from bridge.domain.pods import Pod
from bridge.domain.workload import Workload
from tests.domain import gang_builders as build

KUBEFLOW = "training.kubeflow.org/"


def replica(name: str, kind: str, index: int) -> Pod:
    labels = {f"{KUBEFLOW}replica-type": kind, f"{KUBEFLOW}replica-index": str(index)}
    return build.pod(name, labels=labels)


def root(kind: str, name: str, size: int | None) -> KubeObject:
    notes = {} if size is None else {names.POD_GROUP_SIZE_ANNOTATION: str(size)}
    return build.owner(kind, name, annotations=notes)


def gang(*members: tuple[Pod, list[KubeObject]]) -> Workload:
    found = [(grouping.membership(pod, owners), pod) for pod, owners in members]
    assert 1 == len({member.key for member, _ in found})
    return workload.evaluate(found)


def order(found: Workload) -> list[str]:
    assert found.is_complete
    return [pod.name for pod in found.members]


def test_an_mpi_job_and_the_job_of_its_launcher_are_one_gang() -> None:
    mpi = root("MPIJob", "pi", 3)
    launcher = replica("pi-launcher-xk2f9", "launcher", 0)
    workers = [replica(f"pi-worker-{index}", "worker", index) for index in (1, 0)]
    found = gang(
        (launcher, [build.owner("Job", "pi-launcher"), mpi]), *((pod, [mpi]) for pod in workers)
    )
    assert ["pi-launcher-xk2f9", "pi-worker-0", "pi-worker-1"] == order(found)
    assert ("MPIJob", "pi") == (found.kind, found.name)


def test_the_master_of_a_pytorch_job_is_rank_0() -> None:
    owner = root("PyTorchJob", "bert", 3)
    pods = [replica(f"bert-worker-{index}", "worker", index) for index in (1, 0)]
    pods.append(replica("bert-master-0", "master", 0))
    found = gang(*((pod, [owner]) for pod in pods))
    assert ["bert-master-0", "bert-worker-0", "bert-worker-1"] == order(found)


def test_a_train_job_is_a_gang_as_the_jobset_it_makes() -> None:
    jobset = build.jobset(build.replicated("node", parallelism=2))
    owners = [build.job(gang=None), jobset, root("TrainJob", "llm", None)]
    found = gang(*((build.of_jobset("node", 0, index), owners) for index in (1, 0)))
    assert ["set-node-0-0", "set-node-0-1"] == order(found)
    assert "JobSet" == found.kind


def test_a_ray_cluster_is_a_gang_where_it_says_its_size() -> None:
    cluster = root("RayCluster", "ray", 3)
    pods = [
        build.pod(name, labels={"ray.io/cluster": "ray", "ray.io/node-type": kind})
        for name, kind in (
            ("ray-small-worker-h2k", "worker"),
            ("ray-head", "head"),
            ("ray-small-worker-b9x", "worker"),
        )
    ]
    found = gang(*((pod, [cluster]) for pod in pods))
    assert "ray-head" == order(found)[0]
    sizeless = root("RayCluster", "ray", None)
    assert not any(grouping.membership(pod, [sizeless]).is_gang for pod in pods)


def test_the_pods_of_an_operator_that_labels_a_pod_group_are_that_group() -> None:
    """The training operator with its scheduler plugin, and MPIJobs with a scheduling policy."""
    pods = [replica(f"bert-worker-{index}", "worker", index) for index in (0, 1)]
    claims = [
        build.pod(pod.name, labels={**pod.labels, grouping.COSCHEDULING_LABEL: "bert"})
        for pod in pods
    ]
    found = {grouping.membership(pod, [root("PyTorchJob", "bert", None)]).key for pod in claims}
    assert {"PodGroup.scheduling.x-k8s.io/team-a/bert"} == found
