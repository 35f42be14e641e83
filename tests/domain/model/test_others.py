"""Whose pods are on Slurm's nodes without Slurm, for people and for metrics."""

from dataclasses import replace

from bridge.domain.model import others
from bridge.domain.model.pods import BoundPod
from slurmruntime.model.objects import Owner
from slurmruntime.values.ids import KubeNode, PodUid

PLAIN = BoundPod(uid=PodUid("u"), namespace="plain", name="squatter", kube_node=KubeNode("k1"))


def owned(name: str, namespace: str = "research") -> BoundPod:
    owner = Owner(api_version="apps/v1", kind="DaemonSet", name=name, uid="o")
    return replace(PLAIN, namespace=namespace, owner=owner)


def test_owners_are_named_those_with_the_most_pods_first() -> None:
    ended = replace(PLAIN, name="ended", is_terminal=True)
    found = [PLAIN, ended, owned("agent"), owned("agent")]

    assert "research/DaemonSet agent (2), plain/Pod squatter" == others.summary(found)
    assert "" == others.summary([])


def test_a_crowd_is_cut() -> None:
    found = [owned(f"set-{n}") for n in range(5)]

    assert others.summary(found).endswith("research/DaemonSet set-2, and 2 more")


def test_pods_are_counted_by_namespace_and_the_rest_together() -> None:
    found = [PLAIN, PLAIN, *(owned("agent", f"ns-{n}") for n in range(others.MOST_NAMESPACES + 4))]

    counts = others.count_by_namespace(found)

    assert others.MOST_NAMESPACES + 1 == len(counts)
    assert (2, 5) == (counts["plain"], counts[others.REST])
