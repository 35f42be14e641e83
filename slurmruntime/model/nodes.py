"""Nodes as both worlds report them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode, SlurmNode
from slurmruntime.values.oddities import About

NAME_TAKEN = "NameTaken"
"""Reason of the condition on a node whose Slurm name belongs to another node."""

HARD_EFFECTS = ("NoSchedule", "NoExecute")

TRANSIENT_TAINTS = "node.kubernetes.io/"
"""Taints with this prefix come and go with a node's condition; a job may wait longer than they
last."""

_BUSY_STATES = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint; effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """One of `status.conditions`, without its times: a heartbeat changes nothing here."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocatable:
    """`status.allocatable`: what pods may use, in the units of `demand.Demand`."""

    milli_cpu: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    pods: int = 0
    extended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeNodeFacts:
    """A Kubernetes node, reduced to what decisions need."""

    name: KubeNode
    uid: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    """`spec.unschedulable`: cordoned."""
    is_ready: bool = True
    """Condition Ready is True."""
    is_deleting: bool = False
    conditions: tuple[NodeCondition, ...] = ()
    allocatable: Allocatable = field(default_factory=Allocatable)
    internal_ip: str = ""
    """The first address of type InternalIP; "" while the kubelet has reported none."""

    @property
    def about(self) -> About:
        """The node, for an Event about it."""
        return About(kind="Node", name=self.name, uid=self.uid)

    def condition(self, kind: str) -> NodeCondition | None:
        """Return the condition of that type, or None."""
        return next((c for c in self.conditions if c.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodeFacts:
    """A Slurm node as slurmrestd reports it."""

    name: SlurmNode
    states: frozenset[str] = frozenset()
    """Base state and flags: IDLE, MIXED, DRAIN, EXTERNAL, NOT_RESPONDING …"""
    cpus: int = 0
    memory_mib: int = 0
    features: tuple[str, ...] = ()
    gres: str = ""
    """As configured: `gpu:a100:4`."""
    address: str = ""
    alloc_cpus: int = 0
    """slurmctld counts lazily: may be a second old."""
    alloc_memory_mib: int = 0
    reason: str = ""
    """Why it is drained or down, without Slurm's `[user@time]`; "" if there is no reason."""
    reason_by: str = ""
    """The Slurm user who set it."""
    reason_at: datetime | None = None
    reservation: str = ""
    """The reservation it is in now."""
    partitions: tuple[str, ...] = ()
    topology: str = ""
    weight: int = 1
    threads_per_core: int = 1
    offered_cpus: int = 0
    """Without those that CoreSpecCount reserves for the system."""
    offered_memory_mib: int = 0
    """Without what MemSpecLimit reserves for the system."""

    @property
    def is_external(self) -> bool:
        """True if it has no slurmd: a bridge created the record."""
        return "EXTERNAL" in self.states

    @property
    def is_busy(self) -> bool:
        """True if jobs use it, by counters that may be a second old; Slurm itself refuses to delete a busy node."""
        return bool(self.alloc_cpus or self.alloc_memory_mib or self.states & _BUSY_STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodeSpec:
    """An external node to create in Slurm; CPUs, memory and GRES cannot be changed later: drain, delete, create."""

    name: SlurmNode
    address: str
    """The machine's address: a name that does not resolve stalls slurmctld for 10 s at every job
    start."""
    cpus: int
    memory_mib: int
    features: tuple[str, ...] = ()
    """Includes the partition's feature: membership does not follow a feature that is changed
    later."""
    gres: str = ""
    """`gpu:a100:4`; Slurm silently drops a name that is not in GresTypes."""
    gres_conf: str = ""
    """`count=4,name=gpu,type=a100,file=gpu-0,file=gpu-1,…`: required with `gres`; the files need
    not exist."""
    topology: str = ""
    """`topo-switch:s1`."""
    weight: int = 1
    """Slurm fills the nodes of the lowest weight first."""
    threads_per_core: int = 1
    """Above 1, Slurm allocates whole cores, that many CPUs at a time."""


def slurm_name(kube_node: KubeNodeFacts) -> SlurmNode:
    """Return a Kubernetes node's name in Slurm: its label's value, otherwise the same name."""
    return SlurmNode(kube_node.labels.get(names.SLURM_NODE_NAME_LABEL) or kube_node.name)


def is_external(kube_node: KubeNodeFacts) -> bool:
    """Check whether an administrator wants an external Slurm node for it: the label has any value but "false"."""
    return not kube_node.is_deleting and _says_yes(kube_node, names.EXTERNAL_NODE_LABEL)


def is_hybrid(kube_node: KubeNodeFacts) -> bool:
    """Check whether the machine also runs a slurmd, whose record in Slurm we only mark; this label wins over the external one."""
    return not kube_node.is_deleting and _says_yes(kube_node, names.HYBRID_NODE_LABEL)


def is_wanted(kube_node: KubeNodeFacts | None) -> bool:
    """Check whether Slurm should place pods on it, in either way."""
    return kube_node is not None and (is_external(kube_node) or is_hybrid(kube_node))


def holder(claimants: Iterable[KubeNodeFacts]) -> KubeNodeFacts | None:
    """Return the Kubernetes node behind one Slurm name; None if there is none.

    Every process picks the same one: a wanted node first, then the one whose condition says that Slurm has
    it, then by name.
    """
    return min(
        claimants,
        key=lambda node: (not is_wanted(node), not _is_reported(node), node.name),
        default=None,
    )


def _is_reported(kube_node: KubeNodeFacts) -> bool:
    condition = kube_node.condition(names.SLURM_STATE_CONDITION)
    return condition is not None and condition.reason != NAME_TAKEN


def _says_yes(kube_node: KubeNodeFacts, label: str) -> bool:
    return kube_node.labels.get(label, "false") != "false"


def cluster_feature(cluster: ClusterId) -> str:
    """Return the feature that marks a Slurm node as this cluster's; a node without it is never touched."""
    return f"{names.CLUSTER_FEATURE}={cluster}"


def lasting_taints(kube_node: KubeNodeFacts) -> tuple[Taint, ...]:
    """Return the taints that keep pods off for good."""
    return tuple(
        taint
        for taint in kube_node.taints
        if taint.effect in HARD_EFFECTS
        and not taint.key.startswith(TRANSIENT_TAINTS)
        and taint.key != names.MANAGED_NODE_TAINT
    )


def taints_feature(kube_node: KubeNodeFacts) -> str:
    """Return the feature that stands for the node's lasting taints: a short digest."""
    taints = sorted({f"{t.key}={t.value}:{t.effect}" for t in lasting_taints(kube_node)})
    digest = hashlib.sha256(",".join(taints).encode()).hexdigest()[:12] if taints else "none"
    return f"{names.TAINTS_FEATURE}={digest}"


def topology_parts(text: str) -> frozenset[str]:
    """Return the parts of `topo-switch:s1,topo-block:b1`; their order does not matter."""
    return frozenset(filter(None, map(str.strip, text.split(","))))


def is_parked(slurm_node: SlurmNodeFacts) -> bool:
    """Check whether it may lack its partitions."""
    return names.PARKED_FEATURE in slurm_node.features


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReservation:
    """A reservation of nodes, existing or desired."""

    name: str
    start: datetime
    end: datetime
    nodes: frozenset[str]
    flags: frozenset[str] = frozenset()
    """MAINT, DAILY and so on; Slurm adds some of its own."""
