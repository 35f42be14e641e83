"""A pod is guarded by its own label, wherever it is and whatever becomes of its namespace's; so none gets in without it."""

import pytest

from slurmruntime.values import names
from tests.chart.policed import (
    BREAK_GLASS,
    EFFECTIVE_S,
    JSON_PATCH,
    Cluster,
    assignment,
    make_namespaces,
    pod,
    pods,
    refusal,
    unlabelled,
)
from tests.servers import wait_until


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


@pytest.mark.attack(
    "have a webhook take the label off a new pod, and write job and node oneself once its namespace is no longer bridged",
    "policy `bypass` lets no pod in without the label by which policy `keys` knows it anywhere",
)
def test_no_pod_gets_in_that_loses_its_guard_with_its_namespace(cluster: Cluster) -> None:
    namespace = f"{cluster.bridged}-left"
    make_namespaces(cluster.sandbox, {namespace: {names.ENABLED_LABEL: "true"}})
    root = cluster.user("root", "system:masters", BREAK_GLASS)
    said = refusal(cluster.admin, "POST", pods(namespace), unlabelled())
    older = cluster.create(unlabelled("older"), namespace=namespace, by=root)
    forged = assignment(cluster.admin.get(pods(namespace, older)), "node-0")
    guarded = refusal(cluster.admin, "PATCH", pods(namespace, older), forged)
    left = {"metadata": {"labels": {names.ENABLED_LABEL: None}}}
    cluster.admin.patch(f"/api/v1/namespaces/{namespace}", left)

    wait_until(
        lambda: not refusal(cluster.admin, "PATCH", pods(namespace, older), forged), EFFECTIVE_S
    )
    assert names.GATE in guarded
    assert names.BRIDGED_LABEL in said
    cluster.admin.patch(pods(namespace, older), {"metadata": {"finalizers": None}})
    cluster.admin.delete(f"/api/v1/namespaces/{namespace}")


def test_our_label_on_a_strangers_pod_guards_nothing_and_buys_nothing(cluster: Cluster) -> None:
    body = pod("labelled", ours=False, metadata={"labels": {names.BRIDGED_LABEL: "true"}})
    path = pods(cluster.other, cluster.create(body, namespace=cluster.other))
    free = {"metadata": {"labels": {names.BRIDGED_LABEL: None, names.JOB_ID_LABEL: "7"}}}

    assert "default-scheduler" == cluster.user().get(path)["spec"]["schedulerName"]
    assert "" == refusal(cluster.user(), "PATCH", path, free)
