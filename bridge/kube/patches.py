"""Patches, built by pure functions of the object they are for.

Each one is guarded: it changes exactly that object or nothing. There are three kinds of guard, each
against a different kind of harm:

- *JSON patches* where the position matters (gates, finalizers, affinity, taints). They `test` the
  uid, that what they remove is still at its index, and that a map or list they create does not
  exist yet (`test` treats an absent path as null). Otherwise `add` would replace what someone else
  has put there in the meantime.
- *Strategic merge patches* with `metadata.uid` for conditions. Conditions merge by `type`, so a
  concurrent write of the kubelet is neither lost nor a conflict, as it would be with an index into
  the list.
- The same with `metadata.resourceVersion` for what cannot be undone (`end_pod`).

A failed guard raises `errors.Conflict`: read again, decide again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.lifecycle.actions import Cause, Place
from bridge.domain.model.pods import Phase, Pod
from slurmruntime.kube.meta import rfc3339
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.model.nodes import KubeNodeFacts, NodeCondition, Taint
from slurmruntime.values import names
from slurmruntime.values.faults import published
from slurmruntime.values.ids import JobId, KubeNode, Sluid


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A JSON patch, RFC 6902: all operations apply or none."""

    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A strategic merge patch, KEP-555: maps merge; lists merge if the API defines a key."""

    body: Mapping[str, object]


Patch = JsonPatch | MergePatch


def assign(
    pod: Pod,
    *,
    job_id: JobId,
    kube_node: KubeNode,
    sluid: Sluid | None,
    grant: str,
    place: Place | None = None,
    cpus: str = "",
) -> JsonPatch:
    """Pin a gated pod to its node, record job and node on it, and remove our gate.

    Args:
        sluid: its placeholder's; None is written as "" and replaces any earlier value.
        grant: what Slurm granted (`bridge.domain.model.grant`).
        place: the place of a member of a gang, for the downward API.
        cpus: the node's CPUs that Slurm gave it, for the node's agent; "" for none.

    Raises:
        ValueError: the pod does not have our gate.
    """
    gate = _gate(pod)
    labels = {names.JOB_ID_LABEL: str(job_id), names.BRIDGED_LABEL: "true"}
    notes = {
        names.NODE_ANNOTATION: str(kube_node),
        names.SLUID_ANNOTATION: sluid or "",
        names.GRANT_ANNOTATION: grant,
        **(notes_of(place) if place else {}),
        **({names.CPUS_ANNOTATION: cpus} if cpus else {}),
        **{key: text for key, text in names.AUTOSCALERS.items() if key not in pod.annotations},
    }
    return JsonPatch(
        [
            is_still(pod),
            json_patch.test(f"{gate}/name", names.GATE),
            *entries("labels", pod.labels, labels),
            *entries("annotations", pod.annotations, notes),
            *_pin(pod, kube_node),
            json_patch.remove(gate),
        ]
    )


def adopt(pod: Pod, *, job_id: JobId, sluid: Sluid | None) -> JsonPatch:
    """Record on a placed pod the placeholder that replaces its lost one.

    Also remove the operator's annotation that asked for it, and the lost one's CPUs. Guarded by the
    label and annotation that name the lost placeholder: an overtaken leader adopts nothing.
    """
    label, note, choice, cpus = (
        f"/metadata/{field}/{json_patch.escape(key)}"
        for field, key in (
            ("labels", names.JOB_ID_LABEL),
            ("annotations", names.SLUID_ANNOTATION),
            ("annotations", names.WHEN_LOST_ANNOTATION),
            ("annotations", names.CPUS_ANNOTATION),
        )
    )
    chosen = pod.annotations.get(names.WHEN_LOST_ANNOTATION)
    return JsonPatch(
        [
            is_still(pod),
            json_patch.test(label, pod.labels.get(names.JOB_ID_LABEL)),
            json_patch.test(note, pod.annotations.get(names.SLUID_ANNOTATION)),
            json_patch.add(label, str(job_id)),
            json_patch.add(note, sluid or ""),
            *(
                [json_patch.test(choice, chosen), json_patch.remove(choice)]
                if chosen is not None
                else []
            ),
            *([json_patch.remove(cpus)] if names.CPUS_ANNOTATION in pod.annotations else []),
        ]
    )


def notes_of(place: Place) -> Mapping[str, str]:
    """Return the annotations for the place of a member of a gang."""
    return {
        names.WORKLOAD_ANNOTATION: place.workload,
        names.RANK_ANNOTATION: str(place.rank),
        names.WORLD_SIZE_ANNOTATION: str(place.world_size),
        names.NODELIST_ANNOTATION: ",".join(place.nodelist),
    }


def release(pod: Pod) -> JsonPatch:
    """Remove our finalizer and keep the others; raise ValueError if the pod lacks it."""
    finalizer = f"/metadata/finalizers/{_index(pod, pod.finalizers, names.FINALIZER)}"
    return JsonPatch(
        [is_still(pod), json_patch.test(finalizer, names.FINALIZER), json_patch.remove(finalizer)]
    )


def label_job_id(pod: Pod, job_id: JobId) -> JsonPatch:
    """Label a gated pod with its placeholder's id.

    The label of a placed pod stays: it records the job the pod was placed by.

    Raises:
        ValueError: the pod does not have our gate.
    """
    return JsonPatch(
        [
            is_still(pod),
            json_patch.test(f"{_gate(pod)}/name", names.GATE),
            *entries("labels", pod.labels, {names.JOB_ID_LABEL: str(job_id)}),
        ]
    )


def pod_condition(
    pod: Pod, kind: str, *, holds: bool, reason: str, message: str, now: datetime
) -> MergePatch:
    """Set the pod's condition of that type (status).

    The merge takes `now` as its transition time only if its status changes.
    """
    status = "True" if holds else "False"
    return _conditions(pod, _condition(pod, kind, status, reason, message, now=now))


def evicted(
    pod: Pod, cause: Cause, message: str, now: datetime, *, if_unchanged: bool = False
) -> MergePatch:
    """Record why the pod is evicted (status); its DELETE follows.

    DisruptionTarget is set if the pod is not at fault. Otherwise only our own condition is set,
    which no podFailurePolicy takes for a disruption. The kubelet leaves both conditions alone.

    Args:
        message: for people.
        if_unchanged: apply only to exactly the version the decision was based on.
    """
    guard: dict[str, str] = {"uid": pod.uid}
    if if_unchanged:
        guard["resourceVersion"] = pod.resource_version
    conditions = _why_it_ends(pod, names.ALLOCATED_CONDITION, cause, message, now)
    return MergePatch({"metadata": guard, "status": {"conditions": conditions}})


def excused(pod: Pod, cause: Cause, message: str, now: datetime) -> MergePatch:
    """Set DisruptionTarget on a pod that has failed for no fault of its own (status)."""
    return _conditions(pod, _disrupted(pod, cause, message, now))


def fail(pod: Pod) -> JsonPatch:
    """Make the pod end as failed even if it exits 0 on SIGTERM; its DELETE follows.

    The kubelet marks a pod Failed with reason DeadlineExceeded once its `activeDeadlineSeconds`
    have passed, whatever its containers report (pkg/kubelet/active_deadline.go; the status of a
    terminating pod consults it too). The field may be set or lowered.
    """
    return JsonPatch([is_still(pod), json_patch.add("/spec/activeDeadlineSeconds", 1)])


def end_pod(pod: Pod, cause: Cause, message: str, now: datetime) -> MergePatch:
    """Fail a pod that never got a node (status); set DisruptionTarget unless the pod is at fault.

    This cannot be undone, so it applies only to exactly the version it was decided on. The
    condition PodScheduled gets the cause too: while it is SchedulingGated, `kubectl get` shows that
    instead.
    """
    return MergePatch(
        {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {
                "phase": Phase.FAILED.value,
                "reason": cause.value,
                "message": published(message),
                "conditions": _why_it_ends(pod, names.POD_SCHEDULED, cause, message, now),
            },
        }
    )


def taint(node: KubeNodeFacts, wanted: Taint) -> JsonPatch:
    """Add a taint to a node, or change the value of the one with the same key and effect."""
    new = {"key": wanted.key, "value": wanted.value, "effect": wanted.effect}
    if not node.taints:
        return JsonPatch([is_still(node), *json_patch.create("/spec/taints", [new])])
    for index, old in enumerate(node.taints):
        if (old.key, old.effect) == (wanted.key, wanted.effect):
            return JsonPatch(
                [
                    is_still(node),
                    *_taint_is(index, old),
                    json_patch.replace(f"/spec/taints/{index}", new),
                ]
            )
    return JsonPatch([is_still(node), json_patch.add("/spec/taints/-", new)])


def untaint(node: KubeNodeFacts, key: str) -> JsonPatch:
    """Remove every taint with this key from a node, whatever its effect; there may be none."""
    operations = [is_still(node)]
    for index, old in reversed(list(enumerate(node.taints))):
        if old.key == key:
            operations += [*_taint_is(index, old), json_patch.remove(f"/spec/taints/{index}")]
    return JsonPatch(operations)


def cordon(node: KubeNodeFacts, why: str) -> JsonPatch:
    """Cordon an uncordoned node and annotate the cordon as ours."""
    return JsonPatch(
        [
            is_still(node),
            *json_patch.create("/spec/unschedulable", value=True),
            *entries("annotations", node.annotations, {names.CORDON_ANNOTATION: why}),
        ]
    )


def uncordon(node: KubeNodeFacts) -> JsonPatch:
    """Remove our annotation and the cordon, if it is still set; without the annotation it is not ours."""
    if names.CORDON_ANNOTATION not in node.annotations:
        return JsonPatch([is_still(node)])
    mark = f"/metadata/annotations/{json_patch.escape(names.CORDON_ANNOTATION)}"
    operations = [
        is_still(node),
        json_patch.test(mark, node.annotations[names.CORDON_ANNOTATION]),
        json_patch.remove(mark),
    ]
    if node.is_unschedulable:
        operations += [
            json_patch.test("/spec/unschedulable", value=True),
            json_patch.remove("/spec/unschedulable"),
        ]
    return JsonPatch(operations)


def node_condition(node: KubeNodeFacts, wanted: NodeCondition, now: datetime) -> MergePatch:
    """Set a condition on a node (status) and keep the kubelet's own conditions."""
    condition = _condition(node, wanted.type, wanted.status, wanted.reason, wanted.message, now=now)
    return _conditions(node, {**condition, "lastHeartbeatTime": rfc3339(now)})


def remove_node_condition(node: KubeNodeFacts, kind: str) -> MergePatch:
    """Remove a condition from a node (status)."""
    return _conditions(node, {"$patch": "delete", "type": kind})


def _pin(pod: Pod, kube_node: KubeNode) -> list[Operation]:
    """Restrict the pod to this node; nothing if it has node terms of its own.

    kube-scheduler recognises `matchFields` on metadata.name as "one node only", and considers no
    other. Without it, it asks the extender about all suitable nodes, and the annotation decides: the pin
    saves time and protects nothing. Users' own terms stay as they wrote them: if we narrowed one, the
    API server would refuse their next `kubectl apply` of the same manifest.
    """
    if pod.node_terms:
        return []
    pin: Operation = {"key": "metadata.name", "operator": "In", "values": [kube_node]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if not pod.has_affinity:
        return json_patch.create("/spec/affinity", {"nodeAffinity": affinity})
    if not pod.has_node_affinity:
        return json_patch.create("/spec/affinity/nodeAffinity", affinity)
    path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    return json_patch.create(path, required)


def _conditions(target: Pod | KubeNodeFacts, *conditions: Operation) -> MergePatch:
    return MergePatch({"metadata": {"uid": target.uid}, "status": {"conditions": conditions}})


def _why_it_ends(pod: Pod, kind: str, cause: Cause, message: str, now: datetime) -> list[Operation]:
    ends = _condition(pod, kind, "False", cause.value, message, now=now)
    return [ends, _disrupted(pod, cause, message, now)] if cause.is_disruption else [ends]


def _disrupted(pod: Pod, cause: Cause, message: str, now: datetime) -> Operation:
    return _condition(pod, names.DISRUPTION_TARGET, "True", cause.value, message, now=now)


def _condition(
    target: Pod | KubeNodeFacts, kind: str, status: str, reason: str, message: str, *, now: datetime
) -> dict[str, object]:
    """Build a condition; if its status is unchanged, the merge keeps the old transition time."""
    condition: dict[str, object] = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": published(message),
    }
    old = target.condition(kind)
    if old is None or old.status != status:
        condition["lastTransitionTime"] = rfc3339(now)
    return condition


def entries(field: str, entries: Mapping[str, str], wanted: Mapping[str, str]) -> list[Operation]:
    """Set entries of `metadata.labels` or `metadata.annotations`, which are absent if empty."""
    if not entries:
        return json_patch.create(f"/metadata/{field}", dict(wanted))
    return [
        json_patch.add(f"/metadata/{field}/{json_patch.escape(key)}", text)
        for key, text in wanted.items()
    ]


def is_still(target: Pod | KubeNodeFacts) -> Operation:
    """Guard a patch: it fails if another object has the name now."""
    return json_patch.test("/metadata/uid", target.uid)


def _taint_is(index: int, old: Taint) -> list[Operation]:
    return [
        json_patch.test(f"/spec/taints/{index}/key", old.key),
        json_patch.test(f"/spec/taints/{index}/effect", old.effect),
    ]


def _gate(pod: Pod) -> str:
    return f"/spec/schedulingGates/{_index(pod, pod.gates, names.GATE)}"


def _index(pod: Pod, entries: Sequence[str], wanted: str) -> int:
    if wanted not in entries:
        raise ValueError(f"pod {pod.full_name} has no {wanted}: there is nothing to remove")
    return entries.index(wanted)
