"""Kueue's groups of plain pods (kueue.x-k8s.io)."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.kinds import label_group
from bridge.domain.workloads.membership import KindRow, Membership, Size
from slurmruntime.model.objects import KubeObject

KIND = "KueuePodGroup"
LABEL = "kueue.x-k8s.io/pod-group-name"
SIZE = "kueue.x-k8s.io/pod-group-total-count"
_SERVING = "kueue.x-k8s.io/pod-group-serving"
"""On the pods of StatefulSets and LeaderWorkerSets, which Kueue groups for their quota: they may be
created one after another."""


class Kueue:
    """The pods name the group and its size, in Kueue's own keys."""

    row = KindRow(
        "Kueue's plain pod groups",
        "one gang; waits while any gate but ours is on; pods of StatefulSets and LeaderWorkerSets, "
        "which Kueue groups for their quota only, are treated as without it",
        f"`{SIZE}`",
    )

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim a pod that Kueue groups for more than its quota."""
        name = pod.labels.get(LABEL)
        if not name or pod.annotations.get(_SERVING) == "true":
            return None
        return label_group.named(self, KIND, pod, name)

    def size(
        self, _member: Membership, pods: Sequence[Pod], _declared: KubeObject | None, /
    ) -> Size:
        """Return the size that all pods name."""
        return counting.annotated(pods, SIZE)
