"""Why one object of a Slurm in pods, or one worker, is as it is: in words, with what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.diagnosis.why import Diagnosis, Stage
from slurmoperator.diagnosis import parts, workers
from slurmoperator.diagnosis.parts import NamespaceObjects, SlurmInPods
from slurmoperator.diagnosis.workers import MISSING, UNKNOWN, InSlurm
from slurmoperator.nodesets import names
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.labels import CLUSTER_LABEL, PROTECTED_LABEL, TAKE_OVER_ANNOTATION
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers.choosing import REPLACED, SCALED_IN
from slurmoperator.workers.situation import REASON_PREFIX, PodStage
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.nodes import SlurmNodeFacts

_MOST_JOBS: Final = 5
"""So many of a worker's jobs are named."""
_WAIT: Final = "nothing: it goes on when these jobs have ended; squeue -w {node} lists them"
_NEXT: Final[Mapping[str, str]] = {
    "BadInput": "correct that field: kubectl -n {namespace} edit {kind} {name}",
    "NotServed": "change that field, or the namespaces that slurm-operator serves",
    "NotOurs": f"kubectl -n {{namespace}} annotate {{kind}} {{name}} {TAKE_OVER_ANNOTATION}=true hands it over",
    "NotTold": "kubectl slurm doctor: does slurm-operator run?",
    "Outdated": "kubectl slurm doctor: does slurm-operator run?",
    "ScalingIn": "nothing: workers go when their jobs have ended; squeue -w NODE lists them",
    "Updating": "nothing: workers are replaced when their jobs have ended",
    "Scheduled": "nothing: workers are replaced in their reservation; scontrol show reservation lists it",
    "OnDelete": "delete the workers' pods; each waits for its jobs first",
    "Stuck": "correct the template, or change it back",
    "NotRead": "kubectl -n {namespace} get restapis: one must be ready",
    "NotRegistered": "wait 30 s: slurmd asks slurmctld and registers again; if that lasts: kubectl -n {namespace} exec POD -c slurmd -- pkill -HUP -x slurmd",
    "InvalidRegistration": "kubectl -n {namespace} exec POD -c slurmd -- slurmd -C: correct what the NodeSet says of its workers, or what they lack",
    "VolumeDeleted": "copy its data: it is lost when the pod ends, and nothing takes the deletion of a claim back",
    "Rotating": "nothing: the key of the daemons is replaced when all have this step",
    "Elsewhere": "take the annotation that asks for another key off again",
    "Deleting": "nothing: it goes when its workers' jobs have ended; squeue lists them",
}
"""What to do, by the reason of the condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedObject:
    """An object of one of the kinds, about which somebody asks."""

    kind: str
    metadata: ObjectMetadata
    conditions: Sequence[ObjectCondition]
    fault: str = ""
    """Why it cannot be read; "" if it can."""
    controller: str = ""
    """The Controller of its Slurm; "" if that is not known, or if it may serve several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWorker:
    """A worker, about which somebody asks."""

    pod: WorkerPodObject
    queue: Sequence[QueuedJob] | None
    """All of Slurm's jobs; None if Slurm was not asked."""
    slurm_nodes: Sequence[SlurmNodeFacts] | None
    """All of Slurm's nodes; likewise."""


def asked(found: NamespaceObjects, kind: str, name: str) -> AskedObject:
    """Return the object that is meant; one of which nothing is known if it is not there."""
    return next(
        (each for each in _all(found) if (each.kind, each.metadata.name) == (kind, name)),
        AskedObject(kind=kind, metadata=ObjectMetadata(name=name), conditions=()),
    )


def _all(found: NamespaceObjects) -> Iterator[AskedObject]:
    for cluster in found.clusters:
        yield AskedObject(
            kind="SlurmCluster",
            metadata=cluster.metadata,
            conditions=cluster.status.conditions,
            fault=cluster.fault,
            controller=cluster.metadata.name,
        )
    for node_set in found.node_sets:
        spec = node_set.whole.spec if node_set.whole else None
        yield AskedObject(
            kind="NodeSet",
            metadata=node_set.metadata,
            conditions=node_set.status.conditions,
            fault=node_set.fault,
            controller=spec.controller_ref.name if spec else "",
        )
    for part in found.parts:
        yield AskedObject(
            kind=part.kind,
            metadata=part.metadata,
            conditions=part.status.conditions,
            fault=part.fault,
            controller=part.metadata.name if part.kind == "Controller" else "",
        )


def of_object(asked: AskedObject, slurm: SlurmInPods | None) -> Diagnosis:
    """Explain how an object stands.

    slurm: the Slurm it belongs to; None if that is not known.
    """
    meta = asked.metadata
    state, why = parts.standing(meta, asked.conditions, asked.fault)
    kind = asked.kind.lower()
    step = _NEXT.get(state, "").format(namespace=meta.namespace, kind=kind, name=meta.name)
    all_of_it = list(parts.troubles(meta, asked.conditions, asked.fault))
    details = [("besides", each) for each in all_of_it[1:]]
    details += _of_slurm(asked, slurm) if slurm else []
    if state == "Ready":
        return Diagnosis(stage=Stage.RUNS, state="is ready", details=tuple(details))
    return Diagnosis(
        stage=Stage.ENDS if state == "Deleting" else Stage.WAITS,
        state="is being deleted" if state == "Deleting" else "is not ready",
        why=f"{why} ({state})" if why else state,
        next_step=step or f"kubectl -n {meta.namespace} describe {kind} {meta.name}",
        details=tuple(details),
    )


def _of_slurm(asked: AskedObject, slurm: SlurmInPods) -> list[tuple[str, str]]:
    """Return what else of its Slurm explains an object."""
    found = [("Slurm", f"{slurm.namespace}/{slurm.name}")]
    lines = parts.lines(slurm)
    if asked.kind == "SlurmCluster":
        found += [
            (line.part, line.state + (f": {line.why}" if line.why else ""))
            for line in lines
            if not line.part.startswith("SlurmCluster/")
        ]
    name = asked.metadata.name
    of = [
        line
        for line in workers.lines(slurm)
        if asked.kind == "SlurmCluster" or (asked.kind == "NodeSet" and line.node_set == name)
    ]
    found += [("workers", workers.counted(of))] if of else []
    found += [
        (f"worker {each.worker}", f"{each.pod}, {each.state}, {each.why}")
        for each in of
        if each.why
    ]
    return found


def of_worker(asked: AskedWorker) -> Diagnosis:
    """Explain how a worker stands: its pod first, then its node in Slurm."""
    pod = asked.pod
    known = workers.in_slurm(pod, asked.slurm_nodes)
    found = _of_pod(pod) or _in_slurm(pod, known)
    return replace(found, details=tuple(_details(asked, known)))


def _of_pod(pod: WorkerPodObject) -> Diagnosis | None:
    """Return how it stands because of its pod; None if its pod is ready."""
    described = f"kubectl -n {pod.metadata.namespace} describe pod {pod.metadata.name}"
    match pod.facts.stage:
        case PodStage.READY:
            return None
        case PodStage.TERMINATING:
            return _said(
                Stage.ENDS,
                "is being deleted",
                "it takes no more jobs, and its container ends when those it has have ended",
                _WAIT.format(node=pod.slurm_node),
            )
        case PodStage.OVER:
            return _said(Stage.ENDED, "has ended", f"its pod is {pod.status.phase}", described)
        case _:
            why = "; ".join(why_not_ready(pod.status))
            return _said(
                Stage.STARTS,
                "is not ready",
                why or "its slurmd has not answered its probes yet",
                described if why else f"if that lasts: {described}",
            )


def _in_slurm(pod: WorkerPodObject, known: InSlurm) -> Diagnosis:
    """Return how a ready worker stands in Slurm."""
    word, node = known.word, pod.slurm_node
    resume = f"when that is mended: scontrol update nodename={node} state=resume"
    if word == UNKNOWN:
        return _said(
            Stage.RUNS,
            "runs",
            "nobody has told how it stands in Slurm",
            "give --slurm-url and a token, or: kubectl slurm doctor",
        )
    if word == MISSING:
        return _said(
            Stage.WAITS,
            "runs, and Slurm does not have it",
            "slurmctld does not know its slurmd: it has lost its state, or the node's record was deleted",
            "wait 30 s: slurmd asks slurmctld and registers again; if that lasts:"
            f" kubectl -n {pod.metadata.namespace} exec {pod.metadata.name} -c slurmd -- pkill -HUP -x slurmd",
        )
    if word in ("draining", "drained"):
        is_ours = known.reason.startswith(REASON_PREFIX)
        step = _after_drain(pod, known) if is_ours else resume
        return _said(Stage.WAITS, f"is {word}", known.whose, step)
    if known.whose:
        return _said(Stage.WAITS, f"is {word} in Slurm", known.whose, resume)
    return _said(Stage.RUNS, "is idle" if word == "idle" else f"runs jobs ({word})", "", "")


def _after_drain(pod: WorkerPodObject, known: InSlurm) -> str:
    """Return what ends a drain of ours."""
    why = known.reason.removeprefix(REASON_PREFIX)
    if pod.metadata.annotations.get(names.POD_CORDON_ANNOTATION) == "true":
        taken_off = f"{names.POD_CORDON_ANNOTATION}-"
        return f"kubectl -n {pod.metadata.namespace} annotate pod {pod.metadata.name} {taken_off}"
    if why in (SCALED_IN, REPLACED):
        return _WAIT.format(node=pod.slurm_node)
    return f"if its Kubernetes node is cordoned: kubectl uncordon {pod.kube_node}"


def _details(asked: AskedWorker, known: InSlurm) -> Iterator[tuple[str, str]]:
    pod = asked.pod
    owner = next(
        (
            owner_reference
            for owner_reference in pod.metadata.owner_references
            if owner_reference.controller
        ),
        None,
    )
    yield "NodeSet", owner.name if owner else "none"
    yield "Slurm", pod.metadata.labels.get(CLUSTER_LABEL, "")
    states = "+".join(sorted(known.states or ())) or known.word
    yield "Slurm node", f"{pod.slurm_node} {states}"
    yield "node", pod.kube_node
    if asked.queue is not None:
        jobs = workers.jobs_on(pod.slurm_node, asked.queue)
        some = ", ".join(f"{job.id} of {job.user}" for job in jobs[:_MOST_JOBS])
        more = f" and {len(jobs) - _MOST_JOBS} more" if len(jobs) > _MOST_JOBS else ""
        yield "jobs", f"{some}{more}" if jobs else "none"
    guarded = pod.metadata.labels.get(PROTECTED_LABEL) == "true"
    yield "evictions", "are refused" if guarded else "are let through"


def _said(stage: Stage, state: str, why: str, next_step: str) -> Diagnosis:
    return Diagnosis(stage=stage, state=state, why=why, next_step=next_step)
