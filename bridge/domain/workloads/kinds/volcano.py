"""PodGroup of Volcano (scheduling.volcano.sh)."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import GetRule, KindRow, Membership
from slurmruntime.model.objects import KubeObject

ANNOTATION = "scheduling.k8s.io/group-name"
"""Volcano's job controller writes this key; its scheduler looks up no other."""
_API = "scheduling.volcano.sh/v1beta1"


class Volcano(pod_group.WithMinMember):
    """An annotation of the pod names the group.

    Queues, minimums per task and network topology are up to Volcano's scheduler.
    """

    row = KindRow(
        f"PodGroup of Volcano (annotation `{ANNOTATION}`)",
        "one gang per group and namespace",
        "at least `minMember`; all that exist when it starts",
    )
    reads = (GetRule("scheduling.volcano.sh", ("podgroups",)),)

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim a pod that has the annotation."""
        name = pod.annotations.get(ANNOTATION)
        return pod_group.declared(self, pod, name, _API) if name else None
