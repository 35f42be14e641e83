"""Which workload a pod belongs to: one set of rules per kind, from what the pod says and who owns it.

The rules follow what the real controllers do while all pods are gated (which members exist, which labels they bear).
What a pod says itself counts before who owns it; two different groups claimed by one pod are a fault, and so is half a
claim. An owner that cannot be read claims nothing: the pod is then placed alone, never blocked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain import names
from bridge.domain.faults import Fault
from bridge.domain.objects import KubeObject, Reference
from bridge.domain.pods import Pod

POD = "Pod"
JOB = "Job"
JOBSET = "JobSet"
LEADER_WORKER_SET = "LeaderWorkerSet"
POD_GROUP = "PodGroup"
RAY_JOB = "RayJob"
LABELLED_GROUP = "pod-group"
KUEUE_GROUP = "KueuePodGroup"

IN_TREE_POD_GROUP = "scheduling.k8s.io/v1alpha2"
"""Group and version of the in-tree PodGroup, <https://github.com/kubernetes/enhancements/issues/4671>."""
COSCHEDULING_POD_GROUP = "scheduling.x-k8s.io/v1alpha1"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"

KUEUE_LABEL = "kueue.x-k8s.io/pod-group-name"
KUEUE_SIZE = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_SERVING = "kueue.x-k8s.io/pod-group-serving"
"""On the pods of StatefulSets and LeaderWorkerSets, which Kueue groups for their quota: they may come one after another."""

_JOB_INDEX = "batch.kubernetes.io/job-completion-index"
_JOBSET = "jobset.sigs.k8s.io/"
_LWS = "leaderworkerset.sigs.k8s.io/"
LWS_SIZE = f"{_LWS}size"
LWS_EXCLUSIVE = f"{_LWS}exclusive-topology"
JOBSET_EXCLUSIVE = f"alpha.{_JOBSET}exclusive-topology"
JOBSET_REPLICATED_JOB = f"{_JOBSET}replicatedjob-name"

_KUBEFLOW = "training.kubeflow.org/"
_KUBEFLOW_ROLES = ("launcher", "master", "chief", "ps", "worker", "evaluator")
"""Types of replica, those first that others are told to connect to. Each counts its own from 0."""
_RAY_NODE_TYPE = "ray.io/node-type"

EXCLUSIVE_TERMS = {
    JOBSET_EXCLUSIVE: frozenset({f"{_JOBSET}job-key", f"{_JOBSET}priority"}),
    LWS_EXCLUSIVE: frozenset({f"{_LWS}group-key"}),
}
"""Exclusive topology -> the labels by which its controller keeps a group together and others away."""

_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """To which workload one pod belongs."""

    kind: str
    namespace: str
    name: str
    """For people: the Job's, the JobSet's, the group's."""
    key: str
    """The workload's uid, as its placeholder's identity has it. A group without a uid of its own is known by its name:
    its incarnations are told apart by their pods."""
    rank: tuple[int, ...] = ()
    """Its place among the members; those without one come after the others, in the order of their names."""
    declared_by: Reference | None = None
    """The object that says how large the group is: a PodGroup, or an owner."""
    root: KubeObject | None = None
    """That owner, as it was when the pod was new."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the claim; then the pod is placed with nobody, and not alone either."""

    @property
    def is_gang(self) -> bool:
        """Several pods share one placeholder."""
        return self.kind != POD


def alone(pod: Pod, faults: Sequence[Fault] = ()) -> Membership:
    """Make a workload of a single pod."""
    return Membership(
        kind=POD, namespace=pod.namespace, name=pod.name, key=pod.uid, faults=tuple(faults)
    )


def placed(pod: Pod) -> Membership:
    """Say which workload a pod was placed with, as we wrote it down."""
    if pod.workload == pod.uid:
        return alone(pod)
    return Membership(
        kind="",
        namespace=pod.namespace,
        name=pod.workload,
        key=pod.workload,
        rank=() if pod.rank is None else (pod.rank,),
    )


def membership(pod: Pod, owners: Sequence[KubeObject]) -> Membership:
    """Say which workload the pod belongs to.

    Args:
        pod: the pod.
        owners: its controllers as far as they can be read, the nearest first.
    """
    claims = tuple(_claims(pod))
    if len(claims) > 1:
        found = " and ".join(f"{claim.kind} {claim.name}" for claim in claims)
        return alone(
            pod, [Fault("metadata.labels", f"two groups claim the pod, {found}: keep one")]
        )
    if claims:
        return claims[0]
    if _says(pod, owners, names.GANG_ANNOTATION) == "false":
        return alone(pod)
    return _lws(pod, owners) or _jobset(pod, owners) or _owned(pod, owners) or alone(pod)


def needs_owners(pod: Pod) -> bool:
    """Whether its owners have a say: not where the pod itself names its group, or where nobody owns it."""
    return pod.owner is not None and not any(True for _ in _claims(pod))


def is_declared(pod: Pod) -> bool:
    """Whether the pod names a group that an object declares: only that says whether it is a gang."""
    return any(claim.declared_by is not None for claim in _claims(pod))


def settled(
    member: Membership, pod: Pod, declared: KubeObject | None, *, is_served: bool
) -> Membership:
    """Put a group that an object declares to the test.

    Args:
        member: what the pod claims.
        pod: the pod.
        declared: the object as it was read; None: there is none of that name (yet), so the group is waited for.
        is_served: the API server knows that kind, and lets us read it; otherwise the claim means nothing here.
    """
    if member.kind != POD_GROUP:
        return member
    policy = _mapping(declared.spec.get("schedulingPolicy")) if declared else {}
    return alone(pod) if not is_served or "basic" in policy else member


def _claims(pod: Pod) -> Iterator[Membership]:
    """Groups that the pod itself names."""
    if pod.scheduling_group:
        yield _declared(pod, pod.scheduling_group, IN_TREE_POD_GROUP)
    if name := pod.labels.get(COSCHEDULING_LABEL):
        yield _declared(pod, name, COSCHEDULING_POD_GROUP)
    if name := pod.labels.get(names.POD_GROUP_LABEL):
        yield _named(pod, LABELLED_GROUP, name)
    if (name := pod.labels.get(KUEUE_LABEL)) and pod.annotations.get(KUEUE_SERVING) != "true":
        yield _named(pod, KUEUE_GROUP, name)


def _declared(pod: Pod, name: str, api_version: str) -> Membership:
    group = api_version.partition("/")[0]
    return Membership(
        kind=POD_GROUP,
        namespace=pod.namespace,
        name=name,
        key=f"{POD_GROUP}.{group}/{pod.namespace}/{name}",
        rank=_index(pod),
        declared_by=Reference(
            api_version=api_version, kind=POD_GROUP, namespace=pod.namespace, name=name
        ),
    )


def _named(pod: Pod, kind: str, name: str) -> Membership:
    return Membership(
        kind=kind,
        namespace=pod.namespace,
        name=name,
        key=f"{kind}/{pod.namespace}/{name}",
        rank=_index(pod),
    )


def _lws(pod: Pod, owners: Sequence[KubeObject]) -> Membership | None:
    name, group = pod.labels.get(f"{_LWS}name"), pod.labels.get(f"{_LWS}group-index")
    if not name or not group:
        return None
    root = next((owner for owner in owners if owner.kind == LEADER_WORKER_SET), None)
    return Membership(
        kind=LEADER_WORKER_SET,
        namespace=pod.namespace,
        name=f"{name}-{group}",
        key=f"{LEADER_WORKER_SET}/{pod.namespace}/{name}/{group}",
        rank=_numbers(pod.labels, f"{_LWS}worker-index"),
        declared_by=Reference.to(root) if root else None,
        root=root,
    )


def _jobset(pod: Pod, owners: Sequence[KubeObject]) -> Membership | None:
    """One gang for the set, and a new one after each restart.

    One per replicated Job where they start in turn; one per Job where each wants a domain for itself.
    """
    root = next((owner for owner in owners if owner.kind == JOBSET), None)
    attempt = pod.labels.get(f"{_JOBSET}restart-attempt", "0")
    if root is None or pod.labels.get(f"{_JOBSET}jobset-uid") != root.uid:
        return None
    replicated_job = pod.labels.get(JOBSET_REPLICATED_JOB, "")
    part = ""
    if is_exclusive(pod):
        part = f"-{replicated_job}-{pod.labels.get(f'{_JOBSET}job-index', '')}"
    elif starts_in_turn(root):
        part = f"-{replicated_job}"
    return Membership(
        kind=JOBSET,
        namespace=pod.namespace,
        name=f"{root.name}{part}",
        key=f"{root.uid}.{attempt}{part}",
        rank=(*_numbers(pod.labels, f"{_JOBSET}job-global-index"), *_index(pod)),
        declared_by=Reference.to(root),
        root=root,
    )


def is_exclusive(pod: Pod) -> bool:
    """Whether the pod's Job wants a topology domain for itself: its other pods are created when the first is bound."""
    return JOBSET_EXCLUSIVE in pod.annotations


def starts_in_turn(jobset: KubeObject) -> bool:
    """Whether some of a JobSet's Jobs are created only when others are ready or complete."""
    order = _mapping(jobset.spec.get("startupPolicy")).get("startupPolicyOrder")
    jobs = jobset.spec.get("replicatedJobs")
    return order == "InOrder" or any(
        _mapping(job).get("dependsOn") for job in (jobs if isinstance(jobs, list) else ())
    )


def _owned(pod: Pod, owners: Sequence[KubeObject]) -> Membership | None:
    """A Job that wants to be a gang; or any root owner that says how many pods it has."""
    if not owners:
        return None
    nearest, root = owners[0], owners[-1]
    if root.kind == RAY_JOB and nearest.kind == JOB:
        return None  # its pod talks to the cluster, and is made when that runs
    if names.POD_GROUP_SIZE_ANNOTATION in root.annotations:
        return _under(pod, root, root.kind or "Workload")
    if nearest.kind == JOB and _says(pod, owners, names.GANG_ANNOTATION) == "true":
        return _under(pod, nearest, JOB)
    return None


def _under(pod: Pod, owner: KubeObject, kind: str) -> Membership:
    return Membership(
        kind=kind,
        namespace=pod.namespace,
        name=owner.name,
        key=owner.uid,
        rank=_index(pod),
        declared_by=Reference.to(owner),
        root=owner,
    )


def _says(pod: Pod, owners: Sequence[KubeObject], key: str) -> str | None:
    """The annotation of the pod (its template), else of the nearest owner that has it."""
    said = [pod.annotations, *(owner.annotations for owner in owners)]
    return next((annotations[key] for annotations in said if key in annotations), None)


def _index(pod: Pod) -> tuple[int, ...]:
    return (
        _replica(pod)
        or ((0,) if pod.labels.get(_RAY_NODE_TYPE) == "head" else ())
        or _numbers({**pod.labels, **pod.annotations}, _JOB_INDEX)
    )


def _replica(pod: Pod) -> tuple[int, ...]:
    """Of Kubeflow's jobs. Its MPI operator tells roles instead of types, and numbers no launcher that is no worker too."""
    kind = pod.labels.get(f"{_KUBEFLOW}replica-type") or pod.labels.get(f"{_KUBEFLOW}job-role", "")
    role = kind.lower()
    number = _numbers(pod.labels, f"{_KUBEFLOW}replica-index") or (0,) * (role == "launcher")
    return (_KUBEFLOW_ROLES.index(role), *number) if number and role in _KUBEFLOW_ROLES else ()


def _numbers(texts: Mapping[str, str], key: str) -> tuple[int, ...]:
    text = texts.get(key, "")
    return (int(text),) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else ()


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
