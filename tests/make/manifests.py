"""Pods, nodes and placeholders as users, kubelets and slurmctld write them, for the peers in memory."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.domain.workloads import membership
from bridge.domain.workloads.kinds import label_group
from slurmruntime.kube.meta import rfc3339
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey
from tests.make.apiserver import Manifest
from tests.make.slurm import Job
from tests.virtual_time import EPOCH

CLUSTER = ClusterId("c")
RING = "pod-group/team-a/ring"
GATED: Manifest = {"schedulingGates": [{"name": names.GATE}]}


def pod(
    name: str,
    spec: Manifest,
    *,
    labels: dict[str, str] | None = None,
    notes: dict[str, str] | None = None,
    status: Manifest | None = None,
    is_deleting: bool = False,
) -> Manifest:
    ends = {"deletionTimestamp": rfc3339(EPOCH), "deletionGracePeriodSeconds": 0}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "creationTimestamp": rfc3339(EPOCH - timedelta(minutes=5)),
            "finalizers": [names.FINALIZER, "example.test/other"],
            "labels": labels or {},
            "annotations": notes or {},
            **(ends if is_deleting else {}),
        },
        "spec": {"containers": [{"name": "main"}], **spec},
        "status": status or {},
    }


def member(name: str, size: int) -> Manifest:
    notes = {names.POD_GROUP_SIZE_ANNOTATION: str(size)}
    return pod(name, GATED, labels={names.POD_GROUP_LABEL: "ring"}, notes=notes)


def placed(name: str, notes: dict[str, str] | None = None, *, state: str = "running") -> Manifest:
    """Placed by job 1, and bound."""
    annotations = {names.NODE_ANNOTATION: "k1", names.SLUID_ANNOTATION: f"s{1:013}"}
    exited = {"exitCode": 0 if state == "succeeded" else 1, "finishedAt": rfc3339(EPOCH)}
    is_over = state in ("failed", "succeeded", "lost")
    if state == "lost":
        exited, state = {**exited, "reason": "Unknown"}, "failed"
    container = {"name": "main", "state": {"terminated": exited} if is_over else {"running": {}}}
    status = {
        "phase": state.capitalize(),
        "startTime": rfc3339(EPOCH - timedelta(minutes=4)),
        "containerStatuses": [container],
    }
    return pod(
        name,
        {"nodeName": "k1"},
        status=status,
        labels={names.JOB_ID_LABEL: "1"},
        notes={**annotations, **(notes or {})},
    )


def in_ring(rank: int) -> dict[str, str]:
    return {
        names.WORKLOAD_ANNOTATION: RING,
        names.RANK_ANNOTATION: str(rank),
        names.WORLD_SIZE_ANNOTATION: "3",
    }


def job(number: int = 1, *pods: str, ring: bool = False, restores: str = "", **fields: Any) -> Job:
    pods = pods or ("one",)
    identity = Identity(
        cluster=CLUSTER,
        kind=label_group.KIND if ring else membership.POD,
        namespace="team-a",
        name="ring" if ring else pods[0],
        key=WorkloadKey(RING if ring else f"uid-{pods[0]}"),
        pods=tuple(PodUid(f"uid-{name}") for name in pods),
        restores=restores,
    )
    return Job(id=number, comment=identities.encode(identity), **fields)


def running(number: int = 1, *pods: str, **fields: Any) -> Job:
    return job(number, *pods, **{"state": "RUNNING", "nodes": "s1", **fields})


def kube_node(
    name: str = "k1",
    *,
    labels: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    is_ready: bool = True,
    cpus: int = 4,
    conditions: list[Manifest] | None = None,
    **spec: Any,
) -> Manifest:
    """A node that an administrator wants in Slurm."""
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": rfc3339(EPOCH - timedelta(minutes=5)),
            "labels": {names.EXTERNAL_NODE_LABEL: "true"} if labels is None else dict(labels),
            "annotations": dict(notes or {}),
        },
        "spec": spec,
        "status": {
            "conditions": [ready, *(conditions or [])],
            "allocatable": {"cpu": str(cpus), "memory": "4Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


_MOMENTS = (
    "resourceVersion",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "deletionTimestamp",
    "allocationTimestamp",
)


def told(document: Any) -> Any:
    """Leave out what differs from one run to the other."""
    if isinstance(document, list | tuple):
        return [told(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {key: told(value) for key, value in document.items() if key not in _MOMENTS}
