"""One leader: its caches, its books, and hands that may fail between any two writes."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.decision import Actor, Deadlines, Decision, Facts
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.deletions import Deletions
from bridge.domain.observation.dwell import TimeInState
from bridge.domain.observation.view import Book, Past
from bridge.domain.request import fit
from slurmruntime.values.ids import WorkloadKey, alone_key
from tests.properties.cluster_model import KUBE_NODES, UID, Cluster

POLICY = Deadlines()
QUIET_S = 10.0


class Fault(enum.Enum):
    """What happens to one write."""

    REQUEST_LOST = "it never arrived"
    REPLY_LOST = "it was done, and we do not know"
    LATE = "it was given up, and is done later"
    DEATH = "it was done, and we died"
    LATE_DEATH = "it is done later, and we died"


@dataclass(frozen=True, slots=True)
class Reading:
    """A look at Slurm."""

    began_monotonic: float
    by_key: dict[WorkloadKey, tuple[SlurmJob, ...]]
    is_whole: bool = True
    unsure: frozenset[WorkloadKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Write:
    """One request, as an agent makes it."""

    do: Callable[[], None]
    to_slurm: bool = False
    is_submit: bool = False


@dataclass(slots=True)
class Agent:
    """The leader of the extender or of the controllers, or one that does not know yet that it was deposed."""

    name: str
    actor: Actor
    is_first: bool
    is_deposed: bool = False
    pod: Pod | None = None
    """Its cache: it lags."""
    book: Book = field(default_factory=lambda: Book(quiet_s=QUIET_S))
    dwell: TimeInState = field(default_factory=TimeInState)
    deletions: Deletions = field(default_factory=Deletions)
    under_way: Reading | None = None
    latest: Reading | None = None
    """All placeholders as it last read them, whoever owns their pods."""

    def reads(self, reading: Reading) -> None:
        """A look at Slurm is over."""
        self.latest = reading
        self.book.read(reading)

    def sees(self, pod: Pod | None, now: float) -> None:
        """The watch catches up."""
        self.pod = pod
        if pod is None:
            self.book.forget(alone_key(UID))
            self.book.forget_pod(UID)
            self.dwell.forget(UID)
            self.deletions.forget(UID)
            return
        self.deletions.see(pod)
        if lifecycle.actor(pod) is self.actor:
            self.book.meet(alone_key(UID), self.past, at=now)

    @property
    def past(self) -> Past:
        if not self.is_first:
            return Past.IN_FLIGHT
        return Past.NOTHING if self.actor is Actor.EXTENDER else Past.HANDED_OVER

    def decides(self, cluster: Cluster, now: datetime) -> tuple[Facts, Decision] | None:
        """As the services do: gather, decide."""
        if self.pod is None or lifecycle.actor(self.pod) is not self.actor:
            return None
        pod = self.deletions.with_first(self.pod)
        view = self.book.view(alone_key(UID), pod=UID, version=pod.resource_version)
        gone = pod.kube_node in cluster.lost_nodes
        job = lifecycle.placeholder(pod, view)
        slurm_node = job.nodes[0] if job is not None and job.nodes else None
        known = slurm_node is not None and slurm_node not in cluster.unknown_nodes
        kube_node = KUBE_NODES[slurm_node] if slurm_node is not None and known else None
        since = self.dwell.since(UID, lifecycle.cell(pod, view, node_is_gone=gone), now)
        facts = Facts(
            pod=pod,
            view=view,
            now=now,
            since=since,
            unbindable_since=since if cluster.is_unbindable else None,
            kube_node=kube_node,
            fit=cluster.fits[kube_node] if kube_node else None,
            shortfall=fit.shortfall(pod, job, 0, {}) if job is not None else "",
            node_is_gone=gone,
        )
        return facts, lifecycle.decide(facts, POLICY)
