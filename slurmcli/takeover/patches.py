"""Patches that `take-over` applies to pods, guarded like those of `bridge.kube.patches`."""

from bridge.domain.lifecycle.actions import Place
from bridge.domain.model.pods import Pod
from bridge.kube import patches
from bridge.kube.patches import JsonPatch
from slurmruntime.model import json_patch
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, Sluid


def placed(
    pod: Pod, *, kube_node: KubeNode, sluid: Sluid | None, grant: str, place: Place | None
) -> JsonPatch:
    """Write on a placed pod what we write at the pin; our finalizer replaces SchedMD's.

    Guarded by the label that names the job. A pod that is being deleted can gain a finalizer only by such a swap.
    """
    label = f"/metadata/labels/{json_patch.escape(names.JOB_ID_LABEL)}"
    bridged = f"/metadata/labels/{json_patch.escape(names.BRIDGED_LABEL)}"
    notes = {
        names.NODE_ANNOTATION: str(kube_node),
        names.SLUID_ANNOTATION: sluid or "",
        names.GRANT_ANNOTATION: grant,
        **(patches.notes_of(place) if place else {}),
    }
    return JsonPatch(
        [
            patches.is_still(pod),
            json_patch.test(label, pod.labels.get(names.JOB_ID_LABEL)),
            json_patch.add(bridged, "true"),
            *patches.entries("annotations", pod.annotations, notes),
            *_with_our_finalizer(pod),
        ]
    )


def remove_their_finalizer(pod: Pod) -> JsonPatch:
    """Remove the finalizer of SchedMD's bridge."""
    theirs = _path_of_theirs(pod)
    return JsonPatch(
        [
            patches.is_still(pod),
            json_patch.test(theirs, names.SCHEDMDS_FINALIZER),
            json_patch.remove(theirs),
        ]
    )


def _with_our_finalizer(pod: Pod) -> list[Operation]:
    if pod.has_our_finalizer:
        return []
    if names.SCHEDMDS_FINALIZER in pod.finalizers:
        theirs = _path_of_theirs(pod)
        return [
            json_patch.test(theirs, names.SCHEDMDS_FINALIZER),
            json_patch.replace(theirs, names.FINALIZER),
        ]
    if pod.finalizers:
        return [json_patch.add("/metadata/finalizers/-", names.FINALIZER)]
    return json_patch.create("/metadata/finalizers", [names.FINALIZER])


def _path_of_theirs(pod: Pod) -> str:
    return f"/metadata/finalizers/{pod.finalizers.index(names.SCHEDMDS_FINALIZER)}"
