"""Plans one look at a NodeSet: which workers it should have, and everything that follows from that. Pure, and called once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from slurmoperator.nodesets import records, topology
from slurmoperator.nodesets.plan import placing, troubles, workers
from slurmoperator.nodesets.plan.look import Interest, NodeSetFacts, Objection, Outcome, PodFacts
from slurmoperator.nodesets.plan.workers import Case, Worker
from slurmoperator.nodesets.pod_conditions import node_states
from slurmoperator.nodesets.pod_conditions.node_states import StateChange
from slurmoperator.nodesets.topology import WorkerMove
from slurmoperator.nodesets.windows import reservations
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.workers.actions import CreateWorker
from slurmoperator.workers.choosing import REPLACED
from slurmoperator.workers.situation import PodStage
from slurmruntime.values.ids import SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A worker whose pod is to be created."""

    key: WorkerKey
    kube_node: str = ""
    """The Kubernetes node that it returns to; "" for any."""
    lost_jobs: str = ""
    """Why it may succeed a worker that ended with running jobs, or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActOnWorkers:
    """Carry out what was decided about existing workers."""

    workers: tuple[Worker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorkers:
    """Create the pods of missing workers."""

    workers: tuple[NewWorker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStates:
    """Update the pods that do not show the state of their Slurm nodes."""

    changes: tuple[tuple[PodFacts, StateChange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWorkers:
    """Move workers in Slurm's topology."""

    moves: tuple[WorkerMove, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVolumes:
    """Look for volumes that are being deleted while pods use them."""

    pods: tuple[PodFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepReservation:
    """Create, extend or delete the reservation in which workers are replaced."""

    waiting: frozenset[str]
    """The Slurm nodes of the workers that wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteVolumes:
    """Delete PVCs that have been unneeded for long enough."""

    needed: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords:
    """Delete nodes from Slurm."""

    nodes: tuple[SlurmNode, ...]


PlanStep = (
    ActOnWorkers
    | CreateWorkers
    | ReportStates
    | MoveWorkers
    | CheckVolumes
    | KeepReservation
    | DeleteVolumes
    | DeleteRecords
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetPlan:
    """What should become of a NodeSet, as of one look."""

    refusal: Objection | None
    desired: int
    may_replace: bool
    """Pods can be made from its template: otherwise no outdated worker is replaced."""
    follow: Interest
    """What it needs to know of its Slurm from now on."""
    workers: tuple[Worker, ...]
    """The existing and the missing workers, in order."""
    pins: dict[str, str] | None
    """The Kubernetes node that each worker returns to; None if the NodeSet does not pin."""
    steps: tuple[PlanStep, ...]
    placing_faults: tuple[str, ...]
    """Why fitting Kubernetes nodes get no worker."""
    delays: tuple[timedelta, ...]
    """When something changes without an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A look that changed nothing, and after which only other facts can lead to another plan or status: see `status.report`."""

    facts: NodeSetFacts
    plan: NodeSetPlan
    outcome: Outcome
    """Without its delays, which no status shows."""

    def covers(self, facts: NodeSetFacts) -> bool:
        """Check whether these facts are the same but for a later time."""
        before = self.facts
        if facts.now < before.now or not self._has_same_nodes(facts):
            return False
        slurm = replace(before.slurm, nodes=facts.slurm.nodes)
        return facts == replace(before, slurm=slurm, now=facts.now)

    def _has_same_nodes(self, facts: NodeSetFacts) -> bool:
        """Check whether the nodes in Slurm that the plan depends on are listed as before, of thousands that others have."""
        nodes, before = facts.slurm.nodes, self.facts.slurm.nodes
        if nodes is before or records.prunes(facts):
            return nodes is before
        pods = (pod.slurm_node for pod in facts.pods)
        names = {*pods, *(worker.node for worker in self.plan.workers)}
        return all(nodes.get(name) == before.get(name) for name in names)


def plan(facts: NodeSetFacts, rest: Rest | None = None) -> NodeSetPlan:
    """Return what should become of a NodeSet; after a look that left it at rest, the same facts need no second plan."""
    if rest is not None and rest.covers(facts):
        return rest.plan
    case = workers.case_of(facts)
    planned = workers.workers_of(case)
    objection = _objection(facts)
    pins = _pins(case, planned)
    return NodeSetPlan(
        refusal=objection,
        desired=case.desired,
        may_replace=case.may_replace,
        follow=Interest(
            nodes=frozenset(pod.slurm_node for pod in facts.pods), jobs=case.needs_jobs
        ),
        workers=planned,
        pins=pins,
        steps=tuple(_steps(case, planned, pins or {}, objection)),
        placing_faults=case.nodes.faults if case.nodes else (),
        delays=tuple(_delays(facts, planned)),
    )


def _steps(
    case: Case, planned: tuple[Worker, ...], pins: Mapping[str, str], objection: Objection | None
) -> Iterator[PlanStep]:
    facts = case.facts
    is_sure = facts.prepared.refusal is None
    is_staying = is_sure and not facts.is_leaving
    if busy := tuple(worker for worker in planned if worker.pod and worker.decision.actions):
        yield ActOnWorkers(workers=busy)
    if objection is None and (new := tuple(_new_workers(facts, planned, pins))):
        yield CreateWorkers(workers=new)
    if changes := tuple(_state_changes(facts)):
        yield ReportStates(changes=changes)
    if moves := tuple(topology.moves(facts)):
        yield MoveWorkers(moves=moves)
    yield CheckVolumes(pods=facts.pods)
    if facts.slurm.is_known and (is_sure or facts.is_leaving):
        yield KeepReservation(waiting=reservations.waiting(case))
    if is_staying:
        keys = (worker.key for worker in planned)
        yield DeleteVolumes(needed=frozenset(key for key in keys if isinstance(key, int)))
    if is_staying and (stale := records.stale_nodes(facts)):
        yield DeleteRecords(nodes=stale)


def _objection(facts: NodeSetFacts) -> Objection | None:
    if facts.prepared.refusal is not None or facts.is_leaving or not facts.template_fault:
        return facts.prepared.refusal
    return Objection(reason="BadInput", text=facts.template_fault)


def _new_workers(
    facts: NodeSetFacts, planned: Iterable[Worker], pins: Mapping[str, str]
) -> Iterator[NewWorker]:
    for worker in planned:
        if CreateWorker() in worker.decision.actions:
            yield NewWorker(
                key=worker.key,
                kube_node=pins.get(str(worker.key), ""),
                lost_jobs=_may_have_lost_jobs(facts, worker.node),
            )


def _may_have_lost_jobs(facts: NodeSetFacts, name: str) -> str:
    """Return why a new worker may succeed one that ended with running jobs, or "".

    A pod that ends regularly drains its node and waits for its jobs first. One that was evicted, or deleted by force, has a successor
    at once, and Slurm would consider its jobs alive, also a job that has started since the last reading.
    """
    if not facts.slurm.is_known:
        had_jobs = facts.node_set.status.slurm_allocated
        return "workers had jobs when Slurm was last read" if had_jobs else ""
    node = facts.slurm.listed(name)
    if node is not None and node.is_busy:
        return f"Slurm has jobs on {name}"
    is_closed = node is None or node.states & {"DRAIN", "DOWN"}
    return "" if is_closed else f"{name} was not drained: a job may just have started there"


def _pins(case: Case, planned: Iterable[Worker]) -> dict[str, str] | None:
    node_set = case.facts.node_set
    if not node_set.spec.pin_to_node or case.nodes is not None:
        return None
    numbered = [(worker.key, worker) for worker in planned if isinstance(worker.key, int)]
    return placing.pins(
        node_set.status.ordinal_to_node or {},
        {
            key: worker.pod.kube_node
            for key, worker in numbered
            if worker.pod and worker.pod.kube_node
        },
        desired=[key for key, worker in numbered if worker.facts.goes in ("", REPLACED)],
        nodes={*case.facts.kube_nodes, *case.facts.unreadable_nodes},
        shares=node_set.spec.oversubscribe_node,
    )


def _state_changes(facts: NodeSetFacts) -> Iterator[tuple[PodFacts, StateChange]]:
    if not facts.slurm.is_known:
        return  # the last conditions stay
    is_guarded = facts.node_set.spec.workload_disruption_protection
    for pod in facts.pods:
        change = node_states.change(
            facts.slurm.listed(pod.slurm_node),
            shown=pod.shown,
            annotations=pod.version.metadata.annotations,
            stage=pod.worker.stage,
            is_guarded=is_guarded,
        )
        if change is not None:
            yield pod, change


def _delays(facts: NodeSetFacts, planned: Iterable[Worker]) -> Iterator[timedelta]:
    for worker in planned:
        if (retry_after := worker.decision.retry_after) is not None:
            yield retry_after
        if (pod := worker.pod) is None:
            continue
        is_ready = pod.worker.stage is PodStage.READY
        due = workers.wait(pod, facts) if is_ready else troubles.due(pod, facts.now)
        if due is not None and due > timedelta(0):
            yield due
