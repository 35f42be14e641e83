"""Fillers: jobs that keep Slurm from offering resources of a node that Kubernetes uses.

On a hybrid node, Slurm offers everything the slurmd reports. Kubernetes has less left, because of
what the kubelet reserves and of pods that Slurm does not know. An external node was registered with
what its daemons left of it, but other pods may get there past Slurm, and its daemons may grow while
jobs run. And pods of ours may run on without their job until an operator decides. External jobs of
ours hold the difference; without them, Slurm would start jobs whose pods do not fit, again and
again. No other way takes resources from a node without restarting its slurmd (measured with 26.05:
`scontrol update` refuses CPUs and memory, and a reservation of memory takes the whole node). A
running job cannot be resized. To hold more, another filler is added; to hold less, a smaller filler
starts before the larger one ends; in between, too much is held. Where there is no room beside the
larger one, it ends once the smaller one waits, which starts next with the highest priority; too
little is held only while the smaller one also waits for something that a job still has.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.lifecycle.rules.answers import cancel_of
from bridge.domain.model.demand import Demand
from bridge.domain.model.devices import gres
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes.spec import Publishing
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import quantities
from slurmruntime.values.ids import ClusterId, WorkloadKey

KIND = "Node"
"""The workload kind in a filler's identity. The identity's uid is the Kubernetes node's, and it has
no pods."""

NAME = "slurm-bridge-filler"

ROOT = "root"
"""The user that fillers run as: no user's limits may hold them back, and no user's fair share may
pay for them."""

ROOT_GROUP = "0"
"""The group they run as: a number, as slurmrestd of Slurm 25.05 takes no name."""

SLACK_MIB = 64
"""Fillers may hold this much memory too much: if a pod is replaced by a slightly smaller one, that
is no reason to act."""

PRIORITY = 4_000_000_000
"""Ahead of every waiting job."""

_GRES = "gres/"
"""The prefix of each kind in a job's GRES; a node's have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Part of a node, in Slurm's units."""

    cpus: int = 0
    memory_mib: int = 0
    gres: Mapping[str, int] = field(default_factory=dict)
    """As the node has it: `gpu:a100` → 2; never 0."""

    def covers(self, other: "Portion") -> bool:
        """Check that this portion is at least as large as the other in every resource."""
        return other.beyond(self) == NOTHING

    def beyond(self, other: "Portion") -> "Portion":
        """Return by how much this portion exceeds the other."""
        more = {name: count - other.gres.get(name, 0) for name, count in self.gres.items()}
        return Portion(
            cpus=max(0, self.cpus - other.cpus),
            memory_mib=max(0, self.memory_mib - other.memory_mib),
            gres={name: count for name, count in more.items() if count > 0},
        )


NOTHING = Portion()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Submit a filler, of at least one CPU and one MiB because Slurm gives no job less."""

    share: Portion


FillerAction = Fill | Cancel


def wanted(
    kube_node: KubeNodeFacts,
    others: Demand,
    slurm_node: SlurmNodeFacts,
    publishing: Publishing,
    rule: HybridRule = HybridRule.NONE,
) -> Portion:
    """Return the part of the node that Slurm must not hand out.

    Nothing of an external node that is being drained: Slurm starts nothing there, and a filler
    would keep it from ever being idle, which its removal waits for. Nothing of a hybrid node that
    pods and native jobs have in turns: a job that wants the whole node would wait for the filler for ever.

    Args:
        others: the total demand (`demand.total`) of the pods that are not Slurm's.
        publishing: how devices are named in Slurm.
        rule: what keeps native jobs of hybrid nodes off containers that still stop.
    """
    if slurm_node.is_external and "DRAIN" in slurm_node.states:
        return NOTHING
    if not slurm_node.is_external and rule is HybridRule.ALTERNATE:
        return NOTHING
    allocatable = kube_node.allocatable
    cpus = max(0, allocatable.milli_cpu - others.milli_cpu) // publishing.milli_per_cpu
    memory_mib = max(0, allocatable.memory_bytes - others.memory_bytes) // quantities.MIB
    return Portion(
        cpus=max(0, slurm_node.offered_cpus - cpus),
        memory_mib=max(0, slurm_node.offered_memory_mib - memory_mib),
        gres=_devices_wanted(kube_node, others, slurm_node, publishing),
    )


def offered(slurm_node: SlurmNodeFacts) -> Portion:
    """Return all that Slurm may hand out of the node."""
    return Portion(
        cpus=slurm_node.offered_cpus,
        memory_mib=slurm_node.offered_memory_mib,
        gres=gres.counted(slurm_node.gres),
    )


def decide(
    target: Portion, capacity: Portion, fillers: Iterable[SlurmJob]
) -> tuple[FillerAction, ...]:
    """Decide the next step for the live fillers of one node.

    Args:
        target: what they must hold (`wanted`).
        capacity: what the node has (`offered`).
        fillers: all of them, ordered by id, as read after our own last write.
    """
    live = [job for job in fillers if job.phase is not JobPhase.ENDED]
    running = [job for job in live if job.phase is not JobPhase.WAITING]
    waiting = [job for job in live if job.phase is JobPhase.WAITING]
    if target == NOTHING:
        return tuple(map(cancel_of, (*running, *waiting)))
    held = _sum(running)
    spare = next((job for job in running if held.beyond(_share(job)).covers(target)), None)
    if spare is not None:
        return (cancel_of(spare),)
    missing, is_too_much = target.beyond(held), _is_too_much(held, target)
    share = _least(missing if missing != NOTHING else target)
    is_settled = missing == NOTHING and not is_too_much
    is_in_the_way = not is_settled and not capacity.beyond(held).covers(share)
    if waiting:
        # It has the highest priority and starts when the jobs there end. Fillers that hold its room
        # end for it.
        return tuple(map(cancel_of, running)) if is_in_the_way else ()
    if is_settled:
        return ()
    return (Fill(share=_least(target) if is_in_the_way else share),)


def key(kube_node: KubeNodeFacts) -> WorkloadKey:
    """Return the key under which a node's fillers are known."""
    return WorkloadKey(kube_node.uid)


def spec(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts, share: Portion, cluster: ClusterId
) -> PlaceholderSpec:
    """Build the placeholder spec of a filler."""
    return PlaceholderSpec(
        identity=Identity(
            cluster=cluster,
            kind=KIND,
            namespace="",
            name=kube_node.name,
            key=key(kube_node),
            pods=(),
        ),
        name=NAME,
        user=ROOT,
        group=ROOT_GROUP,
        partition=slurm_node.partitions[0] if slurm_node.partitions else "",
        cpus_per_task=share.cpus,
        memory_mib_per_node=share.memory_mib,
        gres_per_node=",".join(
            f"{_GRES}{name}:{count}" for name, count in sorted(share.gres.items())
        ),
        required_nodes=(slurm_node.name,),
        priority=PRIORITY,
    )


def _devices_wanted(
    kube_node: KubeNodeFacts, others: Demand, slurm_node: SlurmNodeFacts, publishing: Publishing
) -> Mapping[str, int]:
    """Return how many of the node's devices Slurm must not hand out, by GRES.

    None of a hybrid node: its devices are divided between Slurm and Kubernetes, and each counts its
    own. Devices that Kubernetes does not have count as free: whenever a device plugin restarts
    there are none for some seconds, and the node is drained meanwhile.
    """
    if not slurm_node.is_external:
        return {}
    present = node_spec.devices(kube_node, kube_node.allocatable.extended, publishing)
    taken = node_spec.devices(kube_node, others.extended, publishing)
    free = {
        name: max(0, max(present[name], count) - taken[name])
        for name, count in gres.counted(slurm_node.gres).items()
    }
    return Portion(gres=gres.counted(slurm_node.gres)).beyond(Portion(gres=free)).gres


def _is_too_much(held: Portion, target: Portion) -> bool:
    # The excess must be worth running a second job for a while.
    more = held.beyond(_least(target))
    return bool(more.cpus or more.gres) or held.memory_mib - target.memory_mib >= SLACK_MIB


def _least(share: Portion) -> Portion:
    return replace(share, cpus=max(1, share.cpus), memory_mib=max(1, share.memory_mib))


def _sum(jobs: Sequence[SlurmJob]) -> Portion:
    shares = [_share(job) for job in jobs]
    devices = sum((Counter(share.gres) for share in shares), Counter[str]())
    return Portion(
        cpus=sum(share.cpus for share in shares),
        memory_mib=sum(share.memory_mib for share in shares),
        gres=dict(devices),
    )


def _share(job: SlurmJob) -> Portion:
    if job.grant is None:
        return NOTHING
    return Portion(
        cpus=job.grant.tasks * job.grant.cpus_per_task,
        memory_mib=job.grant.memory_mib_per_node,
        gres=gres.counted(job.grant.gres_per_node.replace(_GRES, "")),
    )
