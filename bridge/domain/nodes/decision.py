"""What is decided about one node: the facts, the settings, and the answer, as values."""

from dataclasses import dataclass, field
from datetime import timedelta

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.nodes.actions import NodeAction
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.release import Companion
from bridge.domain.nodes.spec import Publishing
from bridge.domain.nodes.state import NodeRules
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The administrator's settings."""

    publishing: Publishing
    policy: NodeRules = field(default_factory=NodeRules)
    scheduler_name: str = names.SCHEDULER_NAME
    taint_effect: str = "NoSchedule"
    """"" means no taint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRefusal:
    """Slurm refused a node as described."""

    spec: SlurmNodeSpec
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node as both sides have it now."""

    kube_node: KubeNodeFacts | None
    """None if no Kubernetes node stands behind this Slurm node."""
    slurm_node: SlurmNodeFacts | None
    """None if Slurm has no node of that name."""
    name: SlurmNode | None = None
    """That name, if `named_by` was looked up."""
    daemons: Demand = field(default_factory=lambda: demand.total([]))
    """The total demand (`demand.total`) of the pods that belong to the node: DaemonSets' and static
    ones."""
    is_given_up: bool = False
    """It has pods of ours, and Kubernetes is deleting all of them."""
    is_crashed: bool = False
    """It had pods of ours, and all of them were lost with the machine."""
    named_by: tuple[SlurmJob, ...] | None = ()
    """Live placeholders of ours that name it, as required or as excluded; None if that is not
    certain yet."""
    hold: Hold = Hold.HELD
    """Whether Slurm holds the node for the pods that run there."""
    leader: SlurmNode | None = None
    """The node whose pass releases this one with others; None if this one's own pass does."""
    companions: tuple[Companion, ...] = ()
    """The other nodes that this node's pass releases with it (`bridge.domain.nodes.release`)."""
    refusal: NodeRefusal | None = None
    """Slurm's latest refusal; None if it refused nothing."""
    reason_age: timedelta | None = None
    """How long ago the reason of its drain was set; None if Slurm does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision:
    """The actions for one node, in order, and the reason in one sentence."""

    actions: tuple[NodeAction, ...] = ()
    reason: str
    wanted: SlurmNodeSpec | None = None
    """The description that the actions lead to; Slurm may refuse it."""
    again: timedelta | None = None
    """When to look again if no event will announce what the node is waiting for."""
