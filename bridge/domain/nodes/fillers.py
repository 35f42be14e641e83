"""What a machine that runs a slurmd and a kubelet must not offer twice: fillers, placeholders of the node itself.

Slurm offers what the slurmd has; Kubernetes has less left, because of what the kubelet reserves and of pods that are not
Slurm's. The difference is held by external jobs of ours, because nothing else is taken from a node without restarting its
slurmd (measured with 26.05: `scontrol update` refuses CPUs and memory, a reservation of memory takes the whole node). A
running job cannot be resized, so more is another filler, and less is a smaller one first and the end of the larger one
then: in between too much is held, never too little.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridge.domain import quantities
from bridge.domain.ids import ClusterId, WorkloadKey
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.nodes import KubeNodeFacts, SlurmNodeFacts
from bridge.domain.model.placeholder import Identity, PlaceholderSpec

KIND = "Node"
"""The workload's kind in a filler's identity; its uid is the Kubernetes node's, and it has no pods."""

NAME = "slurm-bridge-filler"

ROOT = "root"
"""Whom fillers run as: nobody's limits are to hold them back, nobody's fair share is to pay."""

SLACK_MIB = 64
"""So much memory may be held too much: a pod that is replaced by a slightly smaller one is no reason to do anything."""

PRIORITY = 4_000_000_000
"""Before every job that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Part of a node, in Slurm's units."""

    cpus: int = 0
    memory_mib: int = 0

    def covers(self, other: "Portion") -> bool:
        """No less than the other in either."""
        return self.cpus >= other.cpus and self.memory_mib >= other.memory_mib


NOTHING = Portion()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Submit a filler; at least one CPU and one MiB, as Slurm gives no job less."""

    share: Portion


FillerAction = Fill | Cancel


def wanted(kube_node: KubeNodeFacts, others: Demand, slurm_node: SlurmNodeFacts) -> Portion:
    """What of the node Slurm must not give to anybody.

    others: what the pods that are not Slurm's ask for together (`demand.total`).
    """
    allocatable = kube_node.allocatable
    cpus = max(0, allocatable.milli_cpu - others.milli_cpu) // 1000
    memory_mib = max(0, allocatable.memory_bytes - others.memory_bytes) // quantities.MIB
    return Portion(
        cpus=max(0, slurm_node.offered_cpus - cpus),
        memory_mib=max(0, slurm_node.offered_memory_mib - memory_mib),
    )


def decide(target: Portion, fillers: Iterable[SlurmJob]) -> tuple[FillerAction, ...]:
    """Say what to do about the live fillers of one node, one step at a time.

    fillers: all of them, in the order of their ids, as read after our own last write.
    """
    live = [job for job in fillers if job.phase is not JobPhase.ENDED]
    running = [job for job in live if job.phase is not JobPhase.WAITING]
    waiting = [job for job in live if job.phase is JobPhase.WAITING]
    if target == NOTHING:
        return tuple(map(_cancel, (*running, *waiting)))
    held = _sum(running)
    spare = next((job for job in running if _sum(_without(running, job)).covers(target)), None)
    if spare is not None:
        return (_cancel(spare),)
    if waiting:
        return ()  # it has the highest priority: what runs there ends, then it starts
    if not held.covers(target):
        missing = Portion(
            cpus=max(0, target.cpus - held.cpus),
            memory_mib=max(0, target.memory_mib - held.memory_mib),
        )
        return (Fill(share=_least(missing)),)
    return (Fill(share=_least(target)),) if _is_too_much(held, target) else ()


def key(kube_node: KubeNodeFacts) -> WorkloadKey:
    """Return what a node's fillers are known by."""
    return WorkloadKey(kube_node.uid)


def spec(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts, share: Portion, cluster: ClusterId
) -> PlaceholderSpec:
    """Describe a filler."""
    return PlaceholderSpec(
        identity=Identity(
            cluster=cluster,
            kind=KIND,
            namespace="",
            name=kube_node.name,
            uid=key(kube_node),
            pods=(),
        ),
        name=NAME,
        user=ROOT,
        group=ROOT,
        partition=slurm_node.partitions[0] if slurm_node.partitions else "",
        cpus_per_task=share.cpus,
        memory_mib_per_node=share.memory_mib,
        required_nodes=(slurm_node.name,),
        priority=PRIORITY,
    )


def _is_too_much(held: Portion, target: Portion) -> bool:
    """Whether one that fits is worth another job for a while."""
    return held.cpus > max(1, target.cpus) or held.memory_mib - target.memory_mib >= SLACK_MIB


def _without(jobs: Sequence[SlurmJob], one: SlurmJob) -> list[SlurmJob]:
    return [job for job in jobs if job is not one]


def _least(share: Portion) -> Portion:
    return Portion(cpus=max(1, share.cpus), memory_mib=max(1, share.memory_mib))


def _sum(jobs: Sequence[SlurmJob]) -> Portion:
    granted = [job.grant for job in jobs if job.grant]
    return Portion(
        cpus=sum(grant.tasks * grant.cpus_per_task for grant in granted),
        memory_mib=sum(grant.memory_mib_per_node for grant in granted),
    )


def _cancel(job: SlurmJob) -> Cancel:
    return Cancel(job_id=job.id, sluid=job.sluid)
