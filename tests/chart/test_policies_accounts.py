"""What stolen tokens of our own programs are good for: the chart's own accounts on a real API server.

Each write of ours passes, and of what RBAC would allow beside it, admission policies refuse what is not ours. The conditions are
on what is written, so they hold for one account with the rights of both programs, too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import JSON_PATCH, STRATEGIC, Cluster, binding, pod, pods, policed, refusal
from tests.chart.rendering import Manifest

SLURM_JOBS = {"slurm_jobs": {"enabled": True}, "sylabs": {"enabled": True}}
APART: Manifest = {"config": SLURM_JOBS}
TOGETHER: Manifest = {**APART, "workloads": {"enabled": False, "together": True}}
NODES = "/api/v1/nodes"
OURS, THEIRS = "node-of-ours", "node-of-theirs"
SYSTEM = "kube-system"
PRIVILEGED = {
    "containers": [
        {"name": "main", "image": "example.test/a", "securityContext": {"privileged": True}}
    ]
}
IMAGE = {"spec": {"containers": [{"name": "main", "image": "example.test/evil"}]}}
TOLERATE = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
NOT_OURS = "this account writes pods that Slurm places"


@pytest.fixture(scope="module", params=[APART, TOGETHER], ids=["apart", "together"])
def cluster(
    request: pytest.FixtureRequest, control_plane: Sandbox, helm: Path
) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=request.param) as cluster:
        is_together = request.param is TOGETHER
        cluster.callers["both",] = Api(
            cluster.credentials("extender" if is_together else "controllers")
        )
        nodes = {OURS: {names.EXTERNAL_NODE_LABEL: "true"}, THEIRS: {}}
        for name, labels in nodes.items():
            cluster.admin.create(NODES, {"metadata": {"name": name, "labels": labels}})
        yield cluster
        for name in nodes:
            cluster.admin.delete(f"{NODES}/{name}")


@pytest.fixture(scope="module")
def thieves(cluster: Cluster) -> tuple[Api, ...]:
    """Whoever has the extender's token, and whoever has that of the controllers' work."""
    return cluster.program("extender"), cluster.callers["both",]


@pytest.fixture(scope="module")
def thief(cluster: Cluster) -> Api:
    """Whoever has the token of the account that does the controllers' work."""
    return cluster.callers["both",]


@pytest.fixture(scope="module")
def strangers(cluster: Cluster) -> Iterator[dict[str, str]]:
    """Pods that are nobody's of ours, by namespace; those of an unlabelled one in the bridged namespace, too."""
    by_namespace = {
        SYSTEM: pod("k1-privileged", ours=False, spec=PRIVILEGED),
        cluster.other: pod("k1-ordinary", ours=False),
    }
    paths = {
        namespace: pods(namespace, cluster.create(body, namespace=namespace, by=cluster.admin))
        for namespace, body in by_namespace.items()
    }
    yield paths
    for path in paths.values():
        cluster.admin.delete(path)


@pytest.fixture
def waiting(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The path of a pod of ours that waits for Slurm."""
    name = cluster.create(pod(f"k1-{abs(hash(request.node.nodeid)) % 10**6}"))
    return pods(cluster.bridged, name)


def write(by: Api, path: str, body: object) -> str:
    """What is said against a patch, "" if nothing: a JSON patch if it is a list, else a strategic one."""
    return refusal(by, "PATCH", path, body, strategic=True)


@pytest.mark.attack(
    "with a stolen token of ours, put another image into a privileged pod of kube-system",
    "policies `accounts-pods` and `direct`: our accounts write no pod that is not ours, and no image at all",
)
def test_no_account_of_ours_changes_a_strangers_pod(
    thieves: tuple[Api, ...], strangers: dict[str, str]
) -> None:
    changes: tuple[object, ...] = (
        IMAGE,
        {"metadata": {"labels": {"app": "stolen"}}},
        {"metadata": {"labels": {names.BRIDGED_LABEL: "true"}}},
        {"metadata": {"finalizers": [names.FINALIZER]}},
        {"spec": {"activeDeadlineSeconds": 1}},
        TOLERATE,
    )

    for by in thieves:
        for path in strangers.values():
            for change in changes:
                assert NOT_OURS in write(by, path, change), (path, change)
            label = {"metadata": {"labels": {names.COMPANION_LABEL: "log"}}}
            assert "is forbidden" in write(by, path, label), "by whichever policy"


@pytest.mark.attack(
    "with a stolen token of ours, give a bridged pod another image, toleration or owner",
    "policy `direct`: of our pods, our accounts write only what says where Slurm has placed them",
)
def test_of_our_pods_our_accounts_write_only_what_places_them(
    thieves: tuple[Api, ...], waiting: str
) -> None:
    cases: tuple[tuple[object, str], ...] = (
        (IMAGE, "never images"),
        (TOLERATE, "never images, containers or tolerations"),
        ({"spec": {"nodeSelector": {"a": "b"}}}, "spec: of a pod"),
        ({"metadata": {"labels": {"app": "stolen"}}}, "and no others"),
        ({"metadata": {"annotations": {names.REQUESTER_ANNOTATION: "bob"}}}, "and no others"),
        ({"metadata": {"annotations": {f"{names.REQUEST_PREFIX}account": "b"}}}, "and no others"),
        ({"metadata": {"labels": {names.COMPANION_LABEL: "log"}}}, "is forbidden"),
        ({"metadata": {"finalizers": ["example.test/x"]}}, "removes its own finalizer"),
        ({"metadata": {"ownerReferences": [owner()]}}, "nor an owner"),
    )

    for by in thieves:
        for change, because in cases:
            assert because in write(by, waiting, change), change


def test_what_we_write_on_our_pods_passes(cluster: Cluster, thief: Api, waiting: str) -> None:
    """The pin and gate, the placeholder's adoption, the end as failed, the release."""
    name = waiting.rpartition("/")[2]
    autoscalers = {"metadata": {"annotations": dict(names.AUTOSCALERS)}}
    at_pin = dict.fromkeys(names.WRITTEN_AT_THE_PIN, "0")

    for by in (cluster.program("extender"), thief):
        assert "" == write(by, waiting, {"metadata": {"annotations": at_pin}})
        assert "" == write(by, waiting, autoscalers)
        assert "" == write(by, waiting, {"spec": {"activeDeadlineSeconds": 1}})
        assert "" == write(by, waiting, [{"op": "remove", "path": "/metadata/finalizers/0"}])
    cluster.assign(name, OURS)
    adopted = {
        "metadata": {
            "labels": {names.JOB_ID_LABEL: "4712"},
            "annotations": {names.SLUID_ANNOTATION: "s", names.WHEN_LOST_ANNOTATION: None},
        }
    }
    assert "" == write(cluster.program("extender"), waiting, adopted)


@pytest.mark.attack(
    "with a stolen token of ours, give a pod another address, or write what its containers do",
    "policies `keys` and `accounts-pods`: of a pod's status, our accounts write their own conditions",
)
def test_of_a_status_our_accounts_write_their_conditions_only(
    thieves: tuple[Api, ...], waiting: str, strangers: dict[str, str]
) -> None:
    mine = {"type": names.ALLOCATED_CONDITION, "status": "False", "reason": "Waiting"}
    passes: tuple[Manifest, ...] = (
        {"conditions": [mine]},
        {"conditions": [{"type": names.DISRUPTION_TARGET, "status": "True"}]},
        {"phase": "Failed", "reason": "SlurmCancelled", "message": "m", "conditions": [mine]},
    )
    refused: tuple[Manifest, ...] = (
        {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]},
        {"phase": "Succeeded"},
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"containerStatuses": [ready()]},
    )

    for by in thieves:
        for status in passes:
            assert "" == write(by, f"{waiting}/status", {"status": status}), status
        for status in refused:
            assert "status: of a pod's status" in write(by, f"{waiting}/status", {"status": status})
        for key in ("labels", "annotations"):
            change = {"metadata": {key: {names.JOB_ID_LABEL: "1"}}}
            assert "status: of a pod's status" in write(by, f"{waiting}/status", change)
        answer = write(by, f"{strangers[SYSTEM]}/status", {"status": passes[0]})
        assert "pods that Slurm places" in answer


@pytest.mark.attack(
    "with a stolen token of ours, say in a bridged pod's status that its resource claim is another pod's",
    "policies `keys` and `accounts-pods`: only with `device_profiles` do our accounts name claims there",
)
def test_no_account_names_a_pods_claims(cluster: Cluster, thieves: tuple[Api, ...]) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "mine"}]
    name = cluster.create(pod("k1-claiming", spec={"resourceClaims": claims}))
    named = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "theirs"}]}

    for by in thieves:
        path = pods(cluster.bridged, name, "status")
        assert "status: of a pod's status" in write(by, path, {"status": named})


@pytest.mark.attack(
    "with a stolen token of ours, mark a pod that is not Slurm's as ours through its status, and delete it",
    "policies `keys` and `accounts-pods` see the labels; the finalizer, which they may not see, makes no pod ours",
)
def test_no_account_makes_a_strangers_pod_ours_through_its_status(
    cluster: Cluster, thieves: tuple[Api, ...], strangers: dict[str, str]
) -> None:
    path = strangers[cluster.other]
    for by in thieves:
        for label in (names.BRIDGED_LABEL, names.COMPANION_LABEL):
            change = {"metadata": {"labels": {label: "true"}}}
            assert "is forbidden" in write(by, f"{path}/status", change), "by whichever policy"
    finalizers = {"metadata": {"finalizers": [names.FINALIZER]}}
    thieves[0].request("PATCH", f"{path}/status", finalizers, content_type=STRATEGIC)
    try:
        assert "deletes pods that Slurm places" in refusal(thieves[-1], "DELETE", path, None)
        for by in thieves:
            assert NOT_OURS in write(by, path, {"spec": {"activeDeadlineSeconds": 1}})
    finally:
        cluster.admin.patch(path, {"metadata": {"finalizers": None}})


@pytest.mark.attack(
    "with a stolen token of the controllers, delete a pod that is not Slurm's",
    "policy `accounts-deletes`",
)
def test_the_controllers_delete_pods_of_ours_only(
    thief: Api, waiting: str, strangers: dict[str, str]
) -> None:
    for path in strangers.values():
        assert "deletes pods that Slurm places" in refusal(thief, "DELETE", path, None)
    assert "" == refusal(thief, "DELETE", waiting, None)


@pytest.mark.attack(
    "with a stolen token of the extender, bind a pod of kube-system to a node",
    "policy `accounts-bindings`; elsewhere a Binding does not show its pod",
)
def test_the_extender_binds_nothing_where_slurm_never_places_pods(
    cluster: Cluster, waiting: str
) -> None:
    extender = cluster.program("extender")
    for path in (pods(SYSTEM, "any", "binding"), pods(cluster.ours, "any", "binding")):
        assert "binds no pods in namespace" in refusal(extender, "POST", path, binding("any", OURS))
    name = waiting.rpartition("/")[2]
    cluster.assign(name, OURS)
    assert "" == refusal(extender, "POST", f"{waiting}/binding", binding(name, OURS))


@pytest.mark.attack(
    "with a stolen token of the controllers, cordon or taint a node that is not Slurm's",
    "policy `accounts-nodes`",
)
def test_a_node_that_is_not_slurms_is_not_written(thief: Api) -> None:
    path = f"{NODES}/{THEIRS}"
    taint = {"key": names.MANAGED_NODE_TAINT, "effect": "NoExecute"}
    mark = {"metadata": {"annotations": {names.CORDON_ANNOTATION: "x"}}}

    for change in (
        {**mark, "spec": {"unschedulable": True}},
        {"spec": {"taints": [taint]}},
    ):
        assert "nodes that are Slurm's" in write(thief, path, change)
    condition = {
        "status": {"conditions": [{"type": names.SLURM_STATE_CONDITION, "status": "True"}]}
    }
    assert "nodes that are Slurm's" in write(thief, f"{path}/status", condition)
    label = {"metadata": {"labels": {"slurm.sylabs.io/partition": "debug"}}}
    assert "nodes that are Slurm's" in write(thief, path, label)


@pytest.mark.attack(
    "with a stolen token of the controllers, write a node's labels, addresses, capacity or foreign taints",
    "policy `accounts-nodes`: our taint, our condition, and a cordon that bears our mark",
)
def test_of_slurms_nodes_our_own_keys_are_written_only(cluster: Cluster, thief: Api) -> None:
    path = f"{NODES}/{OURS}"
    mine = {"key": names.MANAGED_NODE_TAINT, "value": "slurm-bridge-scheduler"}
    marked = {"metadata": {"annotations": {names.CORDON_ANNOTATION: "drained"}}}
    condition = {"type": names.SLURM_STATE_CONDITION, "status": "True"}
    passes: tuple[tuple[str, Manifest], ...] = (
        (path, {"spec": {"taints": [{**mine, "effect": "NoSchedule"}]}}),
        (path, {**marked, "spec": {"unschedulable": True}}),
        (f"{path}/status", {"status": {"conditions": [condition]}}),
    )
    refused: tuple[tuple[str, Manifest], ...] = (
        (path, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
        (path, {"spec": {"unschedulable": True}}),
        (path, {"spec": {"providerID": "x://y"}}),
        (path, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
        (path, {"metadata": {"labels": {names.EXTERNAL_NODE_LABEL: "false"}}}),
        (path, {"metadata": {"annotations": {names.PARTITIONS_ANNOTATION: "all"}}}),
        (f"{path}/status", {"status": {"addresses": [{"type": "InternalIP", "address": "1.1.1.1"}]}}),
        (f"{path}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        (f"{path}/status", {"status": {"capacity": {"cpu": "999"}}}),
        (f"{path}/status", {"status": {"allocatable": {"slurm.sylabs.io/disk": "1"}}}),
        (f"{path}/status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}}),
        (f"{path}/status", {"status": {"declaredFeatures": ["Mine"]}}),
    )  # fmt: skip

    for where, change in passes:
        assert "" == write(thief, where, change), change
    for where, change in refused:
        assert "this account writes" in write(thief, where, change), change


def test_a_foreign_taint_of_our_node_stays_ours_comes_and_goes(
    cluster: Cluster, thief: Api
) -> None:
    path = f"{NODES}/{OURS}"
    foreign = {"key": "example.test/dedicated", "effect": "NoSchedule"}
    mine = {"key": names.MANAGED_NODE_TAINT, "effect": "NoSchedule"}
    cluster.admin.patch(path, {"spec": {"taints": [foreign]}})
    try:
        add = [{"op": "add", "path": "/spec/taints/-", "value": mine}]
        thief.request("PATCH", path, add, content_type=JSON_PATCH)
        kept = cluster.admin.get(path)["spec"]["taints"]
        index = [taint["key"] for taint in kept].index(names.MANAGED_NODE_TAINT)
        other = [taint["key"] for taint in kept].index(foreign["key"])

        assert "its own taint" in write(
            thief, path, [{"op": "remove", "path": f"/spec/taints/{other}"}]
        )
        assert "" == write(thief, path, [{"op": "remove", "path": f"/spec/taints/{index}"}])
    finally:
        cluster.admin.patch(path, {"spec": {"taints": None}})


def test_what_is_left_of_us_on_a_node_that_is_slurms_no_more_can_be_removed(
    cluster: Cluster, thief: Api
) -> None:
    path = f"{NODES}/{THEIRS}"
    mark = {"annotations": {names.CORDON_ANNOTATION: "x"}}
    cluster.admin.patch(path, {"metadata": mark, "spec": {"unschedulable": True}})
    try:
        lifted = {
            "metadata": {"annotations": {names.CORDON_ANNOTATION: None}},
            "spec": {"unschedulable": None},
        }
        assert "" == write(thief, path, lifted)
    finally:
        free = {"metadata": {"annotations": None}, "spec": {"unschedulable": None}}
        cluster.admin.patch(path, free)


def owner() -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"}


def ready() -> dict[str, Any]:
    return {
        "name": "main",
        "image": "i",
        "imageID": "i",
        "ready": True,
        "restartCount": 0,
    }
