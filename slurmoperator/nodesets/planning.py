"""Which workers a NodeSet is to have, and what is known of each: pure."""

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
from slurmoperator.objects.nodeset import NodeSetObject, RollingSteps, UpdateStrategy
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.objects.workers import OnNode, WorkerKey, host_name, is_on_nodes, pod_name
from slurmoperator.workers import choosing, pinning, updating
from slurmoperator.workers.choosing import REPLACED, SCALED_IN, LeavingWorker
from slurmoperator.workers.placing import NodePlan
from slurmoperator.workers.situation import BUSY, PodStage, SeenWorker, WorkerFacts
from slurmoperator.workers.updating import RolledWorker
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values import numbers

DELETED: Final = "its NodeSet is deleted"
OTHER_MODE: Final = "its NodeSet has another scalingMode"
_REPLACING: Final = ("RollingUpdate", "ScheduledUpdate")
_WITH_SLURMD: Final = (PodStage.STARTING, PodStage.READY)
_LONGEST_REASON: Final = 200
_LONGEST_LABEL: Final = 63
_UNFIT: Final = re.compile(r"[^ -~]|[\"'\\]")
"""What a reason in Slurm may not hold, or not as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWorker:
    """A worker that is there, or is to be."""

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
    """All that it owns."""
    seen: Callable[[str], SeenWorker]
    free_at: Callable[[str], datetime | None] = lambda _: None
    cordons: Mapping[str, str]
    """Kubernetes nodes that are cordoned, and why."""
    revision: str
    """The hash of its template."""
    key_step: int = 0
    """Of the daemons' key, which a worker gets that is made now."""
    on_nodes: NodePlan | None = None
    """Where there are to be workers; None if they have numbers."""
    may_replace: bool
    """Workers can be made of its template: without that, none that has another one goes for it."""
    in_window: Callable[[str], bool] = lambda _: True
    """Says of a Slurm node whether this is the time to replace its worker."""
    has_node: Callable[[str], bool] = lambda _: True
    """Says whether Kubernetes has a node."""
    now: datetime

    @property
    def wanted(self) -> int:
        """How many workers there are to be."""
        if self.is_leaving:
            return 0
        return len(self.on_nodes.hosts) if self.on_nodes else self.node_set.spec.replicas

    @property
    def is_leaving(self) -> bool:
        """Whether the NodeSet is being deleted."""
        return self.node_set.metadata.deletion_timestamp is not None


def unserved(node_set: NodeSetObject) -> Iterable[str]:
    """Yield the fields that are accepted and not acted on, for its condition."""
    if node_set.spec.prune_slurm_node_records != "Never" and not is_on_nodes(node_set):
        yield (
            "spec.pruneSlurmNodeRecords: changes nothing without scalingMode: DaemonSet; the node of a worker with a"
            " number is used again, or deleted by scontrol delete nodename=NAME"
        )


def strategy(node_set: NodeSetObject) -> str:
    """Return how its workers come to a new template."""
    given = node_set.spec.update_strategy
    return given.type if given else "RollingUpdate"


def is_current(pod: WorkerPodObject, revision: str) -> bool:
    """Check whether a pod was made from the template with this hash."""
    return pod.metadata.labels.get(names.DIGEST_LABEL) == revision


def is_outdated(situation: NodeSetSituation) -> bool:
    """Check whether there are workers to be replaced as soon as may be."""
    if situation.is_leaving or not situation.may_replace:
        return False
    is_replacing = strategy(situation.node_set) in _REPLACING
    return is_replacing and any(_has_its_time(situation, pod) for pod in situation.pods)


def waiting_for_window(situation: NodeSetSituation) -> frozenset[str]:
    """Return the Slurm nodes of all workers that are to be replaced in a reservation, now or later."""
    is_scheduled = strategy(situation.node_set) == "ScheduledUpdate"
    if situation.is_leaving or not situation.may_replace or not is_scheduled:
        return frozenset()
    return frozenset(
        pod.slurm_node
        for pod in situation.pods
        if not is_current(pod, situation.revision) and pod.facts.stage in _WITH_SLURMD
    )


def _has_its_time(situation: NodeSetSituation, pod: WorkerPodObject) -> bool:
    """Check whether a worker has another template and may go for it now; one that never started may at any time."""
    if is_current(pod, situation.revision):
        return False
    return pod.facts.stage is PodStage.UNSTARTED or situation.in_window(pod.slurm_node)


def workers(situation: NodeSetSituation) -> tuple[PlannedWorker, ...]:
    """Return the workers that are there or missing, in order."""
    there = [
        (key, pod)
        for pod in situation.pods
        if (key := worker_key(situation.node_set, pod)) is not None
    ]
    there.sort(key=lambda each: _by_key(each[0]))
    why = _leaving(situation, there)
    staying = [each for each in there if each[1].metadata.name not in why]
    why |= dict.fromkeys(_to_replace(situation, staying), REPLACED)
    planned = [_kept_or_going(situation, key, pod, why) for key, pod in there]
    planned += [_missing(situation, key) for key in _coming(situation, [key for key, _ in there])]
    return tuple(sorted(planned, key=lambda each: _by_key(each.key)))


def _leaving(
    situation: NodeSetSituation, there: Sequence[tuple[WorkerKey, WorkerPodObject]]
) -> dict[str, str]:
    """Return the names of the pods that are to go, whatever their template, and why."""
    if situation.is_leaving:
        return {pod.metadata.name: DELETED for _, pod in there}
    plan = situation.on_nodes
    others = [pod for key, pod in there if isinstance(key, OnNode) is (plan is None)]
    why = {pod.metadata.name: OTHER_MODE for pod in others}
    if plan is not None:
        on_nodes = [(key, pod) for key, pod in there if isinstance(key, OnNode)]
        return why | {
            pod.metadata.name: _clean(plan.leaving[key.kube_node])
            for key, pod in on_nodes
            if key.kube_node in plan.leaving
        }
    numbered = (_candidate(situation, key, pod) for key, pod in there if isinstance(key, int))
    return why | dict.fromkeys(choosing.to_go(numbered, situation.wanted), SCALED_IN)


def _coming(situation: NodeSetSituation, there: Sequence[WorkerKey]) -> tuple[WorkerKey, ...]:
    """Return the workers that are missing."""
    if situation.on_nodes is not None and not situation.is_leaving:
        taken = {key.kube_node for key in there if isinstance(key, OnNode)}
        hosts = situation.on_nodes.hosts.items()
        return tuple(OnNode(kube_node=name, host=host) for name, host in hosts if name not in taken)
    numbers_there = [key for key in there if isinstance(key, int)]
    return choosing.to_come(numbers_there, situation.wanted)


def _by_key(key: WorkerKey) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (0, key.kube_node)


def _to_replace(
    situation: NodeSetSituation, staying: Sequence[tuple[WorkerKey, WorkerPodObject]]
) -> frozenset[str]:
    if not is_outdated(situation):
        return frozenset()
    spec = situation.node_set.spec
    rolling = (spec.update_strategy or UpdateStrategy()).rolling_update or RollingSteps()
    min_ready = timedelta(seconds=spec.min_ready_seconds)
    rolled = [
        RolledWorker(
            worker=_candidate(situation, key, pod),
            is_current=is_current(pod, situation.revision),
            is_available=is_available(pod, min_ready, situation.now),
        )
        for key, pod in staying
        if is_current(pod, situation.revision) or _has_its_time(situation, pod)
    ]
    return updating.to_replace(
        rolled,
        missing=max(situation.wanted - len(staying), 0),
        most_away=updating.allowed_away(rolling.max_unavailable, situation.wanted),
    )


def is_available(pod: WorkerPodObject, min_ready: timedelta, now: datetime) -> bool:
    """Check whether a worker has been ready for long enough; one of which nobody says since when has."""
    since = pod.ready_since
    is_ready = pod.facts.stage is PodStage.READY
    return is_ready and (since is None or since + min_ready <= now)


def needs_jobs(situation: NodeSetSituation, states: Callable[[str], frozenset[str] | None]) -> bool:
    """Check whether it matters who has jobs: workers are to go, or evictions wait for one that seems free.

    states: a node's by the last reading; None if there was none.
    """
    there = [
        (key, pod)
        for pod in situation.pods
        if (key := worker_key(situation.node_set, pod)) is not None
    ]
    return (
        len(there) > situation.wanted
        or bool(_leaving(situation, there))
        or is_outdated(situation)
        or any(
            pod.facts.is_protected
            and _cordoned(situation, pod)
            and (known := states(pod.slurm_node)) is not None
            and "DRAIN" in known
            and not known & BUSY
            for pod in situation.pods
        )
    )


def pins(situation: NodeSetSituation, planned: Sequence[PlannedWorker]) -> dict[str, str] | None:
    """Return to which Kubernetes node each worker returns; None if they are not to."""
    spec = situation.node_set.spec
    if not spec.pin_to_node or situation.on_nodes is not None:
        return None
    staying = [each for each in planned if each.facts.goes in ("", REPLACED)]
    return pinning.pins(
        situation.node_set.status.ordinal_to_node or {},
        {
            each.key: each.pod.kube_node
            for each in planned
            if isinstance(each.key, int) and each.pod and each.pod.kube_node
        },
        wanted=[each.key for each in staying if isinstance(each.key, int)],
        has_node=situation.has_node,
        shares=spec.oversubscribe_node,
    )


def worker_key(node_set: NodeSetObject, pod: WorkerPodObject) -> WorkerKey | None:
    """Return which worker a pod is; None if its name is not one of ours."""
    if kube_node := pod.metadata.annotations.get(names.KUBE_NODE_ANNOTATION):
        return OnNode(kube_node=kube_node, host=pod.slurm_node)
    prefix, _, number = pod.metadata.name.rpartition("-")
    if prefix != node_set.metadata.name or not number.isascii():
        return None
    return numbers.whole(number, most=10**10)


def may_have_lost_jobs(
    node_set: NodeSetObject, key: WorkerKey, listed: Callable[[str], SlurmNodeFacts | None] | None
) -> str:
    """Return why a worker that is made now may come after one that has ended under its jobs; "" if it surely does not.

    A pod that ends as it should drains its node and waits for its jobs first. One that was evicted, or deleted by force, has a
    successor at once, and then Slurm would take a job for alive that has just begun: also one that is younger than the last reading.

    listed: gives a node by the last reading; None while nothing is known of its Slurm.
    """
    name = host_name(node_set, key)
    if listed is None:
        some = node_set.status.slurm_allocated
        return "workers had jobs when Slurm was read last" if some else ""
    found = listed(name)
    if found is not None and found.is_busy:
        return f"Slurm has jobs on {name}"
    is_closed = found is None or found.states & {"DRAIN", "DOWN"}
    return "" if is_closed else f"{name} was not drained: a job may just have begun there"


def stamped(
    node_set: NodeSetObject,
    key: WorkerKey,
    body: Mapping[str, Any],
    *,
    digest: str,
    lost_jobs: str = "",
) -> dict[str, Any]:
    """Return a worker's pod with what makes it this NodeSet's worker, whatever its template says.

    lost_jobs: see `may_have_lost_jobs`.
    """
    meta = node_set.metadata
    given = body.get("metadata") or {}
    labels = {
        **(given.get("labels") or {}),
        **selecting(WORKER_APP, meta.name),
        names.DIGEST_LABEL: digest,
        **_told_apart(node_set, key),
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
        **given,
        "name": pod_name(node_set, key),
        "namespace": meta.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    marks = {names.KUBE_NODE_ANNOTATION: key.kube_node} if isinstance(key, OnNode) else {}
    marks |= {LOST_JOBS_ANNOTATION: lost_jobs} if lost_jobs else {}
    if marks:
        metadata["annotations"] = {**(given.get("annotations") or {}), **marks}
    return {"apiVersion": "v1", "kind": "Pod", **body, "metadata": metadata}


def _told_apart(node_set: NodeSetObject, key: WorkerKey) -> dict[str, str]:
    """Return the labels by which others find a worker; a name that no label can have is left out."""
    found = {
        names.MODE_LABEL: node_set.spec.scaling_mode,
        names.POD_NAME_LABEL: pod_name(node_set, key),
        names.POD_HOST_LABEL: host_name(node_set, key),
    }
    if not isinstance(key, OnNode):
        found[names.POD_INDEX_LABEL] = node_set.numbered(key)
    return {label: value for label, value in found.items() if len(value) <= _LONGEST_LABEL}


def strays(situation: NodeSetSituation) -> Iterable[str]:
    """Return the names of pods that it owns and that are none of its workers; they are left alone."""
    node_set = situation.node_set
    return (pod.metadata.name for pod in situation.pods if worker_key(node_set, pod) is None)


def _candidate(situation: NodeSetSituation, key: WorkerKey, pod: WorkerPodObject) -> LeavingWorker:
    return LeavingWorker(
        name=pod.metadata.name,
        ordinal=key if isinstance(key, int) else 0,
        pod=pod.facts,
        seen=situation.seen(pod.slurm_node),
        deletion_cost=_cost(pod),
        free_at=situation.free_at(pod.slurm_node),
        is_cordoned=bool(_cordoned(situation, pod)),
    )


def _kept_or_going(
    situation: NodeSetSituation, key: WorkerKey, pod: WorkerPodObject, why: Mapping[str, str]
) -> PlannedWorker:
    return PlannedWorker(
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


def _missing(situation: NodeSetSituation, key: WorkerKey) -> PlannedWorker:
    node = host_name(situation.node_set, key)
    facts = WorkerFacts(name=node, pod=None, seen=situation.seen(node))
    return PlannedWorker(key=key, pod=None, facts=facts)


def _cordoned(situation: NodeSetSituation, pod: WorkerPodObject) -> str:
    if pod.metadata.annotations.get(names.POD_CORDON_ANNOTATION) == "true":
        return "its pod is cordoned"
    return _clean(situation.cordons.get(pod.kube_node, ""))


def _clean(text: str) -> str:
    """Make a reason one that Slurm returns as it was written, or it would be written anew each time."""
    return " ".join(_UNFIT.sub(" ", text).split())[:_LONGEST_REASON].strip()


def _cost(pod: WorkerPodObject) -> int:
    text = pod.metadata.annotations.get(names.DELETION_COST_ANNOTATION, "")
    sign = -1 if text.startswith("-") else 1
    found = numbers.whole(text.removeprefix("-"), most=2**31 - 1) if text else None
    return sign * (found or 0)
