"""What pods ask for if nobody says anything, so that they are not the first to be evicted; and that their user's word wins."""

from dataclasses import replace
from typing import Any

import pytest

from slurmoperator.rendering import pods
from tests.slurmoperator.rendering.given import MADE_FOR, SITE, given, pod, rendered

SITE_WITH_CLASS = replace(SITE, priority_class="slurm")
DAEMONS = {"slurmctld", "slurmdbd", "slurmrestd", "login"}
"""Containers that request CPU. A side-car must not: on a node that Slurm shares with pods, it would cost a whole CPU."""


def made(kind: str, **changes: Any) -> Any:
    return pod(rendered(given(kind, **changes), site=SITE_WITH_CLASS))["spec"]


@pytest.mark.parametrize("kind", [each for each in MADE_FOR if each != "NodeSet"])
def test_no_container_of_ours_asks_for_nothing(kind: str) -> None:
    spec = made(kind)

    assert spec["priorityClassName"] == "slurm"
    for each in (*spec.get("initContainers", ()), *spec["containers"]):
        resources = each["resources"]
        asked = resources["requests"].keys() | resources.get("limits", {}).keys()
        assert "memory" in asked, each["name"]
        assert ("cpu" in asked) == (each["name"] in DAEMONS), each["name"]


OURS = {"initContainers": [{"name": "logfile"}], "containers": [{"name": "slurmd"}]}


def protect_from_eviction(theirs: Any) -> Any:
    return pods.protect_from_eviction(OURS, {**OURS, **theirs}, "slurm")


def test_a_limit_is_a_request_and_what_is_given_stays() -> None:
    given_ = {"limits": {"memory": "64Mi"}, "requests": {"ephemeral-storage": "1Gi"}}
    (found,) = protect_from_eviction({"containers": [{"name": "slurmd", "resources": given_}]})[
        "containers"
    ]

    assert found["resources"] == {
        "limits": {"memory": "64Mi"},
        "requests": {"cpu": "100m", "ephemeral-storage": "1Gi"},
    }


@pytest.mark.parametrize("resource", ["limits", "requests"])
def test_who_says_all_keeps_it(resource: str) -> None:
    container = {"name": "slurmd", "resources": {resource: {"cpu": "1", "memory": "0"}}}

    assert [container] == protect_from_eviction({"containers": [container]})["containers"]


def test_containers_of_others_and_pods_with_resources_of_their_own_are_left_alone() -> None:
    others = [{"name": "slurmd", "resources": {}}, {"name": "other"}]
    assert {"name": "other"} in protect_from_eviction({"containers": others})["containers"]

    whole = {"resources": {"limits": {"memory": "1Gi"}}}
    assert OURS["containers"] == protect_from_eviction(whole)["containers"]


def test_a_priority_class_of_the_template_wins() -> None:
    assert protect_from_eviction({"priorityClassName": "mine"})["priorityClassName"] == "mine"
    assert "priorityClassName" not in pods.protect_from_eviction(OURS, OURS, "")
