"""JobSet (jobset.x-k8s.io)."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.kinds import job, owner
from bridge.domain.workloads.membership import ExclusiveTopology, GetRule, KindRow, Membership, Size
from slurmruntime.model.objects import JsonObject, KubeObject, Reference
from slurmruntime.values import names
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import WorkloadKey

KIND = "JobSet"
_PREFIX = "jobset.sigs.k8s.io/"
REPLICATED_JOB = f"{_PREFIX}replicatedjob-name"
EXCLUSIVE = f"alpha.{_PREFIX}exclusive-topology"


class JobSet:
    """One gang for the set, and a new one after each restart.

    One per replicated Job if they start in turn; one per Job if each wants a domain for itself.
    """

    row = KindRow(
        "JobSet",
        "one gang for the set, and a new one after each restart; with `startupPolicyOrder: "
        "InOrder` or `dependsOn` one for each replicated Job; with exclusive topology one for "
        "each Job; "
        f'`{names.GANG_ANNOTATION}: "false"` opts out',
        "Σ replicas × parallelism",  # noqa: RUF001  # a product
    )
    reads = (GetRule("jobset.x-k8s.io", ("jobsets",)),)
    exclusive = ExclusiveTopology(EXCLUSIVE, frozenset({f"{_PREFIX}job-key", f"{_PREFIX}priority"}))

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods of the set's Jobs."""
        root = next((holder for holder in owners if holder.kind == KIND), None)
        attempt = pod.labels.get(f"{_PREFIX}restart-attempt", "0")
        if root is None or pod.labels.get(f"{_PREFIX}jobset-uid") != root.uid:
            return None
        replicated_job = pod.labels.get(REPLICATED_JOB, "")
        part = ""
        if _is_exclusive(pod):
            part = f"-{replicated_job}-{pod.labels.get(f'{_PREFIX}job-index', '')}"
        elif _starts_in_turn(root):
            part = f"-{replicated_job}"
        return Membership(
            kind=KIND,
            namespace=pod.namespace,
            name=f"{root.name}{part}",
            key=WorkloadKey(f"{root.uid}.{attempt}{part}"),
            by=self,
            rank=(
                *counting.rank(pod.labels, f"{_PREFIX}job-global-index"),
                *job.completion_index(pod),
            ),
            declared_by=Reference.to(root),
            root=root,
        )

    def size(self, _member: Membership, pods: Sequence[Pod], jobset: KubeObject | None, /) -> Size:
        """Return the size of what these pods form: the set, one replicated Job or one Job."""
        if jobset is None:
            return Size(len(pods), len(pods))
        if annotated := owner.annotated_size(jobset):
            return annotated
        only = pods[0].labels.get(REPLICATED_JOB)
        is_exclusive = _is_exclusive(pods[0])
        is_part = is_exclusive or _starts_in_turn(jobset)
        total = 0
        faults: list[Fault] = []
        for position, replicated in enumerate(_replicated_jobs(jobset)):
            if is_part and replicated.get("name") != only:
                continue
            path = f"JobSet {jobset.name}: spec.replicatedJobs[{position}]"
            replicas = counting.count(replicated.get("replicas", 1), f"{path}.replicas", faults)
            spec = counting.dig(replicated, "template", "spec")
            parallelism, wrong = job.parallelism(spec, f"{path}.template.spec")
            faults += wrong
            total += parallelism if is_exclusive else replicas * parallelism
        if not total and not faults:
            faults.append(
                Fault(
                    f"JobSet {jobset.name}: spec.replicatedJobs",
                    "expected at least one pod, found none",
                )
            )
        return Size(total, 1 if is_exclusive else total, tuple(faults))


def _is_exclusive(pod: Pod) -> bool:
    """Check whether the pod's Job wants a topology domain for itself.

    Its other pods are created when the first is bound.
    """
    return EXCLUSIVE in pod.annotations


def _starts_in_turn(jobset: KubeObject) -> bool:
    """Check whether some of a JobSet's Jobs are created only when others are ready or complete."""
    order = counting.dig(jobset.spec, "startupPolicy").get("startupPolicyOrder")
    return order == "InOrder" or any(
        replicated_job.get("dependsOn") for replicated_job in _replicated_jobs(jobset)
    )


def _replicated_jobs(jobset: KubeObject) -> list[JsonObject]:
    jobs = jobset.spec.get("replicatedJobs")
    return [counting.dig(replicated) for replicated in (jobs if isinstance(jobs, list) else ())]
