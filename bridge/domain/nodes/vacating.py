"""Check whether pods that are leaving still hold what Slurm has given to the next job.

Slurm gives a job's share away as soon as it has ended, containers use their grace period. Kubernetes
counts what a pod requests, but a job may hold more: a whole node (`exclusive`), whole CPUs, more than
the containers ask for. So this compares what Slurm granted each pod, as it is written on the pods.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bridge.domain.model import demand
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import NOBODY, BoundPod, Neighbours, Pod
from bridge.domain.request import overrides
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import quantities


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What Slurm granted a pod on its node, at least."""

    cpus: int
    memory_mib: int
    is_all: bool = False
    """The node is its job's alone."""


def overlap(
    job: SlurmJob,
    kube_node: KubeNodeFacts,
    *,
    leaving: Iterable[Pod],
    staying: Iterable[Pod],
    foreign: Iterable[BoundPod],
    beside: Neighbours = NOBODY,
    milli_per_cpu: int = quantities.MILLI,
) -> str:
    """Return what leaving pods still hold of a running job's share, in words; "" if nothing.

    Without leaving pods there is no overlap: Slurm never gives the same to two jobs.

    Args:
        job: the placeholder of the pod to place on the node.
        leaving: our pods there that are going, but whose containers may still run.
        staying: our other pods there.
        foreign: all other pods there; Slurm does not have what they take.
        beside: members of the same gang that get the node at the same time.
        milli_per_cpu: how many thousandths of a Kubernetes CPU one CPU of Slurm is.
    """
    going = [
        _share(pod, milli_per_cpu) for pod in leaving if not job.is_named(pod.job_id, pod.sluid)
    ]
    if not going:
        return ""
    own = _granted(job.identity, job.grant) if job.grant else None
    if own is None:
        return ""
    if own.is_all or any(share.is_all for share in going):
        return "the whole node is still in use"
    others = [_share(pod, milli_per_cpu) for pod in staying]
    taken = demand.total(pod.demand for pod in foreign if not pod.is_terminal)
    cpus = (kube_node.allocatable.milli_cpu - taken.milli_cpu) // milli_per_cpu
    memory_mib = (kube_node.allocatable.memory_bytes - taken.memory_bytes) // quantities.MIB
    shares = [own, *going, *others]
    beside_cpus = beside.demand.cpus(milli_per_cpu) if beside.demand.pods else 0
    if sum(share.cpus for share in shares) + beside_cpus > cpus:
        return "CPUs are still in use"
    if sum(share.memory_mib for share in shares) > memory_mib:
        return "memory is still in use"
    return ""


def _share(pod: Pod, milli_per_cpu: int) -> _Share:
    """Read what Slurm granted a placed pod; without a record, what it requests."""
    share = _granted(*pod.grant) if pod.grant else None
    return share or _Share(cpus=pod.demand.cpus(milli_per_cpu), memory_mib=pod.demand.memory_mib)


def _granted(identity: Identity, job_grant: Grant) -> _Share | None:
    """Return the share of one pod; None if its job has several sizes: which is the pod's is unknown."""
    asked, _ = overrides.read(identity.frozen.asked if identity.frozen else {})
    if job_grant.also:
        return None
    cpus = job_grant.cpus_per_task
    memory_mib = job_grant.memory_mib_per_node or job_grant.memory_mib_per_cpu * cpus
    return _Share(cpus=cpus, memory_mib=memory_mib, is_all=bool(asked.exclusive))
