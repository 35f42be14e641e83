"""Nodes as both worlds report them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.domain import names
from bridge.domain.ids import ClusterId, KubeNode, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint; effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str


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
    allocatable: Allocatable = field(default_factory=Allocatable)
    internal_ip: str = ""
    """The first address of type InternalIP; "" while the kubelet has reported none."""


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
    """Lazily counted by slurmctld: may be a second old."""
    alloc_memory_mib: int = 0
    reason: str = ""
    """Why it is drained or down, without Slurm's `[user@time]`."""
    topology: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodeSpec:
    """An external node to create in Slurm. CPUs, memory and GRES cannot be changed later: drain, delete, create."""

    name: SlurmNode
    address: str
    """Of the machine: a name that does not resolve stalls slurmctld for 10 s at every job start."""
    cpus: int
    memory_mib: int
    features: tuple[str, ...] = ()
    """The partition's feature among them: membership does not follow a feature that is changed later."""
    gres: str = ""
    """`gpu:a100:4`; a name that is not in GresTypes is silently dropped by Slurm."""
    gres_conf: str = ""
    """`count=4,name=gpu,type=a100,file=gpu-0,file=gpu-1,…`: required with `gres`, the files need not exist."""
    topology: str = ""
    """`topo-switch:s1`."""
    weight: int = 1
    """Slurm fills the nodes of the lowest weight first."""


def slurm_name(kube_node: KubeNodeFacts) -> SlurmNode:
    """Slurm's name of a Kubernetes node: its label says it, otherwise they are the same."""
    return SlurmNode(kube_node.labels.get(names.SLURM_NODE_NAME_LABEL) or kube_node.name)


def cluster_feature(cluster: ClusterId) -> str:
    """The feature that marks a Slurm node as this cluster's; what does not carry it is never touched."""
    return f"{names.CLUSTER_FEATURE}={cluster}"
