"""What the policies protect in bridged namespaces, on a real API server, with the credentials of real users and programs."""

import itertools
import uuid
from typing import Any

import pytest

from slurmruntime.values import names
from tests.chart.policed import (
    BREAK_GLASS,
    JSON_PATCH,
    STRATEGIC,
    Cluster,
    binding,
    pod,
    pods,
    refusal,
    unlabelled,
)
from tests.chart.rendering import Manifest


def owned_by(kind: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": "forged",
        "uid": "1",
        "controller": True,
    }
    return {"ownerReferences": [owner]}


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
        *(
            pytest.param(pod(metadata={"annotations": {key: "9"}}), key, id=key.partition("/")[2])
            for key in names.WRITTEN_AT_THE_PIN
        ),
        pytest.param(
            pod(metadata={"annotations": {names.REQUESTER_ANNOTATION: "bob"}}),
            names.REQUESTER_ANNOTATION,
            id="as-somebody-else",
        ),
        pytest.param(pod(spec={"schedulingGates": []}), names.GATE, id="without-gate"),
        pytest.param(pod(metadata={"finalizers": []}), names.FINALIZER, id="without-finalizer"),
        pytest.param(unlabelled(), names.BRIDGED_LABEL, id="without-label"),
    ],
)
@pytest.mark.parametrize("who", ["alice", "admin"])
def test_no_way_round_slurm(cluster: Cluster, who: str, body: Manifest, because: str) -> None:
    assert because in refusal(cluster.known(who), "POST", pods(cluster.bridged), body)


def test_ordinary_pod_is_created(cluster: Cluster) -> None:
    assert refusal(cluster.user(), "POST", pods(cluster.bridged), pod()) == ""
    assert refusal(cluster.user(), "POST", pods(cluster.other), pod(ours=False)) == ""


@pytest.mark.attack(
    "remove the gate or the finalizer, write job id or node, as cluster administrator",
    "policy `keys` applies to all but break glass",
)
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


ASKED = f"{names.REQUEST_PREFIX}account"
GROUP = "scheduling.x-k8s.io/pod-group"
OURS_TO_BE = "slurm-bridge.dev/identity"


@pytest.mark.attack(
    "change the request, the requester or the group after CREATE",
    "policy `keys`",
)
@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("annotations", ASKED),
        ("annotations", f"{names.REQUEST_PREFIX}timelimit"),
        ("annotations", OURS_TO_BE),
        ("annotations", "kueue.x-k8s.io/pod-group-total-count"),
        ("labels", OURS_TO_BE),
        ("labels", GROUP),
        ("labels", "jobset.sigs.k8s.io/jobset-uid"),
        ("labels", "leaderworkerset.sigs.k8s.io/group-key"),
    ],
)
def test_what_went_into_the_job_stays_as_it_was(
    cluster: Cluster, waiting: str, assigned: str, field: str, key: str
) -> None:
    """Whether the key is added, changed or taken away; an ordinary one beside it does not help."""
    before = {"labels": {GROUP: "mine"}, "annotations": {ASKED: "mine"}}
    asks = cluster.create(pod(f"asks-{uuid.uuid4().hex[:6]}", metadata=before))
    change = {"metadata": {field: {key: "stolen", "team": "a"}}}

    for who, name in itertools.product(("alice", "admin"), (waiting, assigned, asks)):
        assert f"metadata: {key}: " in refusal(
            cluster.known(who), "PATCH", pods(cluster.bridged, name), change
        )
    for was, its in before.items():
        gone = {"metadata": {was: dict.fromkeys(its)}}
        assert next(iter(its)) in refusal(
            cluster.user(), "PATCH", pods(cluster.bridged, asks), gone
        )


def test_a_pod_that_slurm_refuses_may_be_mended(cluster: Cluster) -> None:
    asks = {"annotations": {ASKED: "nobody"}, "labels": {GROUP: "mine"}}
    path = pods(cluster.bridged, cluster.create(pod("refused", metadata=asks)))
    mended = {"metadata": {"annotations": {ASKED: None}}}
    said = {"type": names.ALLOCATED_CONDITION, "status": "False", "reason": "SubmitRefused"}
    assert ASKED in refusal(cluster.user(), "PATCH", path, mended)

    cluster.program("extender").request(
        "PATCH", f"{path}/status", {"status": {"conditions": [said]}}, content_type=STRATEGIC
    )

    assert refusal(cluster.user(), "PATCH", path, mended) == ""
    for others in ({"labels": {GROUP: "other"}}, {"annotations": {OURS_TO_BE: "root"}}):
        assert "are written by slurm-bridge" in refusal(
            cluster.user(), "PATCH", path, {"metadata": others}
        )


@pytest.mark.attack(
    "give a pod another owner after CREATE",
    "policy `keys`",
)
def test_a_pod_gets_no_other_owner(cluster: Cluster, waiting: str) -> None:
    path = pods(cluster.bridged, waiting)
    adopted = {"metadata": owned_by("ReplicaSet")}
    kubernetes = cluster.user(
        "system:serviceaccount:kube-system:replicaset-controller", "system:masters"
    )

    for who in ("alice", "admin"):
        assert "metadata.ownerReferences" in refusal(cluster.known(who), "PATCH", path, adopted)
    assert refusal(kubernetes, "PATCH", path, adopted) == ""


def test_an_owned_pod_can_be_orphaned(cluster: Cluster) -> None:
    name = cluster.create(pod("owned", metadata=owned_by("ReplicaSet")))
    orphaned = {"metadata": {"ownerReferences": None}}

    assert refusal(cluster.user(), "PATCH", pods(cluster.bridged, name), orphaned) == ""


@pytest.mark.parametrize("value", ["7", None])
def test_assigned_pod_keeps_job_and_node(
    cluster: Cluster, assigned: str, value: str | None
) -> None:
    path = pods(cluster.bridged, assigned)
    label = {"metadata": {"labels": {names.JOB_ID_LABEL: value}}}
    annotation = {"metadata": {"annotations": {names.NODE_ANNOTATION: value}}}

    assert names.JOB_ID_LABEL in refusal(cluster.user(), "PATCH", path, label)
    assert names.NODE_ANNOTATION in refusal(cluster.user(), "PATCH", path, annotation)


def test_released_pod_keeps_its_job_id(cluster: Cluster) -> None:
    name = cluster.create(pod("released"))
    cluster.assign(name, "node-0")
    path = pods(cluster.bridged, name)
    release = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    cluster.program("controllers").request("PATCH", path, release, content_type=JSON_PATCH)
    victim = {"metadata": {"labels": {names.JOB_ID_LABEL: "7"}}}

    assert names.JOB_ID_LABEL in refusal(cluster.user(), "PATCH", path, victim)


@pytest.mark.attack(
    "change labels and annotations of a pod through pods/status",
    "policy `keys`",
)
def test_keys_are_safe_from_status_writes_too(cluster: Cluster, assigned: str) -> None:
    path = pods(cluster.bridged, assigned, "status")
    change = {"metadata": {"labels": {names.JOB_ID_LABEL: "7"}}}

    assert names.JOB_ID_LABEL in refusal(cluster.admin, "PATCH", path, change)


def test_our_finalizer_on_a_strangers_pod_is_the_strangers_to_take_off(cluster: Cluster) -> None:
    """Nothing of ours looks at such a pod, so nothing guards it either."""
    path = pods(cluster.other, cluster.create(pod("stranger", ours=False), namespace=cluster.other))
    user = cluster.user()

    put = user.patch(path, {"metadata": {"finalizers": [names.FINALIZER]}})
    taken = user.patch(path, {"metadata": {"finalizers": None}})

    assert [names.FINALIZER] == put["metadata"]["finalizers"]
    assert "finalizers" not in taken["metadata"]


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


@pytest.mark.attack(
    "run work in an ephemeral container",
    "it has no resources of its own, and is allowed",
)
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


@pytest.mark.attack(
    "grow a pod after Slurm has given it its share",
    "policy `resize`",
)
def test_our_pod_cannot_be_resized(cluster: Cluster, assigned: str) -> None:
    offered = {resource["name"] for resource in cluster.admin.get("/api/v1")["resources"]}
    if "pods/resize" not in offered:
        pytest.skip("this Kubernetes resizes no pod: that came with 1.33")
    stranger = cluster.create(pod("resized", ours=False), namespace=cluster.other)
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    change = {"spec": {"containers": [{"name": "main", "resources": resources}]}}

    def resize(namespace: str, name: str) -> str:
        path = pods(namespace, name, "resize")
        return refusal(cluster.admin, "PATCH", path, change, strategic=True)

    assert "cannot be resized" in resize(cluster.bridged, assigned)
    assert "cannot be resized" not in resize(cluster.other, stranger)


@pytest.mark.attack(
    "bind with another scheduler, or the legacy way",
    "policy `binding`",
)
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
