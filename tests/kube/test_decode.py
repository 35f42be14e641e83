"""What is read out of the API server's JSON. `test_watch` and `test_patches` read the real one's; here stands each rule."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain import names, numbers
from bridge.domain.caps import Sizes
from bridge.domain.ids import KubeNode, PodUid
from bridge.domain.model.demand import Demand
from bridge.domain.model.pods import (
    BoundPod,
    Condition,
    Container,
    ContainerState,
    NodeTerm,
    Owner,
    Phase,
    Pod,
    Requirement,
    Toleration,
)
from bridge.kube import decode, errors
from bridge.kube.decode import Change
from tests.kube.manifests import Manifest, container, expression, pod, required

NEW = "2026-01-01T12:00:00Z"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIB = 2**30


def stored(manifest: Manifest, status: Manifest | None = None, **metadata: object) -> Manifest:
    """As the API server returns it."""
    assigned = {
        "namespace": "ns",
        "uid": "u-1",
        "resourceVersion": "7",
        "creationTimestamp": NEW,
        "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
    }
    return {
        **manifest,
        "metadata": {**manifest["metadata"], **assigned, **metadata},
        "status": {"phase": "Pending", **(status or {})},
    }


def read_pod(manifest: Manifest) -> Pod:
    return decode.pod(json.dumps(manifest).encode())


def read_bound(manifest: Manifest) -> BoundPod:
    return decode.bound_pod(json.dumps(manifest).encode())


def container_of(status: Manifest) -> Container:
    """The main container with this `containerStatuses[0]`."""
    reported = {"containerStatuses": [{"name": "main", "ready": False, **status}]}
    return read_pod(stored(pod("a"), reported)).containers[0]


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
        cpus=1,
        memory_mib=2048,
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
    assert [True, True, False, False] == [c.init for c in found]
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


def broken(path: list[str | int], value: object) -> Manifest:
    manifest = stored(pod("a", nodeName="n", containers=[container(ports=[{}], resources={})]))
    place: Any = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return manifest


@pytest.mark.parametrize("read", [read_pod, read_bound])
@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (["spec", "containers", 0, "ports"], [{"hostPort": "x"}], "$.spec.containers[0].ports[0]"),
        (["status", "phase"], "Odd", "$.status.phase"),
        (["metadata", "labels"], [], "$.metadata.labels"),
        (["metadata", "creationTimestamp"], "yesterday", "$.metadata.creationTimestamp"),
        (
            ["spec", "containers", 0, "resources"],
            {"requests": {"cpu": "many"}},
            "expected a Kubernetes quantity",
        ),
    ],
)
def test_what_breaks_the_schema_is_named(
    read: Callable[[Manifest], object], path: list[str | int], value: object, complaint: str
) -> None:
    with pytest.raises(errors.Malformed) as refusal:
        read(broken(path, value))

    assert "Pod ns/a: Malformed: " in str(refusal.value)
    assert complaint in str(refusal.value)


DEEP = b'{"metadata":{"name":"a"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
"""Within the limits of a body, but no object of Kubernetes nests like that."""


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"kind":"Pod"}', b'{"metadata":1}', DEEP]
)
def test_what_is_no_object_at_all_is_malformed(body: bytes) -> None:
    for read in (decode.pod, decode.bound_pod, decode.node, decode.kube_object):
        with pytest.raises(errors.Malformed):
            read(body)


def test_a_watch_event_is_split_and_an_unknown_type_refused() -> None:
    change, body = decode.event("/pods", b'{"type":"ADDED","object":{"a":1}}')

    assert (Change.ADDED, b'{"a":1}') == (change, bytes(body))
    with pytest.raises(errors.Malformed, match="RENAMED"):
        decode.event("/pods", b'{"type":"RENAMED","object":{}}')


@pytest.mark.parametrize("grace_s", [10**12, 2**62, -1, -(2**63)])
def test_a_grace_that_no_span_of_time_can_be_is_clamped_and_told(grace_s: int) -> None:
    odd = read_pod(
        stored(
            pod("odd", terminationGracePeriodSeconds=grace_s),
            deletionTimestamp="2149-01-01T00:00:00Z",
            deletionGracePeriodSeconds=grace_s,
        )
    )

    assert {odd.grace_s, odd.deletion_grace_s} <= {0, numbers.LONGEST_S}
    assert odd.deletion_requested_at is not None
    assert odd.created_at <= odd.deletion_requested_at
    assert [
        "spec.terminationGracePeriodSeconds",
        "metadata.deletionGracePeriodSeconds",
    ] == [fault.path for fault in odd.oddities]
    assert all(f"found {grace_s}" in fault.message for fault in odd.oddities)


def test_a_rank_of_5000_digits_is_none_and_told() -> None:
    odd = read_pod(stored(pod("odd", annotations={names.RANK_ANNOTATION: "9" * 5000})))

    assert odd.rank is None
    assert [f"metadata.annotations[{names.RANK_ANNOTATION}]"] == [f.path for f in odd.oddities]
    assert all(len(fault.text) < 300 for fault in odd.oddities)


def test_nothing_is_odd_about_an_ordinary_pod() -> None:
    assert () == read_pod(stored(pod("plain"))).oddities
