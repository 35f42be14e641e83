"""A pod as the API server reports it, reduced to what decisions need."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.domain.caps import Sizes
from bridge.domain.model import demand, grant
from bridge.domain.model.claims.values import PodClaim
from bridge.domain.model.demand import Demand
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from slurmruntime.model.affinity import NodeTerm, Toleration
from slurmruntime.model.objects import Owner
from slurmruntime.values import names, numbers
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import (
    LONGEST_WORKLOAD_KEY,
    JobId,
    KubeNode,
    PodUid,
    Sluid,
    WorkloadKey,
    alone_key,
)
from slurmruntime.values.oddities import About


class Phase(enum.Enum):
    """The pod's `status.phase`.

    <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase>
    """

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class ContainerState(enum.Enum):
    """The member of `containerStatuses[].state` that is set; WAITING also before any report."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container and the kubelet's last report of it."""

    name: str
    state: ContainerState = ContainerState.WAITING
    reason: str = ""
    """The state's reason: `OOMKilled`, `Error`, `ImagePullBackOff` …"""
    message: str = ""
    exit_code: int | None = None
    """Set when TERMINATED. The kubelet reports signal n as 128 + n, but may set `signal`
    instead."""
    signal: int = 0
    finished_at: datetime | None = None
    """When TERMINATED: `finishedAt`, whole seconds of the kubelet's clock."""
    started_before: bool = False
    """It has run at least once (running, terminated with a start time, or restarted)."""
    restartable_init: bool = False
    """A sidecar: an init container with `restartPolicy: Always`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A pod condition: status is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of ours: it carries our gate, finalizer or schedulerName."""

    uid: PodUid
    namespace: str
    name: str
    resource_version: str = ""
    created_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Owner | None = None
    gates: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    scheduler_name: str = names.SCHEDULER_NAME
    priority_class: str = ""
    scheduling_group: str = ""
    """`spec.schedulingGroup.podGroupName`: the in-tree PodGroup it belongs to; "" for none."""
    demand: Demand = field(default_factory=Demand)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] = ()
    """`requiredDuringSchedulingIgnoredDuringExecution`: alternatives; empty means any node."""
    has_affinity: bool = False
    """`spec.affinity` is set, of whatever kind: a patch must extend it, not replace it."""
    has_node_affinity: bool = False
    """`spec.affinity.nodeAffinity` is set, if only with preferences."""
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[tuple[str, int, str], ...] = ()
    """(protocol, port, host IP) of every port taken on the node."""
    claims: tuple[str, ...] = ()
    """The PersistentVolumeClaims it uses, by name."""
    resource_claims: tuple[PodClaim, ...] = ()
    kube_node: KubeNode | None = None
    """`spec.nodeName`: set once bound."""
    phase: Phase = Phase.PENDING
    reason: str = ""
    """`status.reason`: Evicted, NodeLost …"""
    start_time: datetime | None = None
    """`status.startTime`: the kubelet has accepted the pod."""
    deadline_s: int | None = None
    """`spec.activeDeadlineSeconds`."""
    grace_s: int = 30
    """`spec.terminationGracePeriodSeconds`."""
    restart_policy: str = "Always"
    deletion_at: datetime | None = None
    """`metadata.deletionTimestamp`: when the grace period ends (or ended); None while the pod may
    live."""
    deletion_grace_s: int = 0
    """`metadata.deletionGracePeriodSeconds`: the deletion was requested this long before
    `deletion_at`."""
    deletion_asked_at: datetime | None = None
    """When the deletion was requested, if an earlier version of the pod showed it (`deletions`)."""
    containers: tuple[Container, ...] = ()
    """Init containers first, then the others, each in spec order."""
    conditions: tuple[Condition, ...] = ()
    sizes: Sizes = field(default_factory=Sizes)
    oddities: tuple[Fault, ...] = ()
    """What the API server accepted and we cannot use as it is, and what we made of it."""

    @property
    def full_name(self) -> str:
        """`namespace/name`, for people."""
        return f"{self.namespace}/{self.name}"

    @property
    def about(self) -> About:
        """How an Event refers to it."""
        return About(kind="Pod", namespace=self.namespace, name=self.name, uid=self.uid)

    @property
    def is_gated(self) -> bool:
        """True while our gate is on: the extender's leader owns the pod."""
        return names.GATE in self.gates

    @property
    def has_foreign_gate(self) -> bool:
        """True while a gate that is not ours is on: a node from Slurm would not let it start."""
        return any(gate != names.GATE for gate in self.gates)

    @property
    def has_our_finalizer(self) -> bool:
        """True while a placeholder may exist."""
        return names.FINALIZER in self.finalizers

    def is_ours(self, scheduler_name: str) -> bool:
        """Check whether the webhook has handed it to us, or it asks for our scheduler."""
        asks_for_us = self.scheduler_name in names.schedulers(scheduler_name)
        return asks_for_us or self.has_our_finalizer or self.is_gated

    @property
    def is_for_binder(self) -> bool:
        """True if no kube-scheduler handles it: the extender's leader binds it itself."""
        return names.is_binder(self.scheduler_name)

    @property
    def bound_by(self) -> str:
        """Who binds it, for people."""
        return "slurm-bridge's extender" if self.is_for_binder else "kube-scheduler"

    @property
    def is_deleting(self) -> bool:
        """True once it was deleted; it stays until grace period and finalizers are over."""
        return self.deletion_at is not None

    @property
    def deletion_requested_at(self) -> datetime | None:
        """When its deletion was requested; a later request with a shorter grace moves both fields equally.

        The exception is the kubelet's last request: from then on the moment is lost, unless an
        earlier version is remembered. With a grace of centuries the two fields contradict each
        other; the deletion cannot predate the pod.
        """
        if self.deletion_at is None:
            return None
        grace = timedelta(seconds=numbers.seconds(self.deletion_grace_s))
        asked_at = max(numbers.moment(self.deletion_at) - grace, self.created_at)
        return min(asked_at, self.deletion_asked_at or asked_at)

    @property
    def is_terminal(self) -> bool:
        """True once it has ended and will not run again."""
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    @property
    def is_bound(self) -> bool:
        """True once it has a node for good."""
        return self.kube_node is not None

    @property
    def assigned_node(self) -> KubeNode | None:
        """The node Slurm chose, as we recorded it."""
        node = self.annotations.get(names.NODE_ANNOTATION)
        return KubeNode(node) if node else None

    @property
    def workload(self) -> WorkloadKey:
        """For a placed pod: the workload it was placed with; its own key if placed alone.

        If the annotation names another workload than the recorded grant, it was changed by hand,
        and the grant counts: only under its key is the placeholder found. For a pod whose annotation
        says it was placed alone, the grant is not parsed, which saves time; if the annotation is
        wrong, nothing is restored (`lifecycle.rules.lost`).
        """
        placed_with = self.annotations.get(names.WORKLOAD_ANNOTATION)
        if not placed_with or placed_with == self.uid:
            return alone_key(self.uid)
        key = self.grant[0].key if self.grant else WorkloadKey(placed_with)
        return key if len(key) <= LONGEST_WORKLOAD_KEY else alone_key(self.uid)

    @property
    def rank(self) -> int | None:
        """For a placed member of a gang: its slot in the allocation."""
        text = self.annotations.get(names.RANK_ANNOTATION, "")
        return numbers.integer(text)

    @property
    def job_id(self) -> JobId | None:
        """The placeholder's id from our label: a cache, verified by the placeholder's identity."""
        number = numbers.integer(self.labels.get(names.JOB_ID_LABEL, ""))
        return None if number is None else JobId(number)

    @property
    def sluid(self) -> Sluid | None:
        """The placeholder's SLUID as recorded; None if Slurm has none (data parser v0.0.43)."""
        text = self.annotations.get(names.SLUID_ANNOTATION)
        return Sluid(text) if text else None

    @property
    def placed_by(self) -> str:
        """The placeholder it was placed by: the SLUID, else the job id; "" if there is neither."""
        return self.sluid or self.labels.get(names.JOB_ID_LABEL, "")

    @property
    def grant(self) -> tuple[Identity, Grant] | None:
        """The identity and grant of its placeholder; None if they are not recorded on the pod."""
        return grant.decode(self.annotations.get(names.GRANT_ANNOTATION, ""))

    @property
    def when_lost(self) -> str:
        """The operator's decision, `restore` or `let-go`; "" while there is none."""
        return self.annotations.get(names.WHEN_LOST_ANNOTATION, "")

    @property
    def has_started(self) -> bool:
        """True once one of its containers has run."""
        return self.phase is not Phase.PENDING or any(c.started_before for c in self.containers)

    @property
    def containers_are_gone(self) -> bool:
        """True if none of its containers runs.

        Either the pod was never bound, or every container that ever started is reported as
        terminated.
        """
        return not self.is_bound or not any(
            c.state is ContainerState.RUNNING
            or (c.state is ContainerState.WAITING and c.started_before and not self.is_terminal)
            for c in self.containers
        )

    @property
    def troubles(self) -> list[str]:
        """Say why containers do not run, as the kubelet reports it."""
        return [f"{c.name}: {c.reason} {c.message}".strip() for c in self.containers if c.reason]

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, or None."""
        return next((c for c in self.conditions if c.type == kind), None)

    def waiting_time(self, now: datetime) -> timedelta:
        """Return the time since CREATE."""
        return now - self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPod:
    """Any pod that has a node, ours or not, as Kubernetes' accounting charges it to the node."""

    uid: PodUid
    namespace: str
    name: str
    resource_version: str = ""
    kube_node: KubeNode
    owner: Owner | None = None
    demand: Demand = field(default_factory=Demand)
    host_ports: tuple[tuple[str, int, str], ...] = ()
    """(protocol, port, host IP), as in `Pod`."""
    is_deleting: bool = False
    """It is going away, but counts until its containers are gone."""
    is_terminal: bool = False
    """Succeeded or Failed: kube-scheduler no longer charges it."""
    is_of_the_node: bool = False
    """A DaemonSet's or a static pod: it comes back wherever the node is, so Slurm's share of the
    node excludes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Pods that get the same node at the same time, added up as one."""

    demand: Demand = field(default_factory=lambda: demand.total([]))
    host_ports: tuple[tuple[str, int, str], ...] = ()
    """Each once: the members of a gang mostly ask for the same."""

    def joined_by(self, pod: Pod) -> "Neighbours":
        """Add one more."""
        return Neighbours(
            demand=demand.total((self.demand, pod.demand)),
            host_ports=tuple(dict.fromkeys((*self.host_ports, *pod.host_ports))),
        )


NOBODY = Neighbours()
