"""Explain the state of one object of a Slurm in pods, or of one worker, and what to do about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.diagnosis.why import Diagnosis, Stage
from slurmoperator.diagnosis import parts, workers
from slurmoperator.diagnosis.parts import NamespaceObjects, SlurmInPods, WatchedObject
from slurmoperator.diagnosis.workers import MISSING, UNKNOWN, SlurmNodeView
from slurmoperator.nodesets import names
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.labels import CLUSTER_LABEL, PROTECTED_LABEL, TAKE_OVER_ANNOTATION
from slurmoperator.objects.names import listed
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers.choosing import REPLACED, SCALED_IN
from slurmoperator.workers.situation import REASON_PREFIX, PodStage
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.nodes import SlurmNodeFacts

_MOST_JOBS: Final = 5
_WAIT: Final = "nothing: it continues when these jobs have ended; list them with squeue -w {node}"
_NEXT: Final[Mapping[str, str]] = {
    "BadInput": "correct that field: kubectl -n {namespace} edit {kind} {name}",
    "NotServed": "change that field, or the namespaces that slurm-operator serves",
    "NotOurs": f"hand it over: kubectl -n {{namespace}} annotate {{kind}} {{name}} {TAKE_OVER_ANNOTATION}=true",
    "NotTold": "kubectl slurm doctor: does slurm-operator run?",
    "Outdated": "kubectl slurm doctor: does slurm-operator run?",
    "ScalingIn": "nothing: workers are removed when their jobs have ended; list them with squeue -w NODE",
    "Updating": "nothing: workers are replaced when their jobs have ended",
    "Scheduled": "nothing: workers are replaced during their reservation; see scontrol show reservation",
    "OnDelete": "delete the workers' pods; each waits for its jobs before it ends",
    "Stuck": "correct the template, or change it back",
    "NotRead": "kubectl -n {namespace} get restapis: one must be ready",
    "NotRegistered": "wait 30 s: slurmd asks slurmctld and registers again; if it does not: kubectl -n {namespace} exec POD -c slurmd -- pkill -HUP -x slurmd",
    "InvalidRegistration": "kubectl -n {namespace} exec POD -c slurmd -- slurmd -C: correct what the NodeSet declares for its workers, or add what they lack",
    "VolumeDeleted": "copy its data: it is lost when the pod ends, and the deletion of a PVC cannot be undone",
    "Rotating": "nothing: the next step follows when all daemons have this one",
    "Elsewhere": "remove the annotation that requests another key",
    "Deleting": "nothing: it is removed when its workers' jobs have ended; list them with squeue",
}
"""What to do, by the reason of the condition."""


def controller_of(objects: NamespaceObjects, kind: str, name: str) -> str:
    """Return the Controller of an object's Slurm; "" if that is unknown, or if the object may serve several."""
    watched = _find(objects, kind, name)
    if watched is not None and isinstance(watched.parsed, NodeSetObject):
        return watched.parsed.spec.controller_ref.name
    return name if watched is not None and kind in ("SlurmCluster", "Controller") else ""


def explain_object(
    objects: NamespaceObjects, kind: str, name: str, slurm: SlurmInPods | None
) -> Diagnosis:
    """Explain the state of an object, and of its Slurm if that is known."""
    watched = _find(objects, kind, name)
    meta = watched.metadata if watched else ObjectMetadata(name=name)
    conditions = watched.status.conditions if watched else ()
    fault = watched.fault if watched else ""
    state, why = parts.summarize(meta, conditions, fault)
    singular = kind.lower()
    step = _NEXT.get(state, "").format(namespace=meta.namespace, kind=singular, name=name)
    problems = list(parts.problems(meta, conditions, fault))
    details = [("also", problem) for problem in problems[1:]]
    details += _slurm_details(kind, name, slurm) if slurm else []
    if state == "Ready":
        return Diagnosis(stage=Stage.RUNS, state="is ready", details=tuple(details))
    return Diagnosis(
        stage=Stage.ENDS if state == "Deleting" else Stage.WAITS,
        state="is being deleted" if state == "Deleting" else "is not ready",
        why=f"{why} ({state})" if why else state,
        next_step=step or f"kubectl -n {meta.namespace} describe {singular} {name}",
        details=tuple(details),
    )


def _find(objects: NamespaceObjects, kind: str, name: str) -> WatchedObject | None:
    named = (watched for watched in objects.watched if watched.metadata.name == name)
    return next((watched for watched in named if watched.kind == kind), None)


def _slurm_details(kind: str, name: str, slurm: SlurmInPods) -> list[tuple[str, str]]:
    details = [("Slurm", f"{slurm.namespace}/{slurm.name}")]
    lines = parts.lines(slurm)
    if kind == "SlurmCluster":
        details += [
            (line.part, line.state + (f": {line.why}" if line.why else ""))
            for line in lines
            if not line.part.startswith("SlurmCluster/")
        ]
    own_workers = [
        worker
        for worker in workers.lines(slurm)
        if kind == "SlurmCluster" or (kind == "NodeSet" and worker.node_set == name)
    ]
    details += [("workers", workers.count_states(own_workers))] if own_workers else []
    details += [
        (f"worker {worker.worker}", f"{worker.pod}, {worker.state}, {worker.why}")
        for worker in own_workers
        if worker.why
    ]
    return details


def explain_worker(
    pod: WorkerPodObject,
    queue: Sequence[QueuedJob] | None,
    slurm_nodes: Sequence[SlurmNodeFacts] | None,
) -> Diagnosis:
    """Explain the state of a worker: its pod first, then its node in Slurm; jobs and nodes are None if Slurm was not asked."""
    slurm_node = workers.slurm_view(pod, slurm_nodes)
    diagnosis = _diagnose_pod(pod) or _diagnose_slurm_node(pod, slurm_node)
    return replace(diagnosis, details=tuple(_worker_details(pod, queue, slurm_node)))


def _diagnose_pod(pod: WorkerPodObject) -> Diagnosis | None:
    describe = f"kubectl -n {pod.metadata.namespace} describe pod {pod.metadata.name}"
    match pod.facts.stage:
        case PodStage.READY:
            return None
        case PodStage.TERMINATING:
            return _diagnosis(
                Stage.ENDS,
                "is being deleted",
                "it accepts no more jobs, and its container ends when its jobs have ended",
                _WAIT.format(node=pod.slurm_node),
            )
        case PodStage.OVER:
            return _diagnosis(Stage.ENDED, "has ended", f"its pod is {pod.status.phase}", describe)
        case _:
            why = "; ".join(why_not_ready(pod.status))
            return _diagnosis(
                Stage.STARTS,
                "is not ready",
                why or "its slurmd has not answered its probes yet",
                describe if why else f"if this persists: {describe}",
            )


def _diagnose_slurm_node(pod: WorkerPodObject, slurm_node: SlurmNodeView) -> Diagnosis:
    state, name = slurm_node.state, pod.slurm_node
    resume = f"when that is fixed: scontrol update nodename={name} state=resume"
    if state == UNKNOWN:
        return _diagnosis(
            Stage.RUNS,
            "runs",
            "its state in Slurm has not been reported",
            "give --slurm-url and a token, or: kubectl slurm doctor",
        )
    if state == MISSING:
        return _diagnosis(
            Stage.WAITS,
            "runs, but Slurm does not know it",
            "slurmctld has lost its state, or the node's record was deleted",
            "wait 30 s: slurmd asks slurmctld and registers again; if it does not:"
            f" kubectl -n {pod.metadata.namespace} exec {pod.metadata.name} -c slurmd -- pkill -HUP -x slurmd",
        )
    if state in ("draining", "drained"):
        is_ours = slurm_node.reason.startswith(REASON_PREFIX)
        step = _end_of_drain(pod, slurm_node) if is_ours else resume
        return _diagnosis(Stage.WAITS, f"is {state}", slurm_node.cause, step)
    if slurm_node.cause:
        return _diagnosis(Stage.WAITS, f"is {state} in Slurm", slurm_node.cause, resume)
    return _diagnosis(Stage.RUNS, "is idle" if state == "idle" else f"runs jobs ({state})", "", "")


def _end_of_drain(pod: WorkerPodObject, slurm_node: SlurmNodeView) -> str:
    why = slurm_node.reason.removeprefix(REASON_PREFIX)
    if pod.metadata.annotations.get(names.POD_CORDON_ANNOTATION) == "true":
        removal = f"{names.POD_CORDON_ANNOTATION}-"
        return f"kubectl -n {pod.metadata.namespace} annotate pod {pod.metadata.name} {removal}"
    if why in (SCALED_IN, REPLACED):
        return _WAIT.format(node=pod.slurm_node)
    return f"if its Kubernetes node is cordoned: kubectl uncordon {pod.kube_node}"


def _worker_details(
    pod: WorkerPodObject, queue: Sequence[QueuedJob] | None, slurm_node: SlurmNodeView
) -> Iterator[tuple[str, str]]:
    owner = next((ref for ref in pod.metadata.owner_references if ref.controller), None)
    yield "NodeSet", owner.name if owner else "none"
    yield "Slurm", pod.metadata.labels.get(CLUSTER_LABEL, "")
    states = "+".join(sorted(slurm_node.states or ())) or slurm_node.state
    yield "Slurm node", f"{pod.slurm_node} {states}"
    yield "node", pod.kube_node
    if queue is not None:
        jobs = [f"{job.id} of {job.user}" for job in workers.jobs_on(pod.slurm_node, queue)]
        yield "jobs", listed(jobs, _MOST_JOBS) or "none"
    is_protected = pod.metadata.labels.get(PROTECTED_LABEL) == "true"
    yield "evictions", "refused" if is_protected else "allowed"


def _diagnosis(stage: Stage, state: str, why: str, next_step: str) -> Diagnosis:
    return Diagnosis(stage=stage, state=state, why=why, next_step=next_step)
