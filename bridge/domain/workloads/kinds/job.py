"""Job (batch/v1), including those that a CronJob creates."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.kinds import owner
from bridge.domain.workloads.membership import GetRule, KindRow, Membership, Size
from slurmruntime.model.objects import JsonObject, KubeObject
from slurmruntime.values import names
from slurmruntime.values.faults import Fault

KIND = "Job"
_INDEX = "batch.kubernetes.io/job-completion-index"


class Job:
    """A Job is a gang only on request: its pods may well be independent of each other."""

    row = KindRow(
        "Job",
        f'one per pod; one gang with annotation `{names.GANG_ANNOTATION}: "true"` on the Job '
        "or its template",
        "`parallelism`, within the completions that are left",
    )
    reads = (GetRule("batch", ("cronjobs", "jobs")),)

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods of a Job that wants to be a gang.

        It does not claim them if a root of another kind declares the gang's size.
        """
        if not owners or owners[0].kind != KIND:
            return None
        nearest, root = owners[0], owners[-1]
        if owner.is_annotated(root):
            return owner.under(self, pod, root) if root.kind == KIND else None
        wanted = owner.annotation(pod, owners, names.GANG_ANNOTATION) == "true"
        return owner.under(self, pod, nearest) if wanted else None

    def size(
        self, _member: Membership, pods: Sequence[Pod], declared: KubeObject | None, /
    ) -> Size:
        """Return how many pods run at once, limited by the completions that are left."""
        if declared is None:
            return Size(len(pods), len(pods))
        if annotated := owner.annotated_size(declared):
            return annotated
        size, faults = parallelism(declared.spec, f"Job {declared.name}: spec")
        done = declared.status.get("succeeded") or 0
        completions = declared.spec.get("completions")
        if isinstance(completions, int) and isinstance(done, int):
            size = min(size, max(completions - done, 0))
        return Size(size, max(size, 1), faults)

    def rank(self, pod: Pod, /) -> tuple[int, ...]:
        """Return the completion index."""
        return completion_index(pod)

    def slot(self, member: Membership, /) -> int | None:
        """Return the completion index: a replacement has the same as the pod that failed."""
        return member.index


def completion_index(pod: Pod) -> tuple[int, ...]:
    """Return the pod's index in an indexed Job."""
    return counting.rank({**pod.labels, **pod.annotations}, _INDEX)


def parallelism(spec: JsonObject, path: str) -> tuple[int, tuple[Fault, ...]]:
    """Return how many pods a Job's spec runs at once, and its faults."""
    faults: list[Fault] = []
    size = counting.count(spec.get("parallelism", 1), f"{path}.parallelism", faults)
    if spec.get("completionMode") == "Indexed" and isinstance(spec.get("completions"), int):
        size = min(size, spec["completions"])
    return size, tuple(faults)
