"""Volcano's PodGroups."""

from typing import Any

import pytest

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import claims, kinds, workload
from bridge.domain.workloads.kinds import coscheduling, volcano
from bridge.domain.workloads.workload import Workload
from slurmruntime.model.objects import Reference
from slurmruntime.values import names
from tests.make import members as build

RING = Reference(
    api_version="scheduling.volcano.sh/v1beta1", kind="PodGroup", namespace="team-a", name="ring"
)


def member(name: str, **given: Any) -> Pod:
    return build.pod(name, annotations={volcano.ANNOTATION: "ring"}, **given)


def evaluated(pods: list[Pod], spec: dict[str, Any] | None) -> Workload:
    declared = None if spec is None else build.owner("PodGroup", "ring", spec=spec)
    return workload.evaluate([(claims.of(pod, []), pod) for pod in pods], declared)


def test_its_podgroups_are_read_and_nothing_else_of_it() -> None:
    assert ("podgroups",) == kinds.reads()["scheduling.volcano.sh"]


def test_the_annotation_names_the_group_and_the_group_has_the_last_word() -> None:
    pod = member("a")
    claim = claims.of(pod, [])
    assert ("PodGroup", "ring", RING) == (claim.kind, claim.name, claim.declared_by)
    assert claims.is_declared(pod)
    assert not claims.needs_owners(pod)
    assert claims.settled(claim, pod, None).is_gang, "waited for"
    assert claims.settled(claim, pod, None, unread="not served").held_as, "Volcano is not there"


def test_it_is_another_group_than_coscheduling_has_under_that_name() -> None:
    other = build.pod("a", labels={coscheduling.LABEL: "ring"})
    assert claims.of(member("a"), []).key != claims.of(other, []).key


def test_a_group_has_its_minimum_or_whoever_is_there() -> None:
    pods = [member(name) for name in ("a", "b", "c")]
    spec = {"minMember": 2, "queue": "default", "minTaskMember": {"worker": 1}}
    found = [evaluated(pods[:count], spec) for count in (1, 2, 3)]
    assert [(2, False), (2, True), (3, True)] == [(each.size, each.is_complete) for each in found]
    assert not found[0].is_exact


@pytest.mark.parametrize("spec", [None, {}, {"minMember": 0}, {"minMember": "2"}])
def test_a_group_without_a_minimum_is_told(spec: dict[str, Any] | None) -> None:
    found = evaluated([member("a")], spec)
    (fault,) = found.faults
    assert not found.is_complete
    assert fault.path.startswith("PodGroup team-a/ring")


def test_a_second_group_is_a_fault() -> None:
    (fault,) = claims.of(member("a", labels={names.POD_GROUP_LABEL: "circle"}), []).faults
    assert "two groups claim the pod, PodGroup ring and pod-group circle" in fault.message
