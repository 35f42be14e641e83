"""The list of kinds: what follows from it, and what each of them must not do."""

import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import claims, kinds
from bridge.domain.workloads.membership import Kind, KindWithObjects
from docs.generate import workloads
from slurmruntime.model.objects import KubeObject, Owner
from slurmruntime.values import names
from slurmruntime.values.ids import alone_key
from tests.make import members as build
from tests.recorded import recording

PAGE = Path(__file__).parents[3] / "docs" / "workloads.md"
OWNED_BY_ANYBODY = Owner(api_version="example.test/v1", kind="Any", name="any", uid="u")
RECORDED = ("mpijob", "pytorchjob", "tfjob", "trainjob", "raycluster", "rayjob", "kueue-pod-group")
READ = {
    "InTree": {"scheduling.k8s.io": ("podgroups", "workloads")},
    "Coscheduling": {"scheduling.x-k8s.io": ("podgroups",)},
    "LeaderWorkerSet": {"leaderworkerset.x-k8s.io": ("leaderworkersets",)},
    "JobSet": {"jobset.x-k8s.io": ("jobsets",)},
    "Kubeflow": {
        "kubeflow.org": (
            *("jaxjobs", "mpijobs", "paddlejobs"),
            *("pytorchjobs", "tfjobs", "xgboostjobs"),
        ),
        "trainer.kubeflow.org": ("trainjobs",),
    },
    "Ray": {"ray.io": ("rayclusters", "rayjobs", "rayservices")},
    "Job": {"batch": ("cronjobs", "jobs")},
    "SinglePod": {"apps": ("deployments", "replicasets", "statefulsets")},
}
"""Rights are given on purpose; a kind that is added states its own in its own test."""


def pods() -> Iterator[tuple[Pod, list[KubeObject]]]:
    """Pods of every kind, and their owners."""
    yield build.pod("a"), []
    yield build.labelled("a", "ring"), []
    yield build.indexed(0), [build.job()]
    yield build.of_lws(0, 1), [build.lws()]
    yield build.of_jobset("driver", 0, 0), [build.job(gang=None), build.jobset()]
    yield (
        build.pod("a"),
        [build.owner("Odd", "odd", annotations={names.POD_GROUP_SIZE_ANNOTATION: "2"})],
    )
    for name in RECORDED:
        yield from recording.load(name).members()


def test_every_file_of_the_room_is_registered() -> None:
    files = {found.name for found in pkgutil.iter_modules(kinds.__path__)}
    assert files == {type(kind).__module__.rpartition(".")[2] for kind in kinds.ALL}


def test_the_table_in_the_documentation_is_made_from_the_list() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == workloads.render(text), "make docs"
    for kind in kinds.ALL:
        assert text.count(f"| {' | '.join(kind.row)} |\n") == 1


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: type(kind).__name__)
def test_a_kind_reads_what_it_needs_and_no_more(kind: Kind) -> None:
    reads = {r.group: r.resources for r in kind.reads} if isinstance(kind, KindWithObjects) else {}
    if (name := type(kind).__name__) in READ:
        assert READ[name] == reads
    for group, resources in reads.items():
        assert set(resources) <= set(kinds.reads()[group])


def test_every_pod_is_claimed_and_a_gang_knows_by_which_kind() -> None:
    seen = set()
    for pod, owners in pods():
        member = claims.of(pod, owners)
        assert member.is_gang == (member.by is not None)
        seen.add(member.kind)
    assert {"Pod", "pod-group", "Job", "LeaderWorkerSet", "JobSet", "Odd"} < seen
    assert {"MPIJob", "PyTorchJob", "TFJob", "RayCluster", "RayJob", "KueuePodGroup"} < seen


@pytest.mark.parametrize("kind", kinds.NAMED, ids=lambda kind: type(kind).__name__)
def test_a_group_that_the_pod_names_needs_no_owners(kind: Kind) -> None:
    for pod, owners in pods():
        assert kind.claim(pod, owners) == kind.claim(pod, ())


def test_the_last_kind_claims_every_pod() -> None:
    for pod, owners in pods():
        claim = kinds.OWNED[-1].claim(pod, owners)
        assert claim is not None
        assert alone_key(pod.uid) == claim.key
