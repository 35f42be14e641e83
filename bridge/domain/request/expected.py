"""Derive the pods that a manifest would become, as far as it determines them.

That is how many there are, and what their controllers write on them to mark which belong together.
What is known only in the cluster is left out: names and uids are made up, and nothing has succeeded or
failed yet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from bridge.domain.model.pods import Pod
from bridge.domain.request.manifests import Manifest, Template
from bridge.domain.workloads import workload
from bridge.domain.workloads.kinds import job as job_kind
from bridge.domain.workloads.kinds import jobset, leader_worker_set
from slurmruntime.values.ids import PodUid

_INDEX = "batch.kubernetes.io/job-completion-index"
_JOBSET = "jobset.sigs.k8s.io/"
_LWS = "leaderworkerset.sigs.k8s.io/"

_HANDED_DOWN = (jobset.EXCLUSIVE, leader_worker_set.EXCLUSIVE)
"""Annotations that these kinds' controllers copy from the object to its pods."""


_Marks = tuple[Mapping[str, str], Mapping[str, str]]
"""The labels and the annotations that a controller writes on one pod."""


def pods(template: Template, pod: Pod) -> tuple[Pod, ...]:
    """List the pods of one template, at most one more than a gang may have.

    For a LeaderWorkerSet, whose groups are alike, list those of its first group.

    Args:
        pod: one of them as the API server would store it.
    """
    if not template.owners:
        return (replace(pod, name=template.root.name),)
    handed_down = {
        key: owner.annotations[key]
        for owner in template.owners
        for key in _HANDED_DOWN
        if key in owner.annotations
    }
    return tuple(
        replace(
            pod,
            uid=PodUid(f"{pod.uid}-{n}"),
            name="",  # generated on creation
            labels={**pod.labels, **labels},
            annotations={**pod.annotations, **handed_down, **annotations},
        )
        for n, (labels, annotations) in enumerate(islice(_marks(template), workload.MAX_SIZE + 1))
    )


def _marks(template: Template) -> Iterator[_Marks]:
    match template.root.kind, template.around:
        case leader_worker_set.KIND, (around, *_):
            return _of_lws(template, around)
        case jobset.KIND, (spec, _, job, _, _):
            return _of_jobset(template, job, spec)
        case _, (spec, *_) if template.owners[0].kind == job_kind.KIND:
            return ((index, {}) for index in _of_job(spec, mode="NonIndexed"))
        case _, (around, *_):
            return (({}, {}) for _ in range(_count(around, "replicas")))
        case _:
            return iter([({}, {})])


def _of_job(spec: Manifest, *, mode: str) -> Iterator[Mapping[str, str]]:
    """Number the pods of a Job; `mode` is used if its own `completionMode` is not set."""
    size = _count(spec, "parallelism")
    size = min(size, _count(spec, "completions", size))
    is_indexed = spec.get("completionMode", mode) == "Indexed"
    return ({_INDEX: str(n)} if is_indexed else {} for n in range(size))


def _of_jobset(template: Template, own: Manifest, spec: Manifest) -> Iterator[_Marks]:
    before = 0
    for job in template.root.spec.get("replicatedJobs") or ():
        if job is own:
            break
        before += _count(job, "replicas") if isinstance(job, Mapping) else 0
    for job_index in range(_count(own, "replicas")):
        for index in _of_job(spec, mode="Indexed"):
            labels = {
                f"{_JOBSET}jobset-uid": template.root.uid,
                f"{_JOBSET}job-index": str(job_index),
                f"{_JOBSET}job-global-index": str(before + job_index),
                jobset.REPLICATED_JOB: str(own.get("name", "")),
                **index,
            }
            yield labels, {}


def _of_lws(template: Template, around: Manifest) -> Iterator[_Marks]:
    """Number the pods of one group.

    Without a template of its own, the leader is made from the workers' template.
    """
    size = _count(around, "size")
    has_leader = "leaderTemplate" in around
    is_leader = template.path.endswith("leaderTemplate")
    ranks = range(1) if is_leader else range(int(has_leader), size)
    for rank in ranks:
        labels = {
            f"{_LWS}name": template.root.name,
            f"{_LWS}group-index": "0",
            f"{_LWS}worker-index": str(rank),
        }
        yield labels, {leader_worker_set.SIZE: str(size)}


def _count(holder: Manifest, key: str, default: int = 1) -> int:
    """Read a count; what is not a number is refused where the gang's size is computed."""
    count = holder.get(key, default)
    return count if isinstance(count, int) else default
