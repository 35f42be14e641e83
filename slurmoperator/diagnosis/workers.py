"""Describe the state of a worker: its pod, and its node in Slurm."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.model.jobs import JobPhase
from slurmoperator.diagnosis.parts import SlurmInPods, pods_of
from slurmoperator.nodesets.pod_conditions import node_states
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers.situation import BUSY, REASON_PREFIX, PodStage
from slurmruntime.model.nodes import SlurmNodeFacts

UNKNOWN: Final = "unknown"
MISSING: Final = "missing"
_STAGES: Final = {
    PodStage.UNSTARTED: "pending",
    PodStage.STARTING: "starting",
    PodStage.READY: "ready",
    PodStage.OVER: "over",
    PodStage.TERMINATING: "terminating",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLine:
    """The state of one worker."""

    worker: str
    """Its name in Slurm."""
    node_set: str
    kube_node: str
    pod: str
    """`pending`, `starting`, `ready`, `over` or `terminating`."""
    state: str
    """In Slurm: `idle`, `mixed`, `allocated`, `draining` (drained, with jobs), `drained`, `down`; `missing` if Slurm does not
    have it, and `unknown` if it has not been reported.
    """
    jobs: int | None
    """The number of its jobs; None if Slurm was not asked."""
    why: str
    """Why it is drained or down, and whether slurm-operator did that; or why its pod is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodeView:
    """What is known of a worker's node in Slurm."""

    states: frozenset[str] | None
    """None if they have not been reported; empty if Slurm has no such node."""
    reason: str = ""

    @property
    def state(self) -> str:
        """The state in one word, as in `WorkerLine`."""
        states = self.states
        if states is None:
            return UNKNOWN
        if not states:
            return MISSING
        if "DRAIN" in states and "UNDRAIN" not in states:
            return "draining" if states & BUSY else "drained"
        by_weight = ("DOWN", "ERROR", "FAIL", "MIXED", "ALLOCATED", "COMPLETING", "IDLE")
        return next((state.lower() for state in by_weight if state in states), UNKNOWN)

    @property
    def cause(self) -> str:
        """Why it is drained or down, and whether slurm-operator did that; "" if it is in service."""
        if self.state not in ("draining", "drained", "down", "error", "fail"):
            return ""
        if self.reason.startswith(REASON_PREFIX):
            return f"by slurm-operator: {self.reason.removeprefix(REASON_PREFIX)}"
        return f"not by slurm-operator: {self.reason}" if self.reason else "no reason given"


def lines(slurm: SlurmInPods) -> list[WorkerLine]:
    """Return the state of each worker, sorted by NodeSet and name."""
    workers = [
        line(pod, node_set.metadata.name, slurm.slurm_nodes, slurm.queue)
        for node_set in slurm.objects.node_sets
        for pod in pods_of(slurm.objects, "NodeSet", node_set.metadata.name)
    ]
    return sorted(workers, key=lambda worker: (worker.node_set, *_by_number(worker.worker)))


def line(
    pod: WorkerPodObject,
    node_set: str,
    slurm_nodes: Sequence[SlurmNodeFacts] | None,
    queue: Sequence[QueuedJob] | None,
) -> WorkerLine:
    """Return the state of one worker."""
    slurm_node = slurm_view(pod, slurm_nodes)
    waits = "; ".join(why_not_ready(pod.status)) if pod.facts.stage is not PodStage.READY else ""
    return WorkerLine(
        worker=pod.slurm_node,
        node_set=node_set,
        kube_node=pod.kube_node,
        pod=_STAGES[pod.facts.stage],
        state=slurm_node.state,
        jobs=None if queue is None else len(jobs_on(pod.slurm_node, queue)),
        why="; ".join(filter(None, (slurm_node.cause, waits))),
    )


def slurm_view(pod: WorkerPodObject, slurm_nodes: Sequence[SlurmNodeFacts] | None) -> SlurmNodeView:
    """Return a worker's node as Slurm shows it, or as its pod's conditions do if Slurm was not asked."""
    if slurm_nodes is None:
        states, reason = node_states.states_of(pod.status.conditions or ())
        return SlurmNodeView(states=states or None, reason=reason)
    node = next(
        (slurm_node for slurm_node in slurm_nodes if slurm_node.name == pod.slurm_node), None
    )
    if node is None:
        return SlurmNodeView(states=frozenset())
    return SlurmNodeView(states=node.states, reason=node.reason)


def jobs_on(node: str, queue: Iterable[QueuedJob]) -> list[QueuedJob]:
    """Return the jobs that have not ended and are on a node."""
    return [job for job in queue if job.phase is not JobPhase.ENDED and node in job.nodes]


def count_states(workers: Iterable[WorkerLine]) -> str:
    """Return the number of workers in each state: `2 idle, 1 draining`."""
    counts = Counter(worker.state for worker in workers)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _by_number(name: str) -> tuple[str, int]:
    """Sort numbers as numbers: worker 10 comes after worker 9."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    return stem, int(number) if number else -1
