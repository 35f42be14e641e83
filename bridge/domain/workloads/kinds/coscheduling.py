"""PodGroup of the coscheduling plugin (scheduling.x-k8s.io)."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads.kinds import pod_group
from bridge.domain.workloads.membership import GetRule, KindRow, Membership
from slurmruntime.model.objects import KubeObject

LABEL = "scheduling.x-k8s.io/pod-group"
_API = "scheduling.x-k8s.io/v1alpha1"


class Coscheduling(pod_group.WithMinMember):
    """A label of the pod names the group."""

    row = KindRow(
        f"PodGroup of coscheduling (label `{LABEL}`)",
        "one gang per group and namespace",
        "at least `minMember`; all that exist when it starts",
    )
    reads = (GetRule("scheduling.x-k8s.io", ("podgroups",)),)

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim a pod that has the label."""
        name = pod.labels.get(LABEL)
        return pod_group.declared(self, pod, name, _API) if name else None
