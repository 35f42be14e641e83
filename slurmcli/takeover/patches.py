"""Patches that `take-over` applies to pods, guarded like those of `bridge.kube.patches`."""

from bridge.domain.lifecycle.actions import Place
from bridge.domain.model.pods import Pod
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
    }
    if place is not None:
        notes |= {
            names.WORKLOAD_ANNOTATION: place.workload,
            names.RANK_ANNOTATION: str(place.rank),
            names.WORLD_SIZE_ANNOTATION: str(place.world_size),
            names.NODELIST_ANNOTATION: ",".join(place.nodelist),
        }
    return JsonPatch(
        [
            _is_still(pod),
            json_patch.test(label, pod.labels.get(names.JOB_ID_LABEL)),
            json_patch.add(bridged, "true"),
            *([] if pod.annotations else json_patch.create("/metadata/annotations", {})),
            *(
                json_patch.add(f"/metadata/annotations/{json_patch.escape(key)}", text)
                for key, text in notes.items()
            ),
            *_with_our_finalizer(pod),
        ]
    )


def remove_their_finalizer(pod: Pod) -> JsonPatch:
    """Remove the finalizer of SchedMD's bridge."""
    return JsonPatch([_is_still(pod), *_theirs(pod), json_patch.remove(_path_of_theirs(pod))])


def _with_our_finalizer(pod: Pod) -> list[Operation]:
    if pod.has_our_finalizer:
        return []
    if names.SCHEDMDS_FINALIZER in pod.finalizers:
        return [*_theirs(pod), json_patch.replace(_path_of_theirs(pod), names.FINALIZER)]
    if pod.finalizers:
        return [json_patch.add("/metadata/finalizers/-", names.FINALIZER)]
    return json_patch.create("/metadata/finalizers", [names.FINALIZER])


def _theirs(pod: Pod) -> list[Operation]:
    return [json_patch.test(_path_of_theirs(pod), names.SCHEDMDS_FINALIZER)]


def _path_of_theirs(pod: Pod) -> str:
    return f"/metadata/finalizers/{pod.finalizers.index(names.SCHEDMDS_FINALIZER)}"


def _is_still(pod: Pod) -> Operation:
    return json_patch.test("/metadata/uid", pod.uid)
