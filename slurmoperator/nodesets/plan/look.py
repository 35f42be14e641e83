"""Everything that one look at a NodeSet is planned from, and what came of it: plain values, without I/O and without decisions.

`nodesets.gathering` makes the readings, `nodesets.preparation` what the facts have besides, `planning` the plan, `nodesets.actuator` the outcome, and `status` reports all three.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurmoperator.nodesets import names
from slurmoperator.nodesets.conf_trials import ConfTrial
from slurmoperator.nodesets.pod_conditions import node_states
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import Truth, UntimedCondition
from slurmoperator.objects.workers import OnNode, WorkerKey, is_on_nodes
from slurmoperator.workers.situation import WorkerObservation, WorkerPod
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import numbers
from slurmruntime.values.errors import PeerError
from slurmruntime.values.ids import SlurmNode

_HIGHEST_ORDINAL = 10**10
_HIGHEST_COST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why a NodeSet gets no workers."""

    reason: str
    """The reason of the condition, in CamelCase."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfInForce:
    """The `extraConf` that workers get."""

    node_set: NodeSetObject
    """The NodeSet with the `extraConf` that workers get."""
    accepted: str | None
    """What slurmctld last accepted; None if nothing was ever tried."""
    truth: Truth
    reason: str
    text: str

    @property
    def refusal(self) -> Objection | None:
        """Why there are no new workers; None if there may be."""
        is_refused = self.truth == "False" and self.accepted is None
        return Objection(reason="BadInput", text=self.text) if is_refused else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One version of a pod that the NodeSet owns; computed once, as most pods stay the same from look to look."""

    version: WorkerPodObject
    key: WorkerKey | None
    """The key of its worker; None if its name is not one of ours."""
    worker: WorkerPod
    slurm_node: str
    """Its name in Slurm."""
    kube_node: str
    """The Kubernetes node that it is bound to, or ""."""
    ready_since: datetime | None
    """Since when it has been ready; None if it is not ready or the time is unknown."""
    revision: str
    """The hash of the template that it was made from."""
    deletion_cost: int
    is_cordoned: bool
    """Somebody has cordoned the pod itself."""
    shown: Mapping[str, str | None]
    """The conditions about its Slurm node that it has; see `node_states.current_conditions`."""

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.version.metadata.name


def pod_facts(node_set: str, pod: WorkerPodObject) -> PodFacts:
    """Return the facts of a pod that the NodeSet of this name owns."""
    annotations = pod.metadata.annotations
    return PodFacts(
        version=pod,
        key=worker_key(node_set, pod),
        worker=pod.facts,
        slurm_node=pod.slurm_node,
        kube_node=pod.kube_node,
        ready_since=pod.ready_since,
        revision=pod.metadata.labels.get(names.DIGEST_LABEL, ""),
        deletion_cost=_cost(annotations.get(names.DELETION_COST_ANNOTATION, "")),
        is_cordoned=annotations.get(names.POD_CORDON_ANNOTATION) == "true",
        shown=node_states.current_conditions(pod.status.conditions or ()),
    )


def worker_key(node_set: str, pod: WorkerPodObject) -> WorkerKey | None:
    """Return the key of a pod's worker; None if its name is not one of the NodeSet's."""
    if kube_node := pod.metadata.annotations.get(names.KUBE_NODE_ANNOTATION):
        return OnNode(kube_node=kube_node, host=pod.slurm_node)
    prefix, _, number = pod.metadata.name.rpartition("-")
    if prefix != node_set or not number.isascii():
        return None
    return numbers.integer(number, most=_HIGHEST_ORDINAL)


def _cost(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    cost = numbers.integer(text.removeprefix("-"), most=_HIGHEST_COST) if text else None
    return sign * (cost or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFacts:
    """What the last reading of its Slurm says."""

    trouble: str | None
    """Why the state of Slurm is unknown; "" if it is known, None before the first try."""
    nodes: Mapping[str, SlurmNodeFacts] = field(default_factory=dict)
    """All nodes of the last reading, which may be incomplete if there is trouble."""
    observations: Mapping[str, WorkerObservation] = field(default_factory=dict)
    """What is reliably known of the nodes of existing pods, if jobs do not matter."""
    has_jobs: bool = False
    """The reading includes jobs."""
    free_at: Mapping[SlurmNode, datetime | None] = field(default_factory=dict)
    """When the last job of a node reaches its time limit; None if that is unknown."""

    @property
    def is_known(self) -> bool:
        """Whether a node that is not listed is surely not in Slurm."""
        return self.trouble == ""

    def listed(self, node: str) -> SlurmNodeFacts | None:
        """Return a node as in the last reading; None if Slurm has no such node, or its state is unknown."""
        return self.nodes.get(node) if self.is_known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of acting on a plan, or of one step of that."""

    failures: tuple[PeerError, ...] = ()
    refused: str = ""
    """Why no pod can be made from the NodeSet; "" if one can, or if none had to be made."""
    notes: tuple[str, ...] = ()
    """Texts about requests that Slurm refuses."""
    deleted_claims: tuple[str, ...] = ()
    """Texts about workers' PVCs that are being deleted."""
    delays: tuple[timedelta, ...] = ()
    """When more is due without an event."""
    reservation: UntimedCondition | None = None
    """What to report about it; None if there is no reservation and none is needed."""
    is_reservation_known: bool = False
    """If not, the last condition stays."""

    def __add__(self, other: "Outcome") -> "Outcome":
        """Return the outcome of two steps, one after the other."""
        return Outcome(
            failures=(*self.failures, *other.failures),
            refused=self.refused or other.refused,
            notes=(*self.notes, *other.notes),
            deleted_claims=(*self.deleted_claims, *other.deleted_claims),
            delays=(*self.delays, *other.delays),
            reservation=self.reservation or other.reservation,
            is_reservation_known=self.is_reservation_known or other.is_reservation_known,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationResult:
    """The result of a preparation."""

    revision: str
    collisions: int
    """How often another template already had the hash."""
    is_stored: bool = True
    """The revision is stored: otherwise no worker is replaced."""
    key_step: int = 0
    """The version of the daemons' key, which is part of the revision."""
    refusal: Objection | None = None
    """Why it gets no new workers, such as an object of another owner that they would need."""
    template_fault: str = ""
    """Why no pod can be made from its template; not checked, and "", while all pods have it."""
    outcome: Outcome = field(default_factory=Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetReadings:
    """What caches and the last reading of Slurm say about a NodeSet."""

    pods: tuple[PodFacts, ...]
    """All pods that it owns."""
    slurm: SlurmFacts
    kube_nodes: Mapping[str, KubeNodeFacts] = field(default_factory=dict)
    """The Kubernetes nodes of its pods and pins; all nodes if each fitting one gets a worker."""
    unreadable_nodes: frozenset[str] = frozenset()
    """Names of Kubernetes nodes that exist but cannot be read."""
    others: tuple[NodeSetObject, ...] = ()
    """The other NodeSets of its Slurm, whose workers may have the same names."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The host names of all workers' pods in its namespace, and the name of another NodeSet's pod with that, or "".

    Gathered only if each fitting Kubernetes node gets a worker.
    """
    trial: ConfTrial | None = None
    """Whether slurmctld accepts its `extraConf`; None if that has not been tried."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetFacts(NodeSetReadings):
    """Everything that the plan for one NodeSet depends on."""

    conf: ConfInForce
    """The NodeSet with the `extraConf` that workers get."""
    prepared: PreparationResult

    @property
    def node_set(self) -> NodeSetObject:
        """The NodeSet with the `extraConf` that workers get."""
        return self.conf.node_set

    @property
    def is_leaving(self) -> bool:
        """Whether the NodeSet is being deleted."""
        return self.node_set.metadata.deletion_timestamp is not None

    @property
    def is_on_nodes(self) -> bool:
        """Whether there is one worker on each fitting Kubernetes node."""
        return is_on_nodes(self.node_set)

    @property
    def template_fault(self) -> str:
        """Why no pod can be made from its template, or ""."""
        return self.prepared.template_fault

    def is_current(self, pod: PodFacts) -> bool:
        """Check whether a pod was made from the template in force."""
        return pod.revision == self.prepared.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What one NodeSet needs to know of its Slurm."""

    nodes: frozenset[str]
    """Wake it when one of them changes."""
    jobs: bool
    """It matters which of them have jobs: wake it at every reading that shows that."""
