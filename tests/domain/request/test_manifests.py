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
        found.root.kind,
        found.root.name,
        found.root.namespace,
        found.path,
    )
    assert found.root is found.owners[-1]
    assert ANNOTATIONS == found.root.annotations


def test_a_pod_is_a_template_itself_and_owns_nothing() -> None:
    manifest = {"kind": "Pod", "metadata": {"name": "one", "annotations": ANNOTATIONS}, "spec": POD}

    (found,) = manifests.templates(manifest)

    assert "" == found.path
    assert () == found.owners
    assert {"annotations": ANNOTATIONS} == found.metadata


def test_finds_each_of_several() -> None:
    groups = {"Master": {"template": {"spec": POD}}, "Worker": {"template": {"spec": POD}}}

    found = manifests.templates({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": groups}})

    assert ["Master", "Worker"] == [one.path.split(".")[-2] for one in found]


@pytest.mark.parametrize("manifest", [{}, {"kind": "Service", "spec": {"ports": []}}, {"spec": 3}])
def test_finds_nothing_where_there_is_nothing(manifest: dict[str, object]) -> None:
    assert [] == list(manifests.templates(manifest))


def test_a_job_made_by_another_object_stands_between_that_and_the_pod() -> None:
    job = {
        "metadata": {"annotations": ANNOTATIONS},
        "spec": {"activeDeadlineSeconds": 90, "template": {"spec": POD}},
    }

    (found,) = manifests.templates({"kind": "CronJob", "spec": {"jobTemplate": job}})

    between, root = found.owners
    assert ("Job", "", ANNOTATIONS) == (between.kind, between.name, between.annotations)
    assert 90 == between.spec["activeDeadlineSeconds"]
    assert ("CronJob", {}) == (root.kind, root.spec)


def test_the_spec_is_kept_only_of_kinds_of_which_the_extender_reads_it() -> None:
    spec = {"activeDeadlineSeconds": 90, "template": {"spec": POD}}

    kept = {kind: manifests.read({"kind": kind, "spec": spec}).spec for kind in ("Job", "RayJob")}

    assert {"Job": spec, "RayJob": {}} == kept
