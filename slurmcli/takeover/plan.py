"""Decide what becomes of the pods that SchedMD's slurm-bridge has placed, once it is stopped.

Its mark on a job is an `admin_comment` that is a JSON object with the one key `pods`, a list of
`namespace/name`; a pod carries the job's id as a label and its node as an annotation, under the
names that we use. Neither names a cluster or a uid, so a job is taken over only if everything
agrees: mark, label, node and state.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.lifecycle.actions import Place
from bridge.domain.model import identities
from bridge.domain.model.identities import Identity, UnreadableIdentityError
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, slurm_name
from slurmruntime.values import names
from slurmruntime.values.ids import (
    ClusterId,
    JobId,
    KubeNode,
    Sluid,
    SlurmNode,
    WorkloadKey,
    alone_key,
)

_CREATE_AGAIN = "delete the pod: its controller creates it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedJob:
    """A job that a pod names, as Slurm reports it."""

    id: JobId
    sluid: Sluid | None = None
    phase: JobPhase
    is_external: bool
    admin_comment: str = ""
    nodes: tuple[SlurmNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """Write the identity into the job, then what we write at the pin on each pod."""

    job_id: JobId
    comment: str
    """What the job's `admin_comment` must still be."""
    identity: Identity
    pods: tuple[Pod, ...]
    places: tuple[Place | None, ...]
    """One for each pod; None for a pod on its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """Cancel a job for which no pod runs, then remove its pods' finalizer: nothing else would."""

    job_id: JobId
    comment: str
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Remove the finalizer of SchedMD's bridge: its job has ended, and nothing else would."""

    pod: Pod
    why: str = ""
    """What an administrator has to do then; "" if nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Do nothing."""

    pod: Pod
    why: str
    """Why, and what an administrator can do."""


Step = TakeOver | CancelJob | RemoveFinalizer | Leave


def is_theirs(pod: Pod, scheduler_name: str) -> bool:
    """Check whether SchedMD's bridge manages the pod, and we do not."""
    if pod.has_our_finalizer or pod.is_gated:
        return False
    return pod.scheduler_name == scheduler_name or names.SCHEDMDS_FINALIZER in pod.finalizers


def steps(
    pods: Sequence[Pod],
    jobs: Mapping[JobId, MarkedJob],
    *,
    kube_nodes: Sequence[KubeNodeFacts],
    cluster: ClusterId,
    scheduler_name: str,
) -> Sequence[Step]:
    """Decide for all pods of the scheduler, whose jobs were read after the other bridge was stopped.

    A job that is missing does not exist. The scheduler's name is that of both bridges: a running pod
    cannot change it.
    """
    in_slurm = {node.name: slurm_name(node) for node in kube_nodes}
    plan: list[Step] = []
    by_job: dict[JobId, list[Pod]] = defaultdict(list)
    for pod in pods:
        if not is_theirs(pod, scheduler_name):
            continue
        if pod.scheduler_name != scheduler_name:
            why = f"it names scheduler {pod.scheduler_name}: give --scheduler-name"
            plan.append(Leave(pod=pod, why=why))
        elif pod.job_id is not None:
            by_job[pod.job_id].append(pod)
        elif not pod.is_terminal:
            plan.append(Leave(pod=pod, why=f"it has no job yet: {_CREATE_AGAIN}"))
    for id_, members in sorted(by_job.items()):
        plan += _for_job(jobs.get(id_), members, in_slurm, cluster)
    return plan


def unmarked_nodes(
    kube_nodes: Sequence[KubeNodeFacts], slurm_nodes: Sequence[SlurmNodeFacts]
) -> Sequence[SlurmNodeFacts]:
    """Return the external nodes of this cluster that no cluster of ours has marked as its own."""
    wanted = {slurm_name(node) for node in kube_nodes if names.EXTERNAL_NODE_LABEL in node.labels}
    return [
        node
        for node in slurm_nodes
        if node.name in wanted
        and node.is_external
        and not any(feature.startswith(f"{names.CLUSTER_FEATURE}=") for feature in node.features)
    ]


def _for_job(
    job: MarkedJob | None,
    members: Sequence[Pod],
    in_slurm: Mapping[KubeNode, SlurmNode],
    cluster: ClusterId,
) -> Sequence[Step]:
    if job is None or job.phase is JobPhase.ENDED:
        return [_after_the_job(pod) for pod in members]
    if (ours := _identity(job, cluster)) is not None:  # partly taken over already
        listed = tuple(pod for pod in members if pod.uid in ours.pods)
        return [_taken(job, ours, listed, in_slurm)] if listed else []
    marked = _marked(job)
    strangers = [pod for pod in members if pod.full_name not in marked]
    why = f"job {job.id} does not carry the mark of SchedMD's bridge for it"
    left: list[Step] = [Leave(pod=pod, why=why) for pod in strangers]
    mine = tuple(pod for pod in members if pod.full_name in marked)
    if not mine:
        return left
    # One that only waits for its finalizer: a pod being deleted cannot get one of ours.
    have_gone = all(pod.is_terminal and pod.is_deleting for pod in mine)
    if have_gone or not any(pod.is_bound for pod in mine):
        return [*left, CancelJob(job_id=job.id, comment=job.admin_comment, pods=mine)]
    if why := _hindrance(job, mine, in_slurm):
        return [*left, *(Leave(pod=pod, why=why) for pod in mine)]
    ordered = _by_node(job, mine, in_slurm)
    identity = _new_identity(job, ordered, cluster, is_gang=len(marked) > 1)
    return [*left, _taken(job, identity, ordered, in_slurm)]


def _after_the_job(pod: Pod) -> Step:
    why = "" if pod.is_terminal else f"job {pod.job_id} has ended: {_CREATE_AGAIN}"
    if names.SCHEDMDS_FINALIZER in pod.finalizers:
        return RemoveFinalizer(pod=pod, why=why)
    return Leave(pod=pod, why=why or "it has ended, and so has its job")


def _marked(job: MarkedJob) -> frozenset[str]:
    """Return the `namespace/name` of the pods that the other bridge's mark lists."""
    if not job.is_external:
        return frozenset()
    try:
        document = json.loads(job.admin_comment)
    except (ValueError, RecursionError):
        return frozenset()
    if not isinstance(document, dict) or set(document) != {"pods"}:
        return frozenset()
    listed = document["pods"]
    is_list = isinstance(listed, list) and all(isinstance(entry, str) for entry in listed)
    return frozenset(listed) if is_list else frozenset()


def _identity(job: MarkedJob, cluster: ClusterId) -> Identity | None:
    try:
        identity = identities.decode(job.admin_comment)
    except UnreadableIdentityError:
        return None
    is_ours = identity is not None and identity.cluster == cluster and job.is_external
    return identity if is_ours else None


def _hindrance(job: MarkedJob, pods: Sequence[Pod], in_slurm: Mapping[KubeNode, SlurmNode]) -> str:
    """Return what prevents taking the job over; "" if nothing does."""
    if job.phase is not JobPhase.RUNNING:
        return f"job {job.id} does not run"
    waiting = [pod.full_name for pod in pods if not pod.is_bound]
    if waiting:
        return f"not all pods of job {job.id} have a node ({waiting[0]}): delete them together"
    for pod in pods:
        if pod.is_deleting:
            return f"{pod.full_name} is being deleted: try again when its containers have ended"
        if pod.kube_node is not None and in_slurm.get(pod.kube_node) not in job.nodes:
            return f"{pod.full_name} runs on {pod.kube_node}, which job {job.id} does not hold"
    if len({pod.namespace for pod in pods}) > 1:
        return f"job {job.id} is for pods of several namespaces"
    return ""


def _by_node(
    job: MarkedJob, pods: Sequence[Pod], in_slurm: Mapping[KubeNode, SlurmNode]
) -> tuple[Pod, ...]:
    order = {node: number for number, node in enumerate(job.nodes)}

    def turn(pod: Pod) -> tuple[int, str]:
        node = in_slurm.get(pod.kube_node) if pod.kube_node is not None else None
        return (order.get(node, len(order)) if node is not None else len(order), pod.name)

    return tuple(sorted(pods, key=turn))


def _new_identity(
    job: MarkedJob, pods: Sequence[Pod], cluster: ClusterId, *, is_gang: bool
) -> Identity:
    first = pods[0]
    owner = first.owner if is_gang else None
    return Identity(
        cluster=cluster,
        kind=owner.kind if owner else "Pod",
        namespace=first.namespace,
        name=owner.name if owner else first.name,
        key=WorkloadKey(f"taken-over/{job.sluid or job.id}") if is_gang else alone_key(first.uid),
        pods=tuple(pod.uid for pod in pods),
    )


def _taken(
    job: MarkedJob,
    identity: Identity,
    pods: tuple[Pod, ...],
    in_slurm: Mapping[KubeNode, SlurmNode],
) -> TakeOver:
    ordered = _by_node(job, pods, in_slurm)
    is_alone = [identity.key] == [alone_key(uid) for uid in identity.pods]
    kube_nodes = dict.fromkeys(pod.kube_node for pod in ordered if pod.kube_node is not None)
    return TakeOver(
        job_id=job.id,
        comment=job.admin_comment,
        identity=identity,
        pods=ordered,
        places=tuple(
            None
            if is_alone
            else Place(
                workload=identity.key,
                rank=identity.pods.index(pod.uid),
                world_size=len(identity.pods),
                nodelist=tuple(kube_nodes),
            )
            for pod in ordered
        ),
    )
