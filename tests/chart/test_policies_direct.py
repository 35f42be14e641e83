"""Nobody gets to Slurm's nodes past Slurm, from whichever namespace; an ordinary cluster's system pods do."""

from collections.abc import Iterator
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
    refusal,
)
from tests.chart.rendering import Manifest

LISTED = "kube-flannel"
"""In `policies.direct.namespaces` by default."""
DAEMON_CONTROLLER = "system:serviceaccount:kube-system:daemon-set-controller"
TOLERANT = {"tolerations": [{"operator": "Exists"}]}
OURS = {"tolerations": [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}]}
OTHERS = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
CRITICAL = {"priorityClassName": "system-node-critical"}
BY_NAME = {"nodeName": "node-0"}


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    make_namespaces(control_plane, {LISTED: {}})
    with policed(control_plane, helm) as cluster:
        yield cluster
    control_plane.admin.delete(f"/api/v1/namespaces/{LISTED}")


def daemons(**spec: object) -> Manifest:
    """A DaemonSet whose pods have this in their spec."""
    labels = {"app": "agent"}
    template = pod(ours=False, spec=spec)
    inner = {"metadata": {"labels": labels}, "spec": template["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": labels}, "template": inner},
    }


def sets(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets"


def daemon(**spec: Any) -> Manifest:
    """A pod as the DaemonSet controller makes it."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "00000000-0000-0000-0000-000000000000",
        "controller": True,
    }
    return pod(ours=False, metadata={"ownerReferences": [owner]}, spec=spec)


@pytest.mark.attack(
    "name a node from elsewhere, plainly or with a critical priority",
    "policy `direct`",
)
@pytest.mark.parametrize(
    ("spec", "because"),
    [
        pytest.param(BY_NAME, "spec.nodeName: leave it out", id="by-name"),
        pytest.param({**BY_NAME, **CRITICAL}, "spec.nodeName: leave it out", id="critical-by-name"),
        pytest.param({**TOLERANT, **CRITICAL}, "spec.priorityClassName", id="critical"),
        pytest.param({**OURS, **CRITICAL}, "spec.priorityClassName", id="critical-ours"),
    ],
)
@pytest.mark.parametrize("who", ["alice", "admin"])
def test_from_elsewhere_nobody_gets_there_past_slurm(
    cluster: Cluster, who: str, spec: Manifest, because: str
) -> None:
    body = pod(ours=False, spec=spec)

    assert because in refusal(cluster.known(who), "POST", pods(cluster.other), body)


@pytest.mark.attack(
    "have others thrown out for a critical pod that Slurm places",
    "policy `direct`",
)
def test_nor_by_a_critical_pod_of_a_bridged_namespace(cluster: Cluster) -> None:
    body = pod(spec={**TOLERANT, **CRITICAL})

    assert "spec.priorityClassName" in refusal(cluster.user(), "POST", pods(cluster.bridged), body)


@pytest.mark.attack(
    "add the toleration to a critical pod later",
    "policy `direct`",
)
def test_nor_by_a_toleration_that_a_critical_pod_gets_later(cluster: Cluster) -> None:
    name = cluster.create(pod("critical", ours=False, spec=CRITICAL), namespace=cluster.other)
    tolerate = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]

    refused = refusal(cluster.user(), "PATCH", pods(cluster.other, name), tolerate)

    assert "spec.priorityClassName" in refused


@pytest.mark.attack(
    "create a DaemonSet that tolerates the taint, in any namespace",
    "policies `daemonsets` and `direct`",
)
@pytest.mark.parametrize("where", ["other", "bridged"])
@pytest.mark.parametrize("spec", [TOLERANT, OURS])
def test_nor_by_a_daemon_set(cluster: Cluster, where: str, spec: Manifest) -> None:
    namespace = getattr(cluster, where)
    controller = cluster.user(DAEMON_CONTROLLER)
    because = "a DaemonSet of this namespace may not tolerate"

    assert because in refusal(cluster.user(), "POST", sets(namespace), daemons(**spec))
    assert because in refusal(controller, "POST", pods(namespace), daemon(**spec))


def test_what_does_not_get_there_is_nobodys_business(cluster: Cluster) -> None:
    alice, controller = cluster.user(), cluster.user(DAEMON_CONTROLLER)

    for spec in (OTHERS, CRITICAL, TOLERANT):
        assert "" == refusal(alice, "POST", pods(cluster.other), pod(ours=False, spec=spec))
    assert "" == refusal(alice, "POST", sets(cluster.other), daemons(**OTHERS))
    assert "" == refusal(controller, "POST", pods(cluster.other), daemon(**OTHERS))


@pytest.mark.parametrize("namespace", ["kube-system", LISTED])
def test_the_clusters_own_pods_pass(cluster: Cluster, namespace: str) -> None:
    admin, controller = cluster.admin, cluster.user(DAEMON_CONTROLLER)
    critical = {**TOLERANT, **CRITICAL}

    assert "" == refusal(admin, "POST", sets(namespace), daemons(**critical))
    assert "" == refusal(controller, "POST", pods(namespace), daemon(**critical))
    assert "" == refusal(admin, "POST", pods(namespace), pod(ours=False, spec=critical))
    assert "" == refusal(admin, "POST", pods(namespace), pod(ours=False, spec=BY_NAME))


def test_break_glass_may_do_it_by_hand(cluster: Cluster) -> None:
    root = cluster.user("root", "system:masters", BREAK_GLASS)

    assert "" == refusal(root, "POST", pods(cluster.other), pod(ours=False, spec=BY_NAME))
    assert "" == refusal(root, "POST", sets(cluster.other), daemons(**TOLERANT))


def test_a_bound_pod_is_edited_as_ever(cluster: Cluster) -> None:
    """It has a node name by then, and may have had its toleration before there was this policy."""
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    body = pod("there", ours=False, spec={**BY_NAME, **CRITICAL, **TOLERANT})
    name = cluster.create(body, namespace=cluster.other, by=root)
    label = {"metadata": {"labels": {"a": "b"}}}

    assert "" == refusal(cluster.user(), "PATCH", pods(cluster.other, name), label)
