"""The admission policies against a real API server, with the credentials of real users and service accounts."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridge.domain import names
from sandbox.client import Sandbox
from tests.chart.policed import (
    BREAK_GLASS,
    JSON_PATCH,
    Cluster,
    binding,
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


def owned_by(kind: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": "forged",
        "uid": "1",
        "controller": True,
    }
    return {"ownerReferences": [owner]}


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
        found += [m for m in rendered if m["metadata"]["name"].endswith("-elsewhere")]
    for confined in [m for m in found if m["kind"] == "ValidatingAdmissionPolicyBinding"]:
        here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*LABELLED]}
        namespaces = {"matchExpressions": [here]}
        confined["spec"]["matchResources"] = {"namespaceSelector": namespaces}
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


@pytest.fixture(scope="module")
def waiting(cluster: Cluster) -> str:
    """A pod of ours that waits for Slurm."""
    return cluster.create(pod("waiting"))


@pytest.fixture(scope="module")
def assigned(cluster: Cluster) -> str:
    """A pod of ours that Slurm has given a node."""
    name = cluster.create(pod("assigned"))
    cluster.assign(name, "node-0")
    return name


@pytest.mark.parametrize(
    ("body", "because"),
    [
        pytest.param(
            pod(spec={"nodeName": "node-0", "schedulingGates": []}), "spec.nodeName", id="node"
        ),
        pytest.param(pod(spec={"schedulerName": "mine"}), "spec.schedulerName", id="scheduler"),
        pytest.param(pod(ours=False), "spec.schedulerName", id="default-scheduler"),
        pytest.param(
            pod(ours=False, metadata=owned_by("DaemonSet")), "by a DaemonSet", id="daemonset-shape"
        ),
        pytest.param(pod(metadata=owned_by("Node")), "or a Node", id="static-pod-shape"),
        pytest.param(
            pod(
                spec={"nodeName": "node-0", "schedulingGates": []},
                metadata={"annotations": {"kubernetes.io/config.mirror": "x"}},
            ),
            "spec.nodeName",
            id="mirror-shape",
        ),
        pytest.param(
            pod(metadata={"labels": {names.JOB_ID_LABEL: "7"}}), names.JOB_ID_LABEL, id="job-id"
        ),
        pytest.param(
            pod(metadata={"annotations": {names.NODE_ANNOTATION: "node-0"}}),
            names.NODE_ANNOTATION,
            id="node-annotation",
        ),
        pytest.param(pod(spec={"schedulingGates": []}), names.GATE, id="without-gate"),
        pytest.param(pod(metadata={"finalizers": []}), names.FINALIZER, id="without-finalizer"),
    ],
)
@pytest.mark.parametrize("who", ["alice", "admin"])
def test_no_way_round_slurm(cluster: Cluster, who: str, body: Manifest, because: str) -> None:
    assert because in refusal(cluster.known(who), "POST", pods(cluster.bridged), body)


def test_ordinary_pod_is_created(cluster: Cluster) -> None:
    assert refusal(cluster.user(), "POST", pods(cluster.bridged), pod()) == ""
    assert refusal(cluster.user(), "POST", pods(cluster.other), pod(ours=False)) == ""


@pytest.mark.parametrize(
    ("change", "because"),
    [
        pytest.param({"spec": {"schedulingGates": None}}, names.GATE, id="gate-removed"),
        pytest.param({"metadata": {"finalizers": None}}, names.FINALIZER, id="finalizer-removed"),
        pytest.param(
            {"metadata": {"finalizers": ["example.test/other"]}},
            names.FINALIZER,
            id="finalizer-replaced",
        ),
        pytest.param(
            {"metadata": {"labels": {names.JOB_ID_LABEL: "7"}}}, names.JOB_ID_LABEL, id="job-id-set"
        ),
        pytest.param(
            {"metadata": {"annotations": {names.NODE_ANNOTATION: "node-1"}}},
            names.NODE_ANNOTATION,
            id="node-set",
        ),
    ],
)
@pytest.mark.parametrize("who", ["alice", "admin"])
def test_waiting_pod_keeps_its_keys(
    cluster: Cluster, waiting: str, who: str, change: Manifest, because: str
) -> None:
    path = pods(cluster.bridged, waiting)

    assert because in refusal(cluster.known(who), "PATCH", path, change)


@pytest.mark.parametrize("value", ["7", None])
def test_assigned_pod_keeps_job_and_node(
    cluster: Cluster, assigned: str, value: str | None
) -> None:
    path = pods(cluster.bridged, assigned)
    label = {"metadata": {"labels": {names.JOB_ID_LABEL: value}}}
    annotation = {"metadata": {"annotations": {names.NODE_ANNOTATION: value}}}

    assert names.JOB_ID_LABEL in refusal(cluster.user(), "PATCH", path, label)
    assert names.NODE_ANNOTATION in refusal(cluster.user(), "PATCH", path, annotation)


def test_keys_are_safe_from_status_writes_too(cluster: Cluster, assigned: str) -> None:
    path = pods(cluster.bridged, assigned, "status")
    change = {"metadata": {"labels": {names.JOB_ID_LABEL: "7"}}}

    assert names.JOB_ID_LABEL in refusal(cluster.admin, "PATCH", path, change)


def test_finalizer_cannot_be_put_on_a_strangers_pod(cluster: Cluster) -> None:
    name = cluster.create(pod("stranger", ours=False), namespace=cluster.other)
    change = {"metadata": {"finalizers": [names.FINALIZER]}}

    refused = refusal(cluster.user(), "PATCH", pods(cluster.other, name), change)

    assert names.FINALIZER in refused


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="annotation"),
        pytest.param(
            {"metadata": {"finalizers": [names.FINALIZER, "example.test/other"]}}, id="finalizer"
        ),
        pytest.param(
            [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}],
            id="toleration",
        ),
        pytest.param({"spec": {"activeDeadlineSeconds": 60}}, id="deadline"),
    ],
)
def test_ordinary_edits_are_free(cluster: Cluster, waiting: str, change: object) -> None:
    path = pods(cluster.bridged, waiting)

    assert refusal(cluster.user(), "PATCH", path, change) == ""


def test_debugging_eviction_and_deletion_are_free(cluster: Cluster, assigned: str) -> None:
    alice, path = cluster.user(), pods(cluster.bridged, assigned)
    debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "example.test/debug"}]}}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": assigned, "namespace": cluster.bridged},
    }

    assert refusal(cluster.admin, "PATCH", f"{path}/ephemeralcontainers", debug) == ""
    assert refusal(alice, "POST", f"{path}/eviction", eviction) == ""
    assert refusal(alice, "DELETE", path, None) == ""


def test_our_pod_cannot_be_resized(cluster: Cluster, assigned: str) -> None:
    stranger = cluster.create(pod("resized", ours=False), namespace=cluster.other)
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    change = {"spec": {"containers": [{"name": "main", "resources": resources}]}}

    def resize(namespace: str, name: str) -> str:
        path = pods(namespace, name, "resize")
        return refusal(cluster.admin, "PATCH", path, change, strategic=True)

    assert "cannot be resized" in resize(cluster.bridged, assigned)
    assert "cannot be resized" not in resize(cluster.other, stranger)


@pytest.mark.parametrize(
    ("who", "because"),
    [
        ("alice", "cannot create resource"),
        ("admin", "may not bind pods"),
        ("scheduler", "may not bind pods"),
        ("controllers", "cannot create resource"),
    ],
)
def test_only_the_extender_and_the_clusters_scheduler_bind(
    cluster: Cluster, assigned: str, who: str, because: str
) -> None:
    path = pods(cluster.bridged, assigned, "binding")

    assert because in refusal(cluster.known(who), "POST", path, binding(assigned, "node-1"))


def test_old_way_of_binding_is_closed_too(cluster: Cluster, assigned: str) -> None:
    path = f"/api/v1/namespaces/{cluster.bridged}/bindings"

    assert "may not bind pods" in refusal(cluster.admin, "POST", path, binding(assigned, "node-1"))


def test_elsewhere_anybody_with_the_right_binds(cluster: Cluster) -> None:
    body = pod("hand-bound", ours=False, spec={"schedulerName": "mine"})
    name = cluster.create(body, namespace=cluster.other)

    assert not refusal(
        cluster.admin, "POST", pods(cluster.other, name, "binding"), binding(name, "node-1")
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


@pytest.mark.parametrize("spec", [TOLERATES_ALL, TOLERATES_OURS, TOLERATES_EFFECT])
def test_toleration_of_our_taint_is_warned_about(cluster: Cluster, spec: Manifest) -> None:
    body = pod(ours=False, spec=spec)

    assert names.MANAGED_NODE_TAINT in cluster.warnings(body, cluster.other)


def test_other_tolerations_are_nobodys_business(cluster: Cluster) -> None:
    assert cluster.warnings(pod(ours=False, spec=TOLERATES_OTHERS), cluster.other) == ""
    assert cluster.warnings(pod(spec=TOLERATES_ALL), cluster.bridged) == ""


def test_toleration_of_our_taint_is_refused_by_setting(cluster: Cluster) -> None:
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    kept = cluster.create(
        pod("kept", ours=False, spec=TOLERATES_ALL), namespace="selected-none", by=root
    )
    plain = cluster.create(pod("plain", ours=False), namespace="selected-none", by=root)
    tolerate = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
    label = {"metadata": {"labels": {"a": "b"}}}

    def refused(method: str, path: str, body: object) -> bool:
        return names.MANAGED_NODE_TAINT in refusal(cluster.admin, method, path, body)

    assert refused("POST", pods("selected-none"), pod(ours=False, spec=TOLERATES_ALL))
    assert refused("PATCH", pods("selected-none", plain), tolerate)
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


def test_break_glass_group_may_do_all(cluster: Cluster, waiting: str, assigned: str) -> None:
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    keys = {"metadata": {"finalizers": None, "labels": {names.JOB_ID_LABEL: None}}}
    gate = {"spec": {"schedulingGates": None}}
    by_hand = pod(ours=False, spec={"nodeName": "node-0"})

    assert not refusal(root, "PATCH", pods(cluster.bridged, assigned), keys)
    assert not refusal(root, "PATCH", pods(cluster.bridged, waiting), gate)
    assert not refusal(root, "POST", pods(cluster.bridged), by_hand)
    assert not refusal(root, "POST", pods(cluster.other), pod())
    assert not refusal(
        root, "POST", pods(cluster.bridged, assigned, "binding"), binding(assigned, "node-1")
    )


def test_unlabelled_namespace_unprotects_nobody(cluster: Cluster) -> None:
    namespace = f"{cluster.bridged}-once"
    make_namespaces(cluster.sandbox, {namespace: {names.ENABLED_LABEL: "true"}})
    name = cluster.create(pod(), namespace=namespace, by=cluster.admin)
    path = pods(namespace, name)
    cluster.admin.patch(
        f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {names.ENABLED_LABEL: None}}}
    )

    for change, because in (
        ({"spec": {"schedulingGates": None}}, names.GATE),
        ({"metadata": {"finalizers": None}}, names.FINALIZER),
        ({"metadata": {"labels": {names.JOB_ID_LABEL: "7"}}}, names.JOB_ID_LABEL),
    ):
        assert because in refusal(cluster.admin, "PATCH", path, change)

    release = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    controllers = cluster.program("controllers")
    assert refusal(controllers, "PATCH", path, release) == ""
    controllers.request("PATCH", path, release, content_type=JSON_PATCH)
    cluster.admin.delete(f"/api/v1/namespaces/{namespace}")
