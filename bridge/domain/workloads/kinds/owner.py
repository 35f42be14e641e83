"""Any root owner that declares its number of pods, and what owner-based kinds have in common."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.membership import Kind, KindRow, Membership, Size
from slurmruntime.model.objects import KubeObject, Reference
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey

SIZE_ANNOTATION = names.POD_GROUP_SIZE_ANNOTATION


class AnyOwner:
    """An owner of any other kind: a gang if its annotation gives the number of pods."""

    row = KindRow(
        "any other root owner",
        f"one placeholder per pod; one gang with annotation `{SIZE_ANNOTATION}` on that owner",
        "the annotation",
    )

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods of an annotated root."""
        return under(self, pod, owners[-1]) if owners and is_annotated(owners[-1]) else None

    def size(
        self, _member: Membership, pods: Sequence[Pod], declared: KubeObject | None, /
    ) -> Size:
        """Return the size in the annotation."""
        return annotated_size(declared) or Size(len(pods), len(pods))


def under(kind: Kind, pod: Pod, owner: KubeObject) -> Membership:
    """Make a pod a member of the workload that its owner is."""
    return Membership(
        kind=owner.kind or "Workload",
        namespace=pod.namespace,
        name=owner.name,
        key=WorkloadKey(owner.uid),
        by=kind,
        declared_by=Reference.to(owner),
        root=owner,
    )


def is_annotated(owner: KubeObject) -> bool:
    """Check whether an owner declares its number of pods."""
    return SIZE_ANNOTATION in owner.annotations


def annotated_size(owner: KubeObject | None) -> Size | None:
    """Return the number of pods that an owner's annotation declares; None if it has none."""
    if owner is None or not is_annotated(owner):
        return None
    path = f"{owner.kind or 'Workload'} {owner.name}: metadata.annotations[{SIZE_ANNOTATION}]"
    return counting.written([owner.annotations[SIZE_ANNOTATION]], path)


def annotation(pod: Pod, owners: Sequence[KubeObject], key: str) -> str | None:
    """Return an annotation of the pod (its template), else of the nearest owner that has it."""
    sources = [pod.annotations, *(owner.annotations for owner in owners)]
    return next((annotations[key] for annotations in sources if key in annotations), None)
