"""On which Kubernetes nodes there is to be a worker, if there is one on each that fits."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from slurmoperator.nodesets.plan import placing
from slurmoperator.nodesets.plan.placing import HOST_ANNOTATION, NodePlan
from slurmruntime.model.affinity import NodeTerm, Requirement, Selector, Toleration
from slurmruntime.model.nodes import KubeNodeFacts, Taint
from slurmruntime.values.ids import KubeNode

GPU = {"gpu": "yes"}
BROKEN = Taint(key="broken", effect="NoSchedule")
EVICTING = Taint(key="broken", effect="NoExecute")


def node(name: str = "a", **changes: Any) -> KubeNodeFacts:
    return KubeNodeFacts(**{"name": KubeNode(name), "uid": name, "labels": GPU, **changes})


def planned(
    *nodes: KubeNodeFacts,
    there: Mapping[str, str] | None = None,
    tolerations: tuple[Toleration, ...] = (),
    terms: tuple[NodeTerm, ...] = (),
    owners: Mapping[str, str] = MappingProxyType({}),
) -> NodePlan:
    return placing.plan(
        nodes,
        there or {},
        selector=Selector(terms, GPU),
        tolerations=tolerations,
        owners=owners,
    )


@pytest.mark.parametrize(
    ("changes", "gets_one", "keeps_one"),
    [
        ({}, True, ""),
        ({"labels": {}}, False, "not selected"),
        ({"taints": (BROKEN,)}, False, ""),
        ({"taints": (EVICTING,)}, False, "the taint broken"),
        ({"is_unschedulable": True}, False, ""),
        ({"is_deleting": True}, False, "no node a"),
        ({"is_ready": False}, True, ""),
    ],
)
def test_who_gets_and_who_keeps_a_worker(
    changes: dict[str, Any], gets_one: bool, keeps_one: str
) -> None:
    assert ({"a": "a"} if gets_one else {}) == planned(node(**changes)).hosts
    kept = planned(node(**changes), there={"a": "a"})
    assert keeps_one in kept.leaving.get("a", "")
    assert bool(keeps_one) == ("a" in kept.leaving) == ("a" not in kept.hosts)


def test_taints_are_tolerated_and_affinity_is_required() -> None:
    tolerated = (Toleration(key="broken", operator="Exists"),)
    assert {"a": "a"} == planned(node(taints=(EVICTING,)), tolerations=tolerated).hosts
    only_b = NodeTerm(
        match_fields=(Requirement(key="metadata.name", operator="In", values=("b",)),)
    )
    assert {"b": "b"} == planned(node("a"), node("b"), terms=(only_b,)).hosts


def test_the_worker_of_a_node_that_is_gone_goes() -> None:
    found = planned(node("b"), there={"a": "a"})

    assert {"b": "b"} == found.hosts
    assert {"a": "Kubernetes has no node a any more"} == found.leaving


def test_the_worker_of_a_node_that_cannot_be_read_stays() -> None:
    found = placing.plan(
        [],
        {"a": "rack7", "b": "b"},
        selector=Selector((), GPU),
        tolerations=(),
        owners={},
        unreadable={"a"},
    )

    assert {"a": "rack7"} == found.hosts
    assert {"b"} == set(found.leaving)


def test_names_are_short_and_can_be_given() -> None:
    given = node("b.example", annotations={HOST_ANNOTATION: "rack7"})

    assert {"a.example": "a", "b.example": "rack7"} == planned(node("a.example"), given).hosts


@pytest.mark.parametrize(
    ("nodes", "there", "hosts", "said"),
    [
        ((node("a.x"), node("a.y")), {}, {"a.x": "a"}, "belongs to the worker of node a.x"),
        (
            (node("a.x"), node("a.y")),
            {"a.y": "a"},
            {"a.y": "a"},
            "belongs to the worker of node a.y",
        ),
        ((node("taken"),), {}, {}, "belongs to pod other-0"),
        ((node("b", annotations={HOST_ANNOTATION: "a b"}),), {}, {}, "expected a host name"),
    ],
)
def test_no_two_workers_have_one_name_and_the_other_node_is_told(
    nodes: tuple[KubeNodeFacts, ...], there: dict[str, str], hosts: dict[str, str], said: str
) -> None:
    found = planned(*nodes, there=there, owners={"taken": "pod other-0"})

    assert hosts == found.hosts
    (fault,) = found.faults
    assert said in fault
    assert HOST_ANNOTATION in fault
