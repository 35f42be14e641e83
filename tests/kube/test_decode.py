"""What is read out of the API server's JSON. `test_watch` and `test_patches` read the real one's; here stands each rule."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain.caps import Sizes
from bridge.domain.model.demand import Demand
from bridge.domain.model.pods import Condition, Container, ContainerState, Phase, Pod
from bridge.kube import decode
from slurmruntime.model.affinity import NodeTerm, Requirement, Toleration
from slurmruntime.model.objects import Owner
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid
from tests.kube.manifests import Manifest, container, expression, pod, required
from tests.kube.stored import NEW, container_of, read_bound, read_pod, stored

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIB = 2**30


def test_everything_a_decision_looks_at_is_read() -> None:
    spec: Any = {
        "priorityClassName": "high",
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": required({"matchExpressions": [expression("a", "b", "c")]})},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}, {}],
        "nodeName": "node-1",
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 90,
        "restartPolicy": "Never",
    }
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "startTime": NEW,
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "R",
                "message": "m",
                "lastProbeTime": None,
            }
        ],
    }
    owners = [
        {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "o-1"},
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "o-2", "controller": True},
    ]
    manifest = stored(
        pod("a", labels={"app": "x"}, annotations={"note": "y"}, **spec),
        status,
        ownerReferences=owners,
        deletionTimestamp=NEW,
        deletionGracePeriodSeconds=45,
    )

    assert read_pod(manifest) == Pod(
        uid=PodUid("u-1"),
        namespace="ns",
        name="a",
        resource_version="7",
        created_at=NOON,
        labels={"app": "x"},
        annotations={"note": "y"},
        owner=Owner(api_version="batch/v1", kind="Job", name="j", uid="o-2"),
        gates=(names.GATE,),
        finalizers=(names.FINALIZER,),
        scheduler_name=names.SCHEDULER_NAME,
        priority_class="high",
        demand=Demand(),
        node_selector={"disk": "ssd"},
        node_terms=(
            NodeTerm(
                match_labels=(Requirement(key="a", operator="In", values=("b", "c")),),
            ),
        ),
        has_affinity=True,
        has_node_affinity=True,
        tolerations=(
            Toleration(key="k", operator="Exists", effect="NoExecute"),
            Toleration(),
        ),
        kube_node=KubeNode("node-1"),
        phase=Phase.FAILED,
        reason="Evicted",
        start_time=NOON,
        deadline_s=60,
        grace_s=90,
        restart_policy="Never",
        deletion_at=NOON,
        deletion_grace_s=45,
        sizes=Sizes(
            annotations=1,
            annotation_bytes=5,
            labels=1,
            label_bytes=4,
            affinity_terms=1,
            affinity_expressions=1,
            affinity_values=2,
            tolerations=2,
        ),
        containers=(Container(name="main"),),
        conditions=(Condition(type="Ready", status="False", reason="R", message="m"),),
    )


def test_the_demand_counts_containers_sidecars_overhead_and_extended_resources() -> None:
    gpu = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2"}}
    sidecar = {"requests": {"cpu": "250m"}}
    spec: Any = {
        "containers": [container(resources=gpu)],
        "initContainers": [
            container("sidecar", restartPolicy="Always", resources=sidecar),
            container("init", resources={"requests": {"memory": "2Gi"}}),
        ],
        "overhead": {"cpu": "250m"},
    }
    manifest = stored(pod("a", nodeName="n", **spec))

    expected = Demand(
        milli_cpu=1000,
        memory_bytes=2 * GIB,
        extended={"nvidia.com/gpu": 2},
    )
    assert expected == read_pod(manifest).demand
    assert expected == read_bound(manifest).demand


def test_pod_level_resources_replace_the_containers_sum() -> None:
    spec: Any = {
        "containers": [container(resources={"requests": {"cpu": "1"}})],
        "resources": {"requests": {"cpu": "3"}},
    }

    assert 3000 == read_pod(stored(pod("a", **spec))).demand.milli_cpu


def test_host_ports_are_those_of_containers_that_go_on_running() -> None:
    spec: Any = {
        "containers": [
            container(
                ports=[
                    {"containerPort": 80},
                    {"containerPort": 80, "hostPort": 8080, "protocol": "TCP"},
                    {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
                ]
            )
        ],
        "initContainers": [
            container("sidecar", restartPolicy="Always", ports=[{"hostPort": 1}]),
            container("init", ports=[{"hostPort": 2}]),
        ],
    }

    every = decode.ANY_IP
    ports = (("TCP", 1, every), ("TCP", 8080, every), ("UDP", 53, "10.0.0.1"))
    assert ports == read_pod(stored(pod("a", **spec))).host_ports
    assert ports == read_bound(stored(pod("a", **spec))).host_ports


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, Container(name="main"), id="nothing said"),
        pytest.param(
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}},
            Container(name="main", reason="ImagePullBackOff", message="no"),
            id="cannot start",
        ),
        pytest.param(
            {"state": {"running": {"startedAt": NEW}}},
            Container(name="main", state=ContainerState.RUNNING, started_before=True),
            id="runs",
        ),
        pytest.param(
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2},
            Container(name="main", reason="CrashLoopBackOff", started_before=True),
            id="waits to start again",
        ),
        pytest.param(
            {
                "state": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "startedAt": NEW,
                        "finishedAt": NEW,
                    }
                }
            },
            Container(
                name="main",
                state=ContainerState.TERMINATED,
                exit_code=137,
                reason="OOMKilled",
                started_before=True,
                finished_at=NOON,
            ),
            id="was killed",
        ),
        pytest.param(
            {"state": {"terminated": {"exitCode": 128, "signal": 9, "startedAt": None}}},
            Container(name="main", state=ContainerState.TERMINATED, exit_code=128, signal=9),
            id="never started",
        ),
    ],
)
def test_a_container_is_what_the_kubelet_last_said(status: Manifest, expected: Container) -> None:
    assert expected == container_of(status)


def test_init_containers_come_first_and_keep_their_own_states() -> None:
    """The status lists come in any order."""
    spec: Any = {
        "containers": [container("b"), container("a")],
        "initContainers": [container("init"), container("side", restartPolicy="Always")],
    }
    running = {"running": {"startedAt": NEW}}
    status = {
        "containerStatuses": [{"name": "a", "state": running}, {"name": "b", "state": {}}],
        "initContainerStatuses": [{"name": "side", "state": running}],
    }

    found = read_pod(stored(pod("p", **spec), status)).containers

    assert ["init", "side", "b", "a"] == [c.name for c in found]
    assert [False, True, False, False] == [c.restartable_init for c in found]
    assert [False, True, False, True] == [c.state is ContainerState.RUNNING for c in found]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, (False, False)),
        ({}, (True, False)),
        ({"podAffinity": {}}, (True, False)),
        ({"nodeAffinity": {}}, (True, True)),
    ],
)
def test_what_there_is_of_an_affinity_is_known(
    affinity: object, expected: tuple[bool, bool]
) -> None:
    found = read_pod(stored(pod("a", affinity=affinity)))

    assert expected == (found.has_affinity, found.has_node_affinity)
    assert () == found.node_terms


DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}


@pytest.mark.parametrize(
    ("metadata", "is_of_the_node"),
    [
        ({}, False),
        ({"ownerReferences": [{**DAEMON_SET, "controller": True}]}, True),
        ({"ownerReferences": [DAEMON_SET]}, False),
        ({"ownerReferences": [{**DAEMON_SET, "apiVersion": "x/v1", "controller": True}]}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "hash"}}, True),
    ],
)
def test_pods_that_come_with_the_node_are_known(metadata: Manifest, is_of_the_node: bool) -> None:
    found = read_bound(stored(pod("a", nodeName="n"), **metadata))

    assert is_of_the_node == found.is_of_the_node


@pytest.mark.parametrize(
    ("phase", "is_terminal"), [("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_bound_pods_that_have_ended_are_known(phase: str, is_terminal: bool) -> None:
    found = read_bound(stored(pod("a", nodeName="n"), {"phase": phase}, deletionTimestamp=NEW))

    assert (is_terminal, True, "n") == (found.is_terminal, found.is_deleting, found.kube_node)
