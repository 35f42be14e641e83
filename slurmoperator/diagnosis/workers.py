"""How a worker stands: its pod, and its node in Slurm."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.model.jobs import JobPhase
from slurmoperator.diagnosis.parts import SlurmInPods, pods_of
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers import node_states
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
    """How one worker stands."""

    worker: str
    """Its name in Slurm."""
    node_set: str
    kube_node: str
    pod: str
    """`pending`, `starting`, `ready`, `over` or `terminating`."""
    state: str
    """In Slurm: `idle`, `mixed`, `allocated`, `draining` (drained, with jobs), `drained`, `down`; `missing` if Slurm does not
    have it, and `unknown` if nobody has told.
    """
    jobs: int | None
    """How many are there; None if Slurm was not asked."""
    why: str
    """Why it is drained or down, and who has done it; or why its pod is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InSlurm:
    """What is known of a worker's node in Slurm."""

    states: frozenset[str] | None
    """None if nobody has told; empty if Slurm has no such node."""
    reason: str = ""

    @property
    def word(self) -> str:
        """Its state in one word, as in `WorkerLine`."""
        states = self.states
        if states is None:
            return UNKNOWN
        if not states:
            return MISSING
        if "DRAIN" in states and "UNDRAIN" not in states:
            return "draining" if states & BUSY else "drained"
        named = ("DOWN", "ERROR", "FAIL", "MIXED", "ALLOCATED", "COMPLETING", "IDLE")
        return next((each.lower() for each in named if each in states), UNKNOWN)

    @property
    def whose(self) -> str:
        """Who has drained it or taken it down, and why; "" if it is in service."""
        if self.word not in ("draining", "drained", "down", "error", "fail"):
            return ""
        if self.reason.startswith(REASON_PREFIX):
            return f"by slurm-operator: {self.reason.removeprefix(REASON_PREFIX)}"
        return f"by somebody else: {self.reason}" if self.reason else "nobody gave a reason"


def lines(slurm: SlurmInPods) -> list[WorkerLine]:
    """Return how each worker stands, by NodeSet and name."""
    found = [
        line(pod, node_set.metadata.name, slurm.slurm_nodes, slurm.queue)
        for node_set in slurm.objects.node_sets
        for pod in pods_of(slurm.objects, "NodeSet", node_set.metadata.name)
    ]
    return sorted(found, key=lambda each: (each.node_set, *_by_number(each.worker)))


def line(
    pod: WorkerPodObject,
    node_set: str,
    slurm_nodes: Sequence[SlurmNodeFacts] | None,
    queue: Sequence[QueuedJob] | None,
) -> WorkerLine:
    """Return how one worker stands."""
    known = in_slurm(pod, slurm_nodes)
    waits = "; ".join(why_not_ready(pod.status)) if pod.facts.stage is not PodStage.READY else ""
    return WorkerLine(
        worker=pod.slurm_node,
        node_set=node_set,
        kube_node=pod.kube_node,
        pod=_STAGES[pod.facts.stage],
        state=known.word,
        jobs=None if queue is None else len(jobs_on(pod.slurm_node, queue)),
        why="; ".join(filter(None, (known.whose, waits))),
    )


def in_slurm(pod: WorkerPodObject, slurm_nodes: Sequence[SlurmNodeFacts] | None) -> InSlurm:
    """Return what Slurm says of a worker; what its pod was told, if Slurm was not asked."""
    if slurm_nodes is None:
        states, reason = node_states.states_of(pod.status.conditions or ())
        return InSlurm(states=states or None, reason=reason)
    node = next(
        (slurm_node for slurm_node in slurm_nodes if slurm_node.name == pod.slurm_node), None
    )
    if node is None:
        return InSlurm(states=frozenset())
    return InSlurm(states=node.states, reason=node.reason)


def jobs_on(node: str, queue: Iterable[QueuedJob]) -> list[QueuedJob]:
    """Return the jobs that have not ended and are on a node."""
    return [each for each in queue if each.phase is not JobPhase.ENDED and node in each.nodes]


def counted(workers: Iterable[WorkerLine]) -> str:
    """Return how many stand how, in words: `2 idle, 1 draining`."""
    counts = Counter(worker.state for worker in workers)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _by_number(name: str) -> tuple[str, int]:
    """Sort numbers as numbers: worker 10 comes after worker 9."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    return stem, int(number) if number else -1
