"""What the policies say of pods outside bridged namespaces, and which namespaces these are."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import (
    BREAK_GLASS,
    Cluster,
    make_namespaces,
    pod,
    pods,
    policed,
    policies,
    refusal,
)
from tests.chart.rendering import Manifest

SELECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "in": (
        "tier in (a,b)",
        {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]},
    ),
    "not-in": (
        "tier notin (a)",
        {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]},
    ),
    "exists": ("tier", {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
    "absent": ("!tier", {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
    "both": (
        "team=x,tier notin (b)",
        {
            "matchLabels": {"team": "x"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b"]}],
        },
    ),
}
"""Selectors an administrator may write, as kubectl spells them and as values: each a release with a scheduler of its own."""
LABELLED = {
    "selected-none": {},
    "selected-a": {"tier": "a"},
    "selected-b": {"tier": "b", "team": "x"},
    "selected-c": {"tier": "c", "team": "x"},
}


TOLERATES_ALL = {"tolerations": [{"operator": "Exists"}]}
TOLERATES_OURS = {"tolerations": [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}]}
TOLERATES_EFFECT = {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}
TOLERATES_OTHERS = {
    "tolerations": [
        {"key": "gpu", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]
}


def variants(helm: Path, cluster: Cluster) -> list[Manifest]:
    """Policies of other releases: with other selectors, and a taint policy that refuses outside our namespaces."""
    found: list[Manifest] = []
    for name, (_, selector) in SELECTORS.items():
        # Helm merges maps: a default goes by null.
        labels = {names.ENABLED_LABEL: None, **selector.get("matchLabels", {})}
        values = {
            "namespaceSelector": {**selector, "matchLabels": labels},
            "config": {"scheduler_name": name},
        }
        rendered = policies(helm, cluster.ours, values, release=name)
        found += [m for m in rendered if "-elsewhere" in m["metadata"]["name"]]
    for confined in [m for m in found if m["kind"] == "ValidatingAdmissionPolicyBinding"]:
        here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*LABELLED]}
        selector = confined["spec"]["matchResources"]["namespaceSelector"]
        selector["matchExpressions"].append(here)
    strict = {
        "policies": {"managedTaint": {"actions": ["Deny"]}},
        "excludedNamespaces": ["kube-system", cluster.bridged, cluster.other],
    }
    rendered = policies(helm, cluster.ours, strict, release="strict")
    return found + [m for m in rendered if m["metadata"]["name"].endswith("-taint")]


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    make_namespaces(control_plane, LABELLED)
    with policed(control_plane, helm, partial(variants, helm)) as cluster:
        yield cluster
    for namespace in LABELLED:
        control_plane.admin.delete(f"/api/v1/namespaces/{namespace}")


@pytest.mark.attack(
    "make pods of an unselected namespace ours",
    "policy `elsewhere`",
)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod(), id="all"),
        pytest.param(pod(ours=False, spec={"schedulerName": names.SCHEDULER_NAME}), id="scheduler"),
        pytest.param(pod(ours=False, metadata={"finalizers": [names.FINALIZER]}), id="finalizer"),
        pytest.param(pod(ours=False, spec={"schedulingGates": [{"name": names.GATE}]}), id="gate"),
    ],
)
def test_elsewhere_nobody_asks_for_us(cluster: Cluster, body: Manifest) -> None:
    for namespace in (cluster.other, "kube-system", cluster.ours):
        assert f"namespace {namespace} is not placed by Slurm" in refusal(
            cluster.admin, "POST", pods(namespace), body
        )


def test_our_own_namespace_is_never_bridged(cluster: Cluster) -> None:
    bound = pod(ours=False, spec={"nodeName": "node-0"})

    assert refusal(cluster.admin, "POST", pods(cluster.ours), bound) == ""


@pytest.mark.parametrize("spec", [TOLERATES_ALL, TOLERATES_OURS, TOLERATES_EFFECT])
def test_toleration_of_our_taint_is_warned_about(cluster: Cluster, spec: Manifest) -> None:
    body = pod(ours=False, spec=spec)

    assert names.MANAGED_NODE_TAINT in cluster.warnings(body, cluster.other)


def test_other_tolerations_are_nobodys_business(cluster: Cluster) -> None:
    assert cluster.warnings(pod(ours=False, spec=TOLERATES_OTHERS), cluster.other) == ""
    assert cluster.warnings(pod(spec=TOLERATES_ALL), cluster.bridged) == ""


@pytest.mark.attack(
    "tolerate the taint of Slurm's nodes from elsewhere",
    "policy `taint`, if it is set to refuse",
)
def test_toleration_of_our_taint_is_refused_by_setting(cluster: Cluster) -> None:
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    kept = cluster.create(
        pod("kept", ours=False, spec=TOLERATES_ALL), namespace="selected-none", by=root
    )
    plain = cluster.create(pod("plain", ours=False), namespace="selected-none", by=root)
    tolerate = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
    finalizer = {"op": "add", "path": "/metadata/finalizers", "value": [names.FINALIZER]}
    label = {"metadata": {"labels": {"a": "b"}}}

    def refused(method: str, path: str, body: object) -> bool:
        return names.MANAGED_NODE_TAINT in refusal(cluster.admin, method, path, body)

    assert refused("POST", pods("selected-none"), pod(ours=False, spec=TOLERATES_ALL))
    assert refused("PATCH", pods("selected-none", plain), tolerate)
    assert refused("PATCH", pods("selected-none", plain), [*tolerate, finalizer])
    assert not refused("POST", pods("selected-none"), pod(ours=False, spec=TOLERATES_OTHERS))
    assert not refused("POST", pods("kube-system"), pod(ours=False, spec=TOLERATES_ALL))
    assert not refused("PATCH", pods("selected-none", kept), label)


@pytest.mark.parametrize("release", SELECTORS)
def test_policies_select_the_namespaces_that_the_selector_does(
    cluster: Cluster, release: str
) -> None:
    selector, _ = SELECTORS[release]
    selected = cluster.admin.get("/api/v1/namespaces", labelSelector=selector)["items"]
    body = pod(ours=False, spec={"schedulerName": release})

    assert {item["metadata"]["name"] for item in selected} & LABELLED.keys() == {
        namespace
        for namespace in LABELLED
        if not refusal(cluster.admin, "POST", pods(namespace), body)
    }
