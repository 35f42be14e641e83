"""What is decided about one node: the facts, the settings, and the answer, as values."""

from dataclasses import dataclass, field
from datetime import timedelta

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.nodes.actions import NodeAction
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.spec import Publishing, Record
from bridge.domain.nodes.state import NodeRules, Standing
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts, SlurmNodeSpec
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode

BUSY_AGAIN = timedelta(seconds=5)
"""Delay after Slurm refused to delete a node (a job has just started there, or a reservation names
it), or to create one because the name exists."""


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
class Companion:
    """A node that has to be released together with others."""

    name: SlurmNode
    slurm_node: SlurmNodeFacts | None
    """None if Slurm has no such node, or it is not known yet."""
    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One node as both sides have it now."""

    name: SlurmNode
    """Its name in Slurm."""
    kube_node: KubeNodeFacts | None
    """None if no Kubernetes node stands behind this Slurm node."""
    slurm_node: SlurmNodeFacts | None
    """None if Slurm has no node of that name."""
    is_confirmed: bool
    """The node itself was read from Slurm; otherwise it comes from a list, which may be stale."""
    rivals: tuple[KubeNodeFacts, ...] = ()
    """Kubernetes nodes that want the same name in Slurm."""
    daemons: Demand = field(default_factory=lambda: demand.total([]))
    """The total demand (`demand.total`) of the pods that belong to the node: DaemonSets' and static
    ones."""
    is_given_up: bool = False
    """It has pods of ours, and Kubernetes is deleting all of them."""
    is_crashed: bool = False
    """It had pods of ours, and all of them were lost with the machine."""
    named_by: tuple[SlurmJob, ...] | None = ()
    """Live placeholders of ours that name it, as required or as excluded, if it leaves Slurm or has
    left; None if that is not certain yet."""
    hold: Hold = Hold.HELD
    """Whether Slurm holds the node for the pods that run there."""
    has_tenants: bool = False
    """Containers of pods of ours may run there, now or in a moment."""
    idle_for: timedelta = timedelta()
    """How long Slurm has had no job there, as far as we have seen."""
    leader: SlurmNode | None = None
    """The node whose look releases this one with others; None if this one's own look does."""
    companions: tuple[Companion, ...] = ()
    """The other nodes that this node's look releases with it (`bridge.domain.nodes.parking`)."""
    refusal: NodeRefusal | None = None
    """Slurm's latest refusal; None if it refused nothing, or so long ago that it is tried again."""
    retry: timedelta | None = None
    """How long until that is tried again; None if there is no refusal."""
    reason_age: timedelta | None = None
    """How long ago the reason of its drain was set; None if Slurm does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What to do about one node, and the reason in one sentence."""

    actions: tuple[NodeAction, ...] = ()
    """In this order; one that Slurm is not ready for ends them."""
    rivals: tuple[NodeAction, ...] = ()
    """What the nodes that want the same name are told, before that."""
    confirm: tuple[SlurmNode, ...] = ()
    """Nodes to read from Slurm first: the next step cannot be undone, and the facts may be stale.
    Nothing else is planned then."""
    reason: str
    wanted: SlurmNodeSpec | None = None
    """The description that the actions lead to, if a refusal of it would be new."""
    again: timedelta | None = None
    """When to look again if no event will announce what the node is waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """What came of a plan."""

    again: timedelta | None
    """When to look again if no event comes first."""
    refusal: NodeRefusal | None = None
    """Slurm refused the description that the actions lead to."""


@dataclass(frozen=True, slots=True)
class Case:
    """A node that Kubernetes wants in Slurm, and what is worked out about it once."""

    facts: NodeFacts
    settings: NodeSettings
    kube_node: KubeNodeFacts
    wanted: SlurmNodeSpec
    record: Record
    standing: Standing
    is_refused: bool
    """Slurm has refused just this description."""


@dataclass(frozen=True, slots=True)
class RecordCase(Case):
    """A node that is in Slurm already."""

    slurm_node: SlurmNodeFacts
