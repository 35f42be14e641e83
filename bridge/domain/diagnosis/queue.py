"""Slurm's queue as shown to people: every job, ours or not, with what determines its turn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Phase, Pod
from slurmruntime.values import names, numbers
from slurmruntime.values.ids import JobId, SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One job of `squeue`."""

    id: JobId
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    """Several are separated by commas: the job takes the first that can start it."""
    qos: str = ""
    state: str = ""
    """Base state: PENDING, RUNNING …"""
    phase: JobPhase
    reason: str = ""
    """Slurm's state reason; "" if Slurm reports None."""
    reason_text: str = ""
    priority: int = 0
    """0: held."""
    tres: str = ""
    """What it requests, as Slurm writes it: `cpu=4,mem=8G,node=1,gres/gpu=2`."""
    nodes: tuple[SlurmNode, ...] = ()
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    """For a waiting job, the back-fill scheduler's estimate."""
    ends_at: datetime | None = None
    identity: Identity | None = None
    """Set for a placeholder."""

    @property
    def partitions(self) -> frozenset[str]:
        """Return where it may run."""
        return frozenset(self.partition.split(","))

    @property
    def gpus(self) -> int:
        """Return how many GPUs it requests."""
        for part in self.tres.split(","):
            key, _, count = part.partition("=")
            if key == "gres/gpu" and (gpus := numbers.integer(count)) is not None:
                return gpus
        return 0


def ahead_of(job: QueuedJob, queue: Iterable[QueuedJob]) -> Sequence[QueuedJob]:
    """Return the waiting jobs ahead of this one in any of its partitions.

    They have a higher priority, or the same priority and a lower id. Back-fill may still start a
    small job earlier.
    """
    first = (
        other
        for other in queue
        if other.phase is JobPhase.WAITING
        and other.id != job.id
        and other.priority > 0
        and other.partitions & job.partitions
        and (-other.priority, other.id) < (-job.priority, job.id)
    )
    return sorted(first, key=lambda other: (-other.priority, other.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A workload and its placeholder, side by side."""

    namespace: str
    workload: str
    """`Pod/train`, `Job/sweep` …"""
    pods: int
    """The pods that exist now."""
    running: int
    """How many of these are running."""
    job: JobId | None = None
    """None if Slurm has no placeholder or was not asked."""
    state: str = ""
    """Slurm's base state; "" without a placeholder."""
    reason: str = ""
    """Why it waits, as Slurm's reason; for a pod without a placeholder, its condition's."""
    user: str = ""
    account: str = ""
    partition: str = ""
    priority: int | None = None
    gpus: int = 0
    nodes: tuple[SlurmNode, ...] = ()
    age: timedelta
    start: datetime | None = None
    """When it started; while it waits, the estimate."""


def entries(
    pods: Iterable[Pod], queue: Sequence[QueuedJob] | None, now: datetime
) -> Sequence[QueueEntry]:
    """Join live pods and placeholders: the waiting ones in Slurm's order, then the running ones."""
    alive = {pod.uid: pod for pod in pods if not pod.is_terminal}
    job_entries = []
    for job in queue or ():
        if job.identity is None or job.phase is JobPhase.ENDED:
            continue
        members = [alive.pop(uid) for uid in job.identity.pods if uid in alive]
        job_entries.append(_entry(job, job.identity, members, now))
    job_entries.sort(
        key=lambda entry: (entry.state != "PENDING", -(entry.priority or 0), entry.job or 0)
    )
    return [
        *(_alone(pod, now) for pod in sorted(alive.values(), key=lambda pod: pod.created_at)),
        *job_entries,
    ]


def _entry(job: QueuedJob, identity: Identity, members: Sequence[Pod], now: datetime) -> QueueEntry:
    since = min((pod.created_at for pod in members), default=job.submitted_at or now)
    return QueueEntry(
        namespace=identity.namespace,
        workload=f"{identity.kind}/{identity.name}",
        pods=len(members),
        running=sum(pod.phase is Phase.RUNNING for pod in members),
        job=job.id,
        state=job.state,
        reason=job.reason if job.phase is JobPhase.WAITING else "",
        user=job.user,
        account=job.account,
        partition=job.partition,
        priority=job.priority,
        gpus=job.gpus,
        nodes=job.nodes,
        age=now - since,
        start=job.started_at,
    )


def _alone(pod: Pod, now: datetime) -> QueueEntry:
    condition = pod.condition(names.ALLOCATED_CONDITION)
    node = pod.kube_node or pod.assigned_node
    return QueueEntry(
        namespace=pod.namespace,
        workload=f"Pod/{pod.name}",
        pods=1,
        running=int(pod.phase is Phase.RUNNING),
        job=pod.job_id,
        reason=condition.reason if condition is not None and condition.status == "False" else "",
        nodes=(SlurmNode(node),) if node else (),
        age=now - pod.created_at,
    )
