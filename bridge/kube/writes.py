"""Calls that change one object.

This layer is thin: what to write is decided and built elsewhere. A write returns the object as
written; pass it to `Cache.observe` with the version the decision was based on as `base`.
"""

from collections.abc import Mapping

import msgspec

from bridge.domain.admission.selftest import Marks
from bridge.domain.model.pods import Pod
from bridge.kube import decode, patches, wire
from bridge.kube.patches import JsonPatch, Patch
from slurmruntime.kube import errors, meta, node_objects, paths, resource
from slurmruntime.kube.client import JSON_PATCH, STRATEGIC_MERGE_PATCH, KubeClient
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.ids import KubeNode, PodUid


class _Metadata(meta.Struct):
    """The metadata of an object that is not stored: it has no resourceVersion."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: list[str] = msgspec.field(default_factory=list)


class _DryRunPod(meta.Struct):
    metadata: _Metadata
    spec: wire.PodSpec


_dry_run_pods = msgspec.json.Decoder(_DryRunPod)


async def dry_run_pod(client: KubeClient, namespace: str, body: Mapping[str, object]) -> Marks:
    """Create a pod as a dry run: admission runs, nothing is stored.

    Return what admission made of the pod. Raises KubeError if it would not be created.
    """
    path = paths.of("api", "v1", "namespaces", namespace, "pods")
    answer = await client.request("POST", path, body=body, params={"dryRun": "All"})
    admitted = resource.decoded(_dry_run_pods, "Pod", answer)
    return Marks(
        scheduler_name=admitted.spec.scheduler_name,
        gates=tuple(gate.name for gate in admitted.spec.scheduling_gates),
        finalizers=tuple(admitted.metadata.finalizers),
        labels=admitted.metadata.labels,
        annotations=admitted.metadata.annotations,
    )


async def patch_pod(client: KubeClient, pod: Pod, patch: Patch) -> Pod:
    """Apply a patch built for this pod and return the patched pod.

    Raises:
        Conflict: a guard of the patch failed: the pod has changed, or another one has its name.
        NotFound: the pod is gone.
    """
    return decode.pod(await _patch(client, paths.pod(pod.namespace, pod.name), patch))


async def release_pod(client: KubeClient, pod: Pod) -> Pod:
    """Remove our finalizer, wherever it is in the list now; succeed if it is already gone.

    Other controllers remove theirs at the same time (the Job controller's tracking), which moves ours.

    Raises:
        Conflict: the finalizers have changed twice in between.
        NotFound: the pod is gone.
    """
    try:
        return await patch_pod(client, pod, patches.release(pod))
    except errors.Conflict as conflict:
        current = await decode.get_pod(client, pod.namespace, pod.name)
        if current.uid != pod.uid:
            raise errors.NotFound(
                conflict.method, conflict.path, message=f"pod {pod.full_name} is another one now"
            ) from conflict
    if not current.has_our_finalizer:
        return current
    return await patch_pod(client, current, patches.release(current))


async def patch_pod_status(client: KubeClient, pod: Pod, patch: Patch) -> Pod:
    """Apply a patch built for this pod's status; like `patch_pod`."""
    return decode.pod(await _patch(client, f"{paths.pod(pod.namespace, pod.name)}/status", patch))


async def patch_node(client: KubeClient, node: KubeNodeFacts, patch: Patch) -> KubeNodeFacts:
    """Apply a patch built for this node and return the patched node; raises like `patch_pod`."""
    return node_objects.node(await _patch(client, paths.of("api", "v1", "nodes", node.name), patch))


async def patch_node_status(client: KubeClient, node: KubeNodeFacts, patch: Patch) -> KubeNodeFacts:
    """Apply a patch built for this node's status; like `patch_node`."""
    path = f"{paths.of('api', 'v1', 'nodes', node.name)}/status"
    return node_objects.node(await _patch(client, path, patch))


async def bind(
    client: KubeClient, *, namespace: str, name: str, uid: PodUid, kube_node: KubeNode
) -> None:
    """Bind a pod to a node, permanently. Idempotent: a pod already bound there is a success.

    Raises:
        AlreadyBound: the pod is bound to another node.
        Conflict: the pod is being deleted or is gated, or another pod has its name.
        NotFound: the pod is gone.
    """
    path = f"{paths.pod(namespace, name)}/binding"
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": kube_node},
    }
    try:
        await client.request("POST", path, body=binding)
    except errors.Conflict as conflict:
        pod = await decode.get_pod(client, namespace, name)
        if pod.uid != uid or pod.kube_node is None:
            raise
        if pod.kube_node != kube_node:
            raise errors.AlreadyBound(
                "POST",
                path,
                status=conflict.status,
                reason=conflict.reason,
                message=f"wanted node {kube_node}, but the pod is bound to {pod.kube_node}",
            ) from conflict


async def delete_pod(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    uid: PodUid,
    version: str = "",
    grace_s: int | None = None,
) -> None:
    """Delete exactly this pod; succeed if it is already gone.

    The pod exists until its grace period has passed and its finalizers are removed.

    Args:
        name: the pod's; another pod that now has this name is left alone.
        version: delete only at this resourceVersion; "" for any.
        grace_s: replaces the pod's own grace period; None keeps it.

    Raises:
        Conflict: the pod has changed since that version.
    """
    guard = {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
    options: dict[str, object] = {"preconditions": guard}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    try:
        await client.request("DELETE", paths.pod(namespace, name), body=options)
    except errors.NotFound:
        return
    except errors.Conflict:
        if version:
            raise
        return  # the only precondition is the uid, so another pod has the name now


async def _patch(client: KubeClient, path: str, patch: Patch) -> bytes:
    if isinstance(patch, JsonPatch):
        return await client.request("PATCH", path, body=patch.operations, content_type=JSON_PATCH)
    return await client.request("PATCH", path, body=patch.body, content_type=STRATEGIC_MERGE_PATCH)
