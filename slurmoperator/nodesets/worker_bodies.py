"""Completes the rendered pod of a worker with what its NodeSet needs to know it again: pure."""

from collections.abc import Mapping
from typing import Any, Final

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan.planning import NewWorker
from slurmoperator.objects.labels import (
    LOST_JOBS_ANNOTATION,
    PROTECTED_LABEL,
    WORKER_APP,
    selecting,
)
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import OnNode, WorkerKey, host_name, pod_name
from slurmoperator.rendering.body import owner_reference
from slurmoperator.rendering.node_sets.worker import return_to_node

_LONGEST_LABEL: Final = 63


def pod_body(
    node_set: NodeSetObject, worker: NewWorker, body: Mapping[str, Any], *, digest: str
) -> dict[str, Any]:
    """Return a worker's pod with this NodeSet's metadata for workers, whatever its template says."""
    meta, key = node_set.metadata, worker.key
    if worker.kube_node:
        body = return_to_node(body, worker.kube_node)
    template = body.get("metadata") or {}
    labels = {
        **(template.get("labels") or {}),
        **selecting(WORKER_APP, meta.name),
        names.DIGEST_LABEL: digest,
        **_worker_labels(node_set, key),
    }
    if node_set.spec.workload_disruption_protection:
        labels[PROTECTED_LABEL] = "true"
    metadata = {
        **template,
        "name": pod_name(node_set, key),
        "namespace": meta.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference("NodeSet", meta, blocks=True)],
    }
    marks = {names.KUBE_NODE_ANNOTATION: key.kube_node} if isinstance(key, OnNode) else {}
    marks |= {LOST_JOBS_ANNOTATION: worker.lost_jobs} if worker.lost_jobs else {}
    if marks:
        metadata["annotations"] = {**(template.get("annotations") or {}), **marks}
    return {"apiVersion": "v1", "kind": "Pod", **body, "metadata": metadata}


def _worker_labels(node_set: NodeSetObject, key: WorkerKey) -> dict[str, str]:
    """Return the labels by which others find a worker, without names too long for a label."""
    labels = {
        names.MODE_LABEL: node_set.spec.scaling_mode,
        names.POD_NAME_LABEL: pod_name(node_set, key),
        names.POD_HOST_LABEL: host_name(node_set, key),
    }
    if not isinstance(key, OnNode):
        labels[names.POD_INDEX_LABEL] = node_set.numbered(key)
    return {label: value for label, value in labels.items() if len(value) <= _LONGEST_LABEL}
