"""Pods with our own label: a gang without any controller or custom resource."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.membership import Kind, KindRow, Membership, Size
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey

KIND = "pod-group"


class LabelGroup:
    """The pods name the group and its size."""

    row = KindRow(
        f"label `{names.POD_GROUP_LABEL}` and annotation `{names.POD_GROUP_SIZE_ANNOTATION}` "
        "on the pods",
        "one gang per value and namespace; needs no controller and no CRD",
        "the annotation",
    )

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim a pod that has the label."""
        name = pod.labels.get(names.POD_GROUP_LABEL)
        return named(self, KIND, pod, name) if name else None

    def size(
        self, _member: Membership, pods: Sequence[Pod], _declared: KubeObject | None, /
    ) -> Size:
        """Return the size that all pods name."""
        return counting.annotated(pods, names.POD_GROUP_SIZE_ANNOTATION)


def named(by: Kind, kind: str, pod: Pod, name: str) -> Membership:
    """Make a pod a member of a group that exists only as a name."""
    return Membership(
        kind=kind,
        namespace=pod.namespace,
        name=name,
        key=WorkloadKey(f"{kind}/{pod.namespace}/{name}"),
        by=by,
    )
