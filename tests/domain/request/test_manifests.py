"""Pods in manifests of any kind."""

import pytest

from bridge.domain.request import manifests

POD = {"containers": [{"name": "main"}]}
ANNOTATIONS = {"slurmjob.slinky.slurm.net/partition": "gpu", "other": "x"}


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Job", {"template": {"spec": POD}}, "spec.template"),
        ("Deployment", {"template": {"spec": POD}}, "spec.template"),
        (
            "CronJob",
            {"jobTemplate": {"spec": {"template": {"spec": POD}}}},
            "spec.jobTemplate.spec.template",
        ),
        (
            "JobSet",
            {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": POD}}}}]},
            "spec.replicatedJobs[0].template.spec.template",
        ),
        (
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"workerTemplate": {"spec": POD}}},
            "spec.leaderWorkerTemplate.workerTemplate",
        ),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {"template": {"spec": POD}}}},
            "spec.pytorchReplicaSpecs.Master.template",
        ),
    ],
)
def test_finds_templates_by_their_shape(kind: str, spec: dict[str, object], path: str) -> None:
    manifest = {
        "kind": kind,
        "metadata": {"name": "train", "namespace": "research", "annotations": ANNOTATIONS},
        "spec": spec,
    }

    (found,) = manifests.templates(manifest)

    assert (kind, "train", "research", path) == (
        found.kind,
        found.name,
        found.namespace,
        found.path,
    )
    assert {"partition": "gpu"} == found.owner_requests


def test_a_pod_is_a_template_itself_and_owns_nothing() -> None:
    manifest = {"kind": "Pod", "metadata": {"name": "one", "annotations": ANNOTATIONS}, "spec": POD}

    (found,) = manifests.templates(manifest)

    assert "" == found.path
    assert {} == found.owner_requests
    assert {"annotations": ANNOTATIONS} == found.metadata


def test_finds_each_of_several() -> None:
    groups = {"Master": {"template": {"spec": POD}}, "Worker": {"template": {"spec": POD}}}

    found = manifests.templates({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": groups}})

    assert ["Master", "Worker"] == [one.path.split(".")[-2] for one in found]


@pytest.mark.parametrize("manifest", [{}, {"kind": "Service", "spec": {"ports": []}}, {"spec": 3}])
def test_finds_nothing_where_there_is_nothing(manifest: dict[str, object]) -> None:
    assert [] == list(manifests.templates(manifest))
