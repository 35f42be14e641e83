"""Patches, as pure functions of the object they were made for. Each carries a guard: it changes that object or nothing.

Three kinds of guard, for three kinds of harm:

- *JSON patches* where the position matters (gates, finalizers, affinity, taints). They `test` the uid, that what is
  removed still stands at its index, and that a map or list they create is not there yet: for `test`, an absent path is
  null. Otherwise `add` would replace what somebody else put there in the meantime.
- *Strategic merge patches* with `metadata.uid` for conditions: these merge by `type`, so a write of the kubelet's in
  between is neither lost nor in the way, as it would be for an index into the list.
- The same with `metadata.resourceVersion` for what cannot be taken back (`end_pod`).

A guard that does not hold is `errors.Conflict`: look again, decide again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bridge.domain import names
from bridge.domain.faults import shortened
from bridge.domain.ids import JobId, KubeNode, Sluid
from bridge.domain.lifecycle.actions import Cause, Place
from bridge.domain.model.nodes import KubeNodeFacts, NodeCondition, Taint
from bridge.domain.model.pods import NodeTerm, Phase, Pod
from bridge.kube.times import rfc3339

Operation = dict[str, object]
"""One of RFC 6902."""

DISRUPTION_TARGET = "DisruptionTarget"
"""The pod condition that a Job's podFailurePolicy looks for, KEP-3329."""

POD_SCHEDULED = "PodScheduled"


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902: all operations or none."""

    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A strategic merge patch, KEP-555: maps merge, lists merge where the API defines a key."""

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
) -> JsonPatch:
    """Pin a gated pod to its node, write job and node down, and remove our gate.

    Args:
        pod: which.
        job_id: of its placeholder.
        kube_node: where it goes.
        sluid: of its placeholder; None is written as "", over whatever may stand there.
        grant: what Slurm granted (`bridge.domain.model.grant`).
        place: of a member of a gang, for the downward API.

    Raises:
        ValueError: our gate is not on.
    """
    gate = _gate(pod)
    notes = {
        names.NODE_ANNOTATION: str(kube_node),
        names.SLUID_ANNOTATION: sluid or "",
        names.GRANT_ANNOTATION: grant,
        **(_place(place) if place else {}),
    }
    return JsonPatch(
        [
            _is_still(pod),
            _test(f"{gate}/name", names.GATE),
            *_entries("labels", pod.labels, {names.JOB_ID_LABEL: str(job_id)}),
            *_entries("annotations", pod.annotations, notes),
            *_pin(pod, kube_node),
            _remove(gate),
        ]
    )


def adopt(pod: Pod, *, job_id: JobId, sluid: Sluid | None) -> JsonPatch:
    """Write the placeholder that stands in for the lost one on a placed pod; the operator's word has been heard by then.

    Guarded by what named the lost one: a leader that was overtaken adopts nothing.
    """
    label, note, word = (
        f"/metadata/{field}/{_escape(key)}"
        for field, key in (
            ("labels", names.JOB_ID_LABEL),
            ("annotations", names.SLUID_ANNOTATION),
            ("annotations", names.WHEN_LOST_ANNOTATION),
        )
    )
    said = pod.annotations.get(names.WHEN_LOST_ANNOTATION)
    return JsonPatch(
        [
            _is_still(pod),
            _test(label, pod.labels.get(names.JOB_ID_LABEL)),
            _test(note, pod.annotations.get(names.SLUID_ANNOTATION)),
            _add(label, str(job_id)),
            _add(note, sluid or ""),
            *([_test(word, said), _remove(word)] if said is not None else []),
        ]
    )


def _place(place: Place) -> Mapping[str, str]:
    return {
        names.WORKLOAD_ANNOTATION: place.workload,
        names.RANK_ANNOTATION: str(place.rank),
        names.WORLD_SIZE_ANNOTATION: str(place.world_size),
        names.NODELIST_ANNOTATION: ",".join(place.nodelist),
    }


def release(pod: Pod) -> JsonPatch:
    """Remove our finalizer from among the others.

    Raises:
        ValueError: it is not there.
    """
    finalizer = f"/metadata/finalizers/{_index(pod, pod.finalizers, names.FINALIZER)}"
    return JsonPatch([_is_still(pod), _test(finalizer, names.FINALIZER), _remove(finalizer)])


def label_job_id(pod: Pod, job_id: JobId) -> JsonPatch:
    """Label a gated pod with its placeholder's id. A placed pod's label says what it was placed by, and stays.

    Raises:
        ValueError: our gate is not on.
    """
    return JsonPatch(
        [
            _is_still(pod),
            _test(f"{_gate(pod)}/name", names.GATE),
            *_entries("labels", pod.labels, {names.JOB_ID_LABEL: str(job_id)}),
        ]
    )


def allocated_condition(
    pod: Pod, *, is_allocated: bool, reason: str, message: str, now: datetime
) -> MergePatch:
    """Say on the pod what Slurm thinks of it (status).

    Args:
        pod: which.
        is_allocated: the condition's status.
        reason: CamelCase.
        message: for people.
        now: when the condition came to this status, if it is not there already.
    """
    status = "True" if is_allocated else "False"
    allocated = _condition(
        pod, names.ALLOCATED_CONDITION, status, reason=reason, message=message, now=now
    )
    return MergePatch({"metadata": {"uid": pod.uid}, "status": {"conditions": [allocated]}})


def evicted(
    pod: Pod, cause: Cause, message: str, now: datetime, *, if_unchanged: bool = False
) -> MergePatch:
    """Say why the pod has to go (status); its DELETE comes next.

    Through no fault of its own: DisruptionTarget. Else our own condition says it, which no podFailurePolicy takes for
    a disruption; the kubelet leaves both alone.

    Args:
        pod: which.
        cause: why.
        message: for people.
        now: when it came to that.
        if_unchanged: only for exactly the version it was decided on.
    """
    guard: dict[str, str] = {"uid": pod.uid}
    if if_unchanged:
        guard["resourceVersion"] = pod.resource_version
    conditions = [
        _condition(
            pod, names.ALLOCATED_CONDITION, "False", reason=cause.value, message=message, now=now
        )
    ]
    if cause.is_disruption:
        conditions.append(_disrupted(pod, cause, message, now))
    return MergePatch({"metadata": guard, "status": {"conditions": conditions}})


def fail(pod: Pod) -> JsonPatch:
    """Let the pod's end count as a failure even if it answers SIGTERM with exit code 0; its DELETE comes next.

    A kubelet calls a pod Failed, DeadlineExceeded, whose `activeDeadlineSeconds` are over, whatever its containers say
    (pkg/kubelet/active_deadline.go; the status of a terminating pod asks it too). The field may be set or lowered.
    """
    return JsonPatch([_is_still(pod), _add("/spec/activeDeadlineSeconds", 1)])


def end_pod(pod: Pod, cause: Cause, message: str, now: datetime) -> MergePatch:
    """End a pod that never got a node (status): phase Failed, and DisruptionTarget unless it is the pod's own doing.

    It cannot be taken back, so it holds for exactly the version it was decided on. The condition PodScheduled gets the
    cause too: as long as it says SchedulingGated, that is what `kubectl get` shows.
    """
    conditions = [
        _condition(pod, POD_SCHEDULED, "False", reason=cause.value, message=message, now=now)
    ]
    if cause.is_disruption:
        conditions.append(_disrupted(pod, cause, message, now))
    return MergePatch(
        {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {
                "phase": Phase.FAILED.value,
                "reason": cause.value,
                "message": shortened(message),
                "conditions": conditions,
            },
        }
    )


def taint(node: KubeNodeFacts, wanted: Taint) -> JsonPatch:
    """Put a taint on a node; of one with that key and effect only the value changes."""
    new = {"key": wanted.key, "value": wanted.value, "effect": wanted.effect}
    if not node.taints:
        return JsonPatch([_is_still(node), *_create("/spec/taints", [new])])
    for index, old in enumerate(node.taints):
        if (old.key, old.effect) == (wanted.key, wanted.effect):
            return JsonPatch(
                [_is_still(node), *_taint_is(index, old), _replace(f"/spec/taints/{index}", new)]
            )
    return JsonPatch([_is_still(node), _add("/spec/taints/-", new)])


def untaint(node: KubeNodeFacts, key: str) -> JsonPatch:
    """Take every taint of that key off a node, whatever its effect; nothing happens where there is none."""
    operations = [_is_still(node)]
    for index, old in reversed(list(enumerate(node.taints))):
        if old.key == key:
            operations += [*_taint_is(index, old), _remove(f"/spec/taints/{index}")]
    return JsonPatch(operations)


def cordon(node: KubeNodeFacts, why: str) -> JsonPatch:
    """Cordon a node that nobody has cordoned, and say beside it that the cordon is ours."""
    return JsonPatch(
        [
            _is_still(node),
            *_create("/spec/unschedulable", value=True),
            *_entries("annotations", node.annotations, {names.CORDON_ANNOTATION: why}),
        ]
    )


def uncordon(node: KubeNodeFacts) -> JsonPatch:
    """Take our mark off a node, and with it the cordon if that still is there; a cordon without the mark is not ours."""
    if names.CORDON_ANNOTATION not in node.annotations:
        return JsonPatch([_is_still(node)])
    mark = f"/metadata/annotations/{_escape(names.CORDON_ANNOTATION)}"
    operations = [
        _is_still(node),
        _test(mark, node.annotations[names.CORDON_ANNOTATION]),
        _remove(mark),
    ]
    if node.is_unschedulable:
        operations += [_test("/spec/unschedulable", value=True), _remove("/spec/unschedulable")]
    return JsonPatch(operations)


def node_condition(node: KubeNodeFacts, wanted: NodeCondition, now: datetime) -> MergePatch:
    """Say on a node what it is in Slurm (status); the kubelet's own conditions stay."""
    condition: Operation = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": shortened(wanted.message),
        "lastHeartbeatTime": rfc3339(now),
    }
    old = node.condition(wanted.type)
    if old is None or old.status != wanted.status:
        condition["lastTransitionTime"] = rfc3339(now)
    return MergePatch({"metadata": {"uid": node.uid}, "status": {"conditions": [condition]}})


def remove_node_condition(node: KubeNodeFacts, kind: str) -> MergePatch:
    """Take a condition away again (status)."""
    removal = {"$patch": "delete", "type": kind}
    return MergePatch({"metadata": {"uid": node.uid}, "status": {"conditions": [removal]}})


def _pin(pod: Pod, kube_node: KubeNode) -> list[Operation]:
    """Allow no node but this one, and keep every word the user wrote.

    `matchFields` on metadata.name is what kube-scheduler recognises as "one node only". While a pod is gated the API
    server lets its terms be extended but not replaced (KEP-3838). Terms are alternatives, so each is narrowed; an empty
    one matches no node and must stay so.
    """
    pin: Operation = {"key": "metadata.name", "operator": "In", "values": [kube_node]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if not pod.has_affinity:
        return _create("/spec/affinity", {"nodeAffinity": affinity})
    if not pod.has_node_affinity:
        return _create("/spec/affinity/nodeAffinity", affinity)
    path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    if not pod.node_terms:
        return _create(path, required)
    return [
        operation
        for index, term in enumerate(pod.node_terms)
        for operation in _narrow(f"{path}/nodeSelectorTerms/{index}/matchFields", term, pin)
    ]


def _narrow(path: str, term: NodeTerm, pin: Operation) -> list[Operation]:
    if term.match_fields:
        return [_add(f"{path}/-", pin)]
    return _create(path, [pin]) if term.match_labels else []


def _disrupted(pod: Pod, cause: Cause, message: str, now: datetime) -> Operation:
    return _condition(pod, DISRUPTION_TARGET, "True", reason=cause.value, message=message, now=now)


def _condition(
    pod: Pod, kind: str, status: str, *, reason: str, message: str, now: datetime
) -> Operation:
    """Without `lastTransitionTime` where the status stays: the merge leaves the old one in place."""
    said = shortened(message)
    condition: Operation = {"type": kind, "status": status, "reason": reason, "message": said}
    old = pod.condition(kind)
    if old is None or old.status != status:
        condition["lastTransitionTime"] = rfc3339(now)
    return condition


def _entries(field: str, entries: Mapping[str, str], wanted: Mapping[str, str]) -> list[Operation]:
    """Set entries of `metadata.labels` or `metadata.annotations`, which are absent while empty."""
    if not entries:
        return _create(f"/metadata/{field}", dict(wanted))
    return [_add(f"/metadata/{field}/{_escape(key)}", text) for key, text in wanted.items()]


def _is_still(found: Pod | KubeNodeFacts) -> Operation:
    return _test("/metadata/uid", found.uid)


def _taint_is(index: int, old: Taint) -> list[Operation]:
    return [
        _test(f"/spec/taints/{index}/key", old.key),
        _test(f"/spec/taints/{index}/effect", old.effect),
    ]


def _create(path: str, value: object) -> list[Operation]:
    return [_test(path, None), _add(path, value)]


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _replace(path: str, value: object) -> Operation:
    return {"op": "replace", "path": path, "value": value}


def _remove(path: str) -> Operation:
    return {"op": "remove", "path": path}


def _escape(key: str) -> str:
    """Quote a key for a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _gate(pod: Pod) -> str:
    return f"/spec/schedulingGates/{_index(pod, pod.gates, names.GATE)}"


def _index(pod: Pod, entries: Sequence[str], wanted: str) -> int:
    if wanted not in entries:
        raise ValueError(f"pod {pod.full_name} carries no {wanted}: there is nothing to remove")
    return entries.index(wanted)
