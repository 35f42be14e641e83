"""Determines the workers that a NodeSet should have, and what is known of each: pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slurmoperator.nodesets import names
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.labels import (
    LOST_JOBS_ANNOTATION,
    PROTECTED_LABEL,
    WORKER_APP,
    selecting,
)
from slurmoperator.objects.nodeset import NodeSetObject, RollingUpdate, UpdateStrategy
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.objects.workers import OnNode, WorkerKey, host_name, is_on_nodes, pod_name
from slurmoperator.workers import choosing, pinning, updating
from slurmoperator.workers.choosing import REPLACED, SCALED_IN, RemovalCandidate
from slurmoperator.workers.placing import NodePlan
from slurmoperator.workers.situation import BUSY, PodStage, WorkerFacts, WorkerObservation
from slurmoperator.workers.updating import UpdateCandidate
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values import numbers

DELETED: Final = "its NodeSet is deleted"
OTHER_MODE: Final = "its NodeSet has another scalingMode"
_REPLACING: Final = ("RollingUpdate", "ScheduledUpdate")
_WITH_SLURMD: Final = (PodStage.STARTING, PodStage.READY)
_LONGEST_REASON: Final = 200
_LONGEST_LABEL: Final = 63
_UNFIT: Final = re.compile(r"[^ -~]|[\"'\\]")
"""Characters that a reason in Slurm may not contain, or that it does not return unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that exists or should exist."""

    key: WorkerKey
    pod: WorkerPodObject | None
    facts: WorkerFacts

    @property
    def node(self) -> str:
        """Its name in Slurm."""
        return self.facts.name


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetSituation:
    """Everything that the plan for one NodeSet depends on."""

    node_set: NodeSetObject
    pods: tuple[WorkerPodObject, ...]
    """All pods that it owns."""
    seen: Callable[[str], WorkerObservation]
    free_at: Callable[[str], datetime | None] = lambda _: None
    cordons: Mapping[str, str]
    """Cordoned Kubernetes nodes, and why they are cordoned."""
    revision: str
    """The hash of its template."""
    key_step: int = 0
    """The version of the daemons' key that new workers get."""
    on_nodes: NodePlan | None = None
    """Where workers should be; None if workers are numbered."""
    may_replace: bool
    """Pods can be made from its template: otherwise no outdated worker is replaced."""
    in_window: Callable[[str], bool] = lambda _: True
    """Whether the worker of a Slurm node may be replaced now."""
    has_node: Callable[[str], bool] = lambda _: True
    """Whether Kubernetes has a node of this name."""
    now: datetime

    @property
    def desired(self) -> int:
        """How many workers there should be."""
        if self.is_leaving:
            return 0
        return len(self.on_nodes.hosts) if self.on_nodes else self.node_set.spec.replicas

    @property
    def is_leaving(self) -> bool:
        """Whether the NodeSet is being deleted."""
        return self.node_set.metadata.deletion_timestamp is not None


def unserved(node_set: NodeSetObject) -> Iterable[str]:
    """Yield texts about fields that are accepted but have no effect, for its condition."""
    if node_set.spec.prune_slurm_node_records != "Never" and not is_on_nodes(node_set):
        yield "spec.pruneSlurmNodeRecords: has no effect without scalingMode: DaemonSet; delete records with scontrol delete nodename=NAME"


def strategy(node_set: NodeSetObject) -> str:
    """Return how its workers are updated to a new template."""
    update_strategy = node_set.spec.update_strategy
    return update_strategy.type if update_strategy else "RollingUpdate"


def is_current(pod: WorkerPodObject, revision: str) -> bool:
    """Check whether a pod was made from the template with this hash."""
    return pod.metadata.labels.get(names.DIGEST_LABEL) == revision


def is_outdated(situation: NodeSetSituation) -> bool:
    """Check whether workers have to be replaced as soon as possible."""
    if situation.is_leaving or not situation.may_replace:
        return False
    is_replacing = strategy(situation.node_set) in _REPLACING
    return is_replacing and any(_may_be_replaced(situation, pod) for pod in situation.pods)


def waiting_for_window(situation: NodeSetSituation) -> frozenset[str]:
    """Return the Slurm nodes of all workers to replace in a reservation, now or later."""
    is_scheduled = strategy(situation.node_set) == "ScheduledUpdate"
    if situation.is_leaving or not situation.may_replace or not is_scheduled:
        return frozenset()
    return frozenset(
        pod.slurm_node
        for pod in situation.pods
        if not is_current(pod, situation.revision) and pod.facts.stage in _WITH_SLURMD
    )


def _may_be_replaced(situation: NodeSetSituation, pod: WorkerPodObject) -> bool:
    """Check whether a worker is outdated and may be replaced now, as one that never started may."""
    if is_current(pod, situation.revision):
        return False
    return pod.facts.stage is PodStage.UNSTARTED or situation.in_window(pod.slurm_node)


def workers(situation: NodeSetSituation) -> tuple[Worker, ...]:
    """Return the existing and the missing workers, in order."""
    existing = sorted(_keyed_pods(situation), key=lambda keyed_pod: _sort_key(keyed_pod[0]))
    why = _leaving(situation, existing)
    staying = [(key, pod) for key, pod in existing if pod.metadata.name not in why]
    why |= dict.fromkeys(_to_replace(situation, staying), REPLACED)
    missing = _to_create(situation, [key for key, _ in existing])
    result = [_existing_worker(situation, key, pod, why) for key, pod in existing]
    result += [_missing_worker(situation, key) for key in missing]
    return tuple(sorted(result, key=lambda worker: _sort_key(worker.key)))


def _keyed_pods(situation: NodeSetSituation) -> list[tuple[WorkerKey, WorkerPodObject]]:
    keyed = ((worker_key(situation.node_set, pod), pod) for pod in situation.pods)
    return [(key, pod) for key, pod in keyed if key is not None]


def _leaving(
    situation: NodeSetSituation, existing: Sequence[tuple[WorkerKey, WorkerPodObject]]
) -> dict[str, str]:
    """Return the names of the pods to remove, whatever their template, and why."""
    if situation.is_leaving:
        return {pod.metadata.name: DELETED for _, pod in existing}
    plan = situation.on_nodes
    others = [pod for key, pod in existing if isinstance(key, OnNode) is (plan is None)]
    why = {pod.metadata.name: OTHER_MODE for pod in others}
    if plan is not None:
        on_nodes = [(key, pod) for key, pod in existing if isinstance(key, OnNode)]
        return why | {
            pod.metadata.name: _clean(plan.leaving[key.kube_node])
            for key, pod in on_nodes
            if key.kube_node in plan.leaving
        }
    numbered = (_candidate(situation, key, pod) for key, pod in existing if isinstance(key, int))
    return why | dict.fromkeys(choosing.workers_to_remove(numbered, situation.desired), SCALED_IN)


def _to_create(situation: NodeSetSituation, existing: Sequence[WorkerKey]) -> tuple[WorkerKey, ...]:
    if situation.on_nodes is not None and not situation.is_leaving:
        taken = {key.kube_node for key in existing if isinstance(key, OnNode)}
        hosts = situation.on_nodes.hosts.items()
        return tuple(OnNode(kube_node=name, host=host) for name, host in hosts if name not in taken)
    ordinals = [key for key in existing if isinstance(key, int)]
    return choosing.ordinals_to_create(ordinals, situation.desired)


def _sort_key(key: WorkerKey) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (0, key.kube_node)


def _to_replace(
    situation: NodeSetSituation, staying: Sequence[tuple[WorkerKey, WorkerPodObject]]
) -> frozenset[str]:
    if not is_outdated(situation):
        return frozenset()
    spec = situation.node_set.spec
    rolling = (spec.update_strategy or UpdateStrategy()).rolling_update or RollingUpdate()
    min_ready = timedelta(seconds=spec.min_ready_seconds)
    candidates = [
        UpdateCandidate(
            worker=_candidate(situation, key, pod),
            is_current=is_current(pod, situation.revision),
            is_available=is_available(pod, min_ready, situation.now),
        )
        for key, pod in staying
        if is_current(pod, situation.revision) or _may_be_replaced(situation, pod)
    ]
    return updating.to_replace(
        candidates,
        missing=max(situation.desired - len(staying), 0),
        most_away=updating.allowed_away(rolling.max_unavailable, situation.desired),
    )


def is_available(pod: WorkerPodObject, min_ready: timedelta, now: datetime) -> bool:
    """Check whether a worker is available: ready for long enough, or without a ready time."""
    since = pod.ready_since
    return pod.facts.stage is PodStage.READY and (since is None or since + min_ready <= now)


def needs_jobs(situation: NodeSetSituation, states: Callable[[str], frozenset[str] | None]) -> bool:
    """Check whether jobs matter: workers have to leave, or evictions wait for one that seems idle.

    states: of a node in the last reading; None if Slurm has no such node.
    """
    existing = _keyed_pods(situation)
    return (
        len(existing) > situation.desired
        or bool(_leaving(situation, existing))
        or is_outdated(situation)
        or any(
            pod.facts.is_protected
            and _cordoned(situation, pod)
            and (node_states := states(pod.slurm_node)) is not None
            and "DRAIN" in node_states
            and not node_states & BUSY
            for pod in situation.pods
        )
    )


def pins(situation: NodeSetSituation, planned: Sequence[Worker]) -> dict[str, str] | None:
    """Return the Kubernetes node that each worker returns to; None if the NodeSet does not pin."""
    spec = situation.node_set.spec
    if not spec.pin_to_node or situation.on_nodes is not None:
        return None
    staying = [worker for worker in planned if worker.facts.goes in ("", REPLACED)]
    return pinning.pins(
        situation.node_set.status.ordinal_to_node or {},
        {
            worker.key: worker.pod.kube_node
            for worker in planned
            if isinstance(worker.key, int) and worker.pod and worker.pod.kube_node
        },
        desired=[worker.key for worker in staying if isinstance(worker.key, int)],
        has_node=situation.has_node,
        shares=spec.oversubscribe_node,
    )


def worker_key(node_set: NodeSetObject, pod: WorkerPodObject) -> WorkerKey | None:
    """Return the key of a pod's worker; None if its name is not one of ours."""
    if kube_node := pod.metadata.annotations.get(names.KUBE_NODE_ANNOTATION):
        return OnNode(kube_node=kube_node, host=pod.slurm_node)
    prefix, _, number = pod.metadata.name.rpartition("-")
    if prefix != node_set.metadata.name or not number.isascii():
        return None
    return numbers.integer(number, most=10**10)


def may_have_lost_jobs(
    node_set: NodeSetObject, key: WorkerKey, listed: Callable[[str], SlurmNodeFacts | None] | None
) -> str:
    """Return why a new worker may succeed one that ended with running jobs, or "".

    A pod that ends regularly drains its node and waits for its jobs first. One that was evicted, or deleted by force, has a successor
    at once, and Slurm would consider its jobs alive, also a job that has started since the last reading.

    listed: returns a node as in the last reading; None while the state of Slurm is unknown.
    """
    name = host_name(node_set, key)
    if listed is None:
        had_jobs = node_set.status.slurm_allocated
        return "workers had jobs when Slurm was last read" if had_jobs else ""
    node = listed(name)
    if node is not None and node.is_busy:
        return f"Slurm has jobs on {name}"
    is_closed = node is None or node.states & {"DRAIN", "DOWN"}
    return "" if is_closed else f"{name} was not drained: a job may just have started there"


def pod_body(
    node_set: NodeSetObject,
    key: WorkerKey,
    body: Mapping[str, Any],
    *,
    digest: str,
    lost_jobs: str = "",
) -> dict[str, Any]:
    """Return a worker's pod with this NodeSet's metadata for workers, whatever its template says.

    lost_jobs: see `may_have_lost_jobs`.
    """
    meta = node_set.metadata
    template = body.get("metadata") or {}
    labels = {
        **(template.get("labels") or {}),
        **selecting(WORKER_APP, meta.name),
        names.DIGEST_LABEL: digest,
        **_worker_labels(node_set, key),
    }
    if node_set.spec.workload_disruption_protection:
        labels[PROTECTED_LABEL] = "true"
    owner = {
        "apiVersion": API_VERSION,
        "kind": "NodeSet",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        **template,
        "name": pod_name(node_set, key),
        "namespace": meta.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    marks = {names.KUBE_NODE_ANNOTATION: key.kube_node} if isinstance(key, OnNode) else {}
    marks |= {LOST_JOBS_ANNOTATION: lost_jobs} if lost_jobs else {}
    if marks:
        metadata["annotations"] = {**(template.get("annotations") or {}), **marks}
    return {"apiVersion": "v1", "kind": "Pod", **body, "metadata": metadata}


def _worker_labels(node_set: NodeSetObject, key: WorkerKey) -> dict[str, str]:
    """Return the labels by which others find a worker, without names too long for a label."""
    labels = {
        names.MODE_LABEL: node_set.spec.scaling_mode,
        names.POD_NAME_LABEL: pod_name(node_set, key),
        names.POD_HOST_LABEL: host_name(node_set, key),
    }
    if not isinstance(key, OnNode):
        labels[names.POD_INDEX_LABEL] = node_set.numbered(key)
    return {label: value for label, value in labels.items() if len(value) <= _LONGEST_LABEL}


def unmanaged_pods(situation: NodeSetSituation) -> Iterable[str]:
    """Return the names of pods that it owns but that are not its workers; they are left alone."""
    node_set = situation.node_set
    return (pod.metadata.name for pod in situation.pods if worker_key(node_set, pod) is None)


def _candidate(
    situation: NodeSetSituation, key: WorkerKey, pod: WorkerPodObject
) -> RemovalCandidate:
    return RemovalCandidate(
        name=pod.metadata.name,
        ordinal=key if isinstance(key, int) else 0,
        pod=pod.facts,
        seen=situation.seen(pod.slurm_node),
        deletion_cost=_cost(pod),
        free_at=situation.free_at(pod.slurm_node),
        is_cordoned=bool(_cordoned(situation, pod)),
    )


def _existing_worker(
    situation: NodeSetSituation, key: WorkerKey, pod: WorkerPodObject, why: Mapping[str, str]
) -> Worker:
    return Worker(
        key=key,
        pod=pod,
        facts=WorkerFacts(
            name=pod.slurm_node,
            pod=pod.facts,
            seen=situation.seen(pod.slurm_node),
            goes=why.get(pod.metadata.name, ""),
            cordoned=_cordoned(situation, pod),
            is_guarded=situation.node_set.spec.workload_disruption_protection,
        ),
    )


def _missing_worker(situation: NodeSetSituation, key: WorkerKey) -> Worker:
    node = host_name(situation.node_set, key)
    facts = WorkerFacts(name=node, pod=None, seen=situation.seen(node))
    return Worker(key=key, pod=None, facts=facts)


def _cordoned(situation: NodeSetSituation, pod: WorkerPodObject) -> str:
    if pod.metadata.annotations.get(names.POD_CORDON_ANNOTATION) == "true":
        return "its pod is cordoned"
    return _clean(situation.cordons.get(pod.kube_node, ""))


def _clean(text: str) -> str:
    """Return a reason that Slurm returns unchanged, or it would be written again each time."""
    return " ".join(_UNFIT.sub(" ", text).split())[:_LONGEST_REASON].strip()


def _cost(pod: WorkerPodObject) -> int:
    text = pod.metadata.annotations.get(names.DELETION_COST_ANNOTATION, "")
    sign = -1 if text.startswith("-") else 1
    cost = numbers.integer(text.removeprefix("-"), most=2**31 - 1) if text else None
    return sign * (cost or 0)
