"""One Slurm in pods on one page: its parts, its workers, its jobs, and what slurm-operator waits for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bridge.domain.model.jobs import JobPhase
from slurmoperator.diagnosis import parts, workers
from slurmoperator.diagnosis.parts import NamespaceObjects, PartLine, SlurmInPods
from slurmoperator.diagnosis.workers import WorkerLine
from slurmruntime.crd.metadata import ObjectMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPage:
    """One Slurm in pods."""

    namespace: str
    name: str
    is_ready: bool
    operator: str
    """Whether slurm-operator runs; "" if that may not be read."""
    parts: Sequence[PartLine]
    workers: Sequence[WorkerLine]
    running: int | None
    """Jobs that have started and not ended; None if Slurm was not asked."""
    pending: int | None
    waits: Sequence[str]
    """What slurm-operator waits for or cannot do, each with its object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSummary:
    """One Slurm in pods, in one line."""

    namespace: str
    name: str
    state: str
    workers: int
    """The desired number."""
    ready: int
    """The number of workers whose pods are ready."""
    idle: int
    """In Slurm, as last reported by the NodeSets; so are the following."""
    allocated: int
    drained: int
    down: int
    why: str


def page(slurm: SlurmInPods, operator: str) -> SlurmPage:
    """Put everything on one page; `operator` is as in `SlurmPage`."""
    lines = parts.lines(slurm)
    alive = [job for job in slurm.queue or () if job.phase is not JobPhase.ENDED]
    pending = [job for job in alive if job.phase is JobPhase.WAITING]
    return SlurmPage(
        namespace=slurm.namespace,
        name=slurm.name,
        is_ready=all(line.state == "Ready" for line in lines),
        operator=operator,
        parts=lines,
        workers=workers.lines(slurm),
        running=None if slurm.queue is None else len(alive) - len(pending),
        pending=None if slurm.queue is None else len(pending),
        waits=tuple(_waits(slurm.objects)),
    )


def summaries(objects: NamespaceObjects) -> list[SlurmSummary]:
    """Return a line for each Slurm."""
    return [_summary(objects, controller) for controller in parts.controllers(objects)]


def _summary(objects: NamespaceObjects, controller: ObjectMetadata) -> SlurmSummary:
    own = parts.select(objects, controller.namespace, controller.name)
    waits = list(_waits(own))
    statuses = [node_set.status for node_set in own.node_sets]
    return SlurmSummary(
        namespace=controller.namespace,
        name=controller.name,
        state="NotReady" if waits else "Ready",
        workers=sum(status.desired for status in statuses),
        ready=sum(status.ready_replicas for status in statuses),
        idle=sum(status.slurm_idle for status in statuses),
        allocated=sum(status.slurm_allocated for status in statuses),
        drained=sum(status.slurm_drain for status in statuses),
        down=sum(status.slurm_down for status in statuses),
        why="; ".join(waits),
    )


def _waits(objects: NamespaceObjects) -> Iterator[str]:
    """Yield what the objects wait for. A SlurmCluster repeats its parts, so only its own faults count."""
    for watched in objects.watched:
        conditions = watched.status.conditions
        if watched.kind == "SlurmCluster":
            conditions = tuple(own for own in conditions if own.type == "Accepted")
        for problem in parts.problems(watched.metadata, conditions, watched.fault):
            yield f"{watched.kind}/{watched.metadata.name}: {problem}"
