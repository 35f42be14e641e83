"""What the policies cost the API server: they are evaluated within budgets, and refuse what exceeds one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.domain import caps
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import (
    BREAK_GLASS,
    Cluster,
    pod,
    pods,
    policed,
    policies,
    refusal,
    unlabelled,
)

VERY_MANY = {f"k{n}": "" for n in range(40_000)}
"""As many short labels as fit into an object."""

CREATED = 20
"""More pods than anybody else creates meanwhile."""


def test_without_the_webhook_a_policy_caps_labels(helm: Path) -> None:
    """Ours does not count, and every pod has it."""
    values = {"webhook": {"failurePolicy": "Ignore"}}
    found = [
        m
        for m in policies(helm, "slurm-bridge", values)
        if m["metadata"]["name"] == "slurm-bridge-impossible"
    ]

    assert f"object.metadata.?labels.orValue({{}}).size() <= {caps.DEFAULT.labels + 1}" in str(
        found[0]["spec"]
    )


def test_nearly_all_writes_stop_at_the_first_condition_of_keys(helm: Path) -> None:
    """A status written by a kubelet changes none of these; whatever is validated is made of these."""
    (keys,) = [
        m["spec"]
        for m in policies(helm, "slurm-bridge", {})
        if m["kind"] == "ValidatingAdmissionPolicy" and m["metadata"]["name"] == "slurm-bridge-keys"
    ]
    first = keys["matchConditions"][0]["expression"]

    guarded = ("labels", "annotations", "finalizers", "ownerReferences", "schedulingGates")
    for field in guarded:
        part = "spec" if field == "schedulingGates" else "metadata"
        assert f"object.{part}.?{field} != oldObject.{part}.?{field}" in first
    assert len(guarded) - 1 == first.partition(") &&\n")[0].count("||")


@pytest.mark.parametrize(
    ("values", "namespace", "met"),
    [
        ({}, "ordinary", {"pods": ["direct"], "pods/status": []}),
        ({}, "kube-system", {"pods": ["accounts-pods"], "pods/status": ["accounts-pods"]}),
        (
            {"policies": {"direct": {"actions": ["Warn"]}}},
            "ordinary",
            {"pods": ["accounts-pods", "direct"], "pods/status": []},
        ),
    ],
    ids=["ordinary", "excluded", "direct only warns"],
)
def test_updates_of_pods_that_are_not_ours_meet_one_policy_and_statuses_none(
    helm: Path, values: dict[str, Any], namespace: str, met: dict[str, list[str]]
) -> None:
    """Those that a selector keeps from nearly all pods do not count; of excluded namespaces, statuses meet one."""
    found = policies(helm, "slurm-bridge", values)
    rules = {
        m["metadata"]["name"]: m["spec"]["matchConstraints"]["resourceRules"]
        for m in found
        if m["kind"] == "ValidatingAdmissionPolicy"
    }
    bound = [
        (m["spec"]["policyName"], m["spec"].get("matchResources", {}))
        for m in found
        if m["kind"] == "ValidatingAdmissionPolicyBinding"
    ]

    assert met == {
        resource: sorted(
            name.removeprefix("slurm-bridge-")
            for name, where in bound
            if "objectSelector" not in where
            and _is_in(namespace, where.get("namespaceSelector", {}))
            and _is_for(resource, rules[name])
            and _is_for(resource, where.get("resourceRules", rules[name]))
        )
        for resource in ("pods", "pods/status")
    }


def _is_for(resource: str, rules: list[dict[str, Any]]) -> bool:
    return any("UPDATE" in rule["operations"] and resource in rule["resources"] for rule in rules)


def _is_in(namespace: str, selector: dict[str, Any]) -> bool:
    """Whether a namespace without labels is selected."""
    labels = {"kubernetes.io/metadata.name": namespace}
    decide = {
        "In": lambda term: labels.get(term["key"]) in term["values"],
        "NotIn": lambda term: labels.get(term["key"]) not in term["values"],
        "Exists": lambda term: term["key"] in labels,
        "DoesNotExist": lambda term: term["key"] not in labels,
    }
    return (selector.get("matchLabels") or {}).items() <= labels.items() and all(
        decide[term["operator"]](term) for term in selector.get("matchExpressions") or ()
    )


CALLS_ONE = {"admission": {"calls": "one"}, "config": {"slurm_jobs": {"enabled": True}}}
"""With each policy there is."""


def test_no_policy_has_two_conditions(helm: Path) -> None:
    """The API server evaluates them all, whatever the first says."""
    found = {
        m["metadata"]["name"]: m["spec"].get("matchConditions", ())
        for m in policies(helm, "slurm-bridge", CALLS_ONE)
        if m["kind"] == "ValidatingAdmissionPolicy"
    }

    assert {} == {name: conditions for name, conditions in found.items() if len(conditions) > 1}


@pytest.mark.parametrize("policy", ["bypass", "direct", "taint", "impossible"])
def test_what_nearly_no_pod_is_comes_first_and_says_all_that_is_refused(
    helm: Path, policy: str
) -> None:
    """Whoever gets to the validations is turned into CEL's form twice more; who asks is looked at last."""
    (found,) = [
        m["spec"]
        for m in policies(helm, "slurm-bridge", CALLS_ONE)
        if m["kind"] == "ValidatingAdmissionPolicy"
        and m["metadata"]["name"] == f"slurm-bridge-{policy}"
    ]
    (condition,) = found["matchConditions"]
    places = [
        condition["expression"].index(f"!({validation['expression']})")
        for validation in found["validations"]
    ]

    assert places == sorted(places)
    assert condition["expression"].index("request.userInfo.?groups") > places[-1]
    assert "variables" not in found


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm) as cluster:
        yield cluster


@pytest.mark.attack(
    "keep the kubelet from reporting a pod's end, by 40 000 labels",
    "[caps](caps.md); policy `keys` compares labels only if one has changed",
)
def test_the_status_of_a_pod_with_very_many_labels_can_be_written(cluster: Cluster) -> None:
    """Else the kubelet could never report its end."""
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    fat = cluster.create(pod("fat", metadata={"labels": VERY_MANY}), by=root)
    status = {"status": {"message": "it has ended"}}

    assert "" == refusal(cluster.admin, "PATCH", pods(cluster.bridged, fat, "status"), status)


def test_where_slurm_places_pods_the_policy_for_all_other_namespaces_is_not_looked_at(
    cluster: Cluster,
) -> None:
    before = looked_at(cluster, "elsewhere")

    for _ in range(CREATED):
        assert "" == refusal(cluster.user(), "POST", pods(cluster.bridged), pod("cheap"))

    assert looked_at(cluster, "elsewhere") - before < CREATED


def test_writes_of_pods_that_are_not_ours_do_not_meet_the_policy_that_guards_ours(
    cluster: Cluster,
) -> None:
    strange = cluster.create(pod("strange", ours=False), namespace=cluster.other)
    guarded = cluster.create(pod("guarded"))
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    old = cluster.create(unlabelled("of-an-older-release"), by=root)
    before = looked_at(cluster, "keys")

    for n in range(CREATED):
        status = {"status": {"message": f"{n}"}}
        cluster.admin.patch(pods(cluster.other, strange, "status"), status)
    assert looked_at(cluster, "keys") - before < CREATED
    for name in (guarded, old):
        label = {"metadata": {"labels": {names.BRIDGED_LABEL: None, names.JOB_ID_LABEL: "7"}}}
        assert names.JOB_ID_LABEL in refusal(
            cluster.user(), "PATCH", pods(cluster.bridged, name), label
        )


def looked_at(cluster: Cluster, policy: str) -> float:
    """How often the API server has evaluated the conditions of a policy."""
    counts = [
        float(line.rpartition(" ")[2])
        for line in cluster.sandbox.kubectl("get", "--raw", "/metrics").splitlines()
        if line.startswith("apiserver_admission_match_condition_evaluation_seconds_count")
        and f'name="slurm-bridge-{policy}"' in line
    ]
    return sum(counts)
