"""Determines the workers that a NodeSet should have, and what to do about each: pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan import placing
from slurmoperator.nodesets.plan.look import NodeSetFacts, PodFacts
from slurmoperator.nodesets.plan.placing import NodePlan
from slurmoperator.objects.nodeset import NodeSetObject, RollingUpdate, UpdateStrategy
from slurmoperator.objects.workers import OnNode, WorkerKey, host_name
from slurmoperator.workers import choosing, table, updating
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.choosing import REPLACED, SCALED_IN, RemovalCandidate
from slurmoperator.workers.situation import (
    BUSY,
    PodStage,
    WorkerFacts,
    WorkerObservation,
)
from slurmoperator.workers.updating import UpdateCandidate
from slurmruntime.values.ids import SlurmNode

DELETED: Final = "its NodeSet is deleted"
OTHER_MODE: Final = "its NodeSet has another scalingMode"
_REPLACING: Final = ("RollingUpdate", "ScheduledUpdate")
_LONGEST_REASON: Final = 200
_UNFIT: Final = re.compile(r"[^ -~]|[\"'\\]")
"""Characters that a reason in Slurm may not contain, or that it does not return unchanged."""
_UNSURE: Final = WorkerObservation(is_sure=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that exists or should exist, and what to do about it."""

    key: WorkerKey
    pod: PodFacts | None
    facts: WorkerFacts
    decision: WorkerDecision

    @property
    def node(self) -> str:
        """Its name in Slurm."""
        return self.facts.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The facts, and what the first steps of the plan make of them."""

    facts: NodeSetFacts
    nodes: NodePlan | None
    """Where workers should be; None if they are numbered."""
    existing: tuple[tuple[WorkerKey, PodFacts], ...]
    """Its workers' pods, in order."""
    leaving: Mapping[str, str]
    """The uids of the pods to remove, however many workers there are, and why."""
    desired: int
    may_replace: bool
    """Pods can be made from its template: otherwise no outdated worker is replaced."""
    is_outdated: bool
    """Workers have to be replaced as soon as possible."""
    needs_jobs: bool
    """Jobs matter: workers have to leave, or evictions wait for one that seems idle."""

    def seen(self, pod: PodFacts) -> WorkerObservation:
        """Return what is known of a worker's node: nothing without a list of jobs, if jobs matter."""
        if self.needs_jobs and not self.facts.slurm.has_jobs:
            return _UNSURE
        return self.facts.slurm.observations.get(pod.slurm_node, _UNSURE)


def strategy(node_set: NodeSetObject) -> str:
    """Return how its workers are updated to a new template."""
    update_strategy = node_set.spec.update_strategy
    return update_strategy.type if update_strategy else "RollingUpdate"


def may_be_replaced(facts: NodeSetFacts, pod: PodFacts) -> bool:
    """Check whether a worker is outdated and may be replaced now, as one that never started may."""
    if facts.is_current(pod):
        return False
    if strategy(facts.node_set) != "ScheduledUpdate" or pod.worker.stage is PodStage.UNSTARTED:
        return True
    node = facts.slurm.listed(pod.slurm_node)
    return node is not None and node.reservation == names.reservation(facts.node_set.metadata.name)


def case_of(facts: NodeSetFacts) -> Case:
    """Return the case that the rest of the plan is about."""
    keyed = ((pod.key, pod) for pod in facts.pods)
    existing = [(key, pod) for key, pod in keyed if key is not None]
    existing.sort(key=lambda keyed_pod: _sort_key(keyed_pod[0]))
    nodes = placing.node_plan(facts, existing) if facts.is_on_nodes else None
    desired = len(nodes.hosts) if nodes is not None else facts.node_set.spec.replicas
    desired = 0 if facts.is_leaving else desired
    leaving = _leaving(facts, nodes, existing)
    may_replace = (
        facts.prepared.refusal is None and facts.prepared.is_stored and not facts.template_fault
    )
    is_outdated = (
        may_replace
        and not facts.is_leaving
        and strategy(facts.node_set) in _REPLACING
        and any(may_be_replaced(facts, pod) for pod in facts.pods)
    )
    return Case(
        facts=facts,
        nodes=nodes,
        existing=tuple(existing),
        leaving=leaving,
        desired=desired,
        may_replace=may_replace,
        is_outdated=is_outdated,
        needs_jobs=len(existing) > desired
        or bool(leaving)
        or is_outdated
        or any(_seems_idle(facts, pod) for pod in facts.pods),
    )


def workers_of(case: Case) -> tuple[Worker, ...]:
    """Return the existing and the missing workers, in order."""
    why = {**case.leaving, **_scaled_in(case)}
    why |= dict.fromkeys(_to_replace(case, why), REPLACED)
    existing = [_existing_worker(case, key, pod, why) for key, pod in case.existing]
    missing = [_missing_worker(case, key) for key in _missing(case)]
    return tuple(sorted([*existing, *missing], key=lambda worker: _sort_key(worker.key)))


def _sort_key(key: WorkerKey) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (0, key.kube_node)


def _leaving(
    facts: NodeSetFacts, nodes: NodePlan | None, existing: Iterable[tuple[WorkerKey, PodFacts]]
) -> dict[str, str]:
    if facts.is_leaving:
        return {pod.worker.uid: DELETED for _, pod in existing}
    why = {}
    for key, pod in existing:
        if isinstance(key, OnNode) is (nodes is None):
            why[pod.worker.uid] = OTHER_MODE
        elif nodes is not None and isinstance(key, OnNode) and key.kube_node in nodes.leaving:
            why[pod.worker.uid] = _clean(nodes.leaving[key.kube_node])
    return why


def _seems_idle(facts: NodeSetFacts, pod: PodFacts) -> bool:
    """Check whether evictions wait for a cordoned worker whose node is drained and shows no jobs."""
    if not pod.worker.is_protected or not _cordoned(facts, pod):
        return False
    node = facts.slurm.nodes.get(pod.slurm_node)
    return node is not None and "DRAIN" in node.states and not node.states & BUSY


def _scaled_in(case: Case) -> dict[str, str]:
    if case.nodes is not None or case.facts.is_leaving:
        return {}
    numbered = [(key, pod) for key, pod in case.existing if isinstance(key, int)]
    if len(numbered) <= case.desired:
        return {}
    candidates = [_candidate(case, key, pod) for key, pod in numbered]
    return dict.fromkeys(choosing.workers_to_remove(candidates, case.desired), SCALED_IN)


def _to_replace(case: Case, leaving: Mapping[str, str]) -> frozenset[str]:
    if not case.is_outdated:
        return frozenset()
    spec = case.facts.node_set.spec
    rolling = (spec.update_strategy or UpdateStrategy()).rolling_update or RollingUpdate()
    staying = [(key, pod) for key, pod in case.existing if pod.worker.uid not in leaving]
    candidates = [
        UpdateCandidate(
            worker=_candidate(case, key, pod),
            is_current=case.facts.is_current(pod),
            is_available=wait(pod, case.facts) <= timedelta(0),
        )
        for key, pod in staying
        if case.facts.is_current(pod) or may_be_replaced(case.facts, pod)
    ]
    return updating.to_replace(
        candidates,
        missing=max(case.desired - len(staying), 0),
        most_away=updating.allowed_away(rolling.max_unavailable, case.desired),
    )


def wait(pod: PodFacts, facts: NodeSetFacts) -> timedelta:
    """Return how long a ready worker has to stay ready before it counts as available; 0 without a ready time."""
    min_ready = timedelta(seconds=facts.node_set.spec.min_ready_seconds)
    return timedelta(0) if pod.ready_since is None else pod.ready_since + min_ready - facts.now


def _missing(case: Case) -> tuple[WorkerKey, ...]:
    keys = [key for key, _ in case.existing]
    if case.nodes is not None and not case.facts.is_leaving:
        taken = {key.kube_node for key in keys if isinstance(key, OnNode)}
        hosts = case.nodes.hosts.items()
        return tuple(OnNode(kube_node=name, host=host) for name, host in hosts if name not in taken)
    ordinals = [key for key in keys if isinstance(key, int)]
    return choosing.ordinals_to_create(ordinals, case.desired)


def _candidate(case: Case, key: WorkerKey, pod: PodFacts) -> RemovalCandidate:
    return RemovalCandidate(
        name=pod.worker.uid,
        ordinal=key if isinstance(key, int) else 0,
        pod=pod.worker,
        seen=case.seen(pod),
        deletion_cost=pod.deletion_cost,
        free_at=case.facts.slurm.free_at.get(SlurmNode(pod.slurm_node)),
        is_cordoned=bool(_cordoned(case.facts, pod)),
    )


def _existing_worker(case: Case, key: WorkerKey, pod: PodFacts, why: Mapping[str, str]) -> Worker:
    facts = WorkerFacts(
        name=pod.slurm_node,
        pod=pod.worker,
        seen=case.seen(pod),
        goes=why.get(pod.worker.uid, ""),
        cordoned=_cordoned(case.facts, pod),
        is_guarded=case.facts.node_set.spec.workload_disruption_protection,
    )
    return Worker(key=key, pod=pod, facts=facts, decision=table.decide(facts))


def _missing_worker(case: Case, key: WorkerKey) -> Worker:
    facts = WorkerFacts(name=host_name(case.facts.node_set, key), pod=None, seen=_UNSURE)
    return Worker(key=key, pod=None, facts=facts, decision=table.decide(facts))


def _cordoned(facts: NodeSetFacts, pod: PodFacts) -> str:
    """Return why Kubernetes keeps jobs off a worker; "" if it does not."""
    if pod.is_cordoned:
        return "its pod is cordoned"
    node = facts.kube_nodes.get(pod.kube_node)
    if node is None or not node.is_unschedulable:
        return ""
    reason = node.annotations.get(names.CORDON_REASON_ANNOTATION, "")
    return _clean(reason or f"Kubernetes has node {node.name} cordoned")


def _clean(text: str) -> str:
    """Return a reason that Slurm returns unchanged, or it would be written again each time."""
    return " ".join(_UNFIT.sub(" ", text).split())[:_LONGEST_REASON].strip()
