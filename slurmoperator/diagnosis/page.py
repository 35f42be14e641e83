"""One Slurm in pods on one page: its parts, its workers, its jobs, and what slurm-operator waits for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bridge.domain.model.jobs import JobPhase
from slurmoperator.diagnosis import parts, workers
from slurmoperator.diagnosis.parts import NamespaceObjects, PartLine, SlurmInPods
from slurmoperator.diagnosis.workers import WorkerLine
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.crd.metadata import ObjectMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPage:
    """One Slurm in pods."""

    namespace: str
    name: str
    is_ready: bool
    operator: str
    """Which slurm-operator sees to it, or why none does; "" if that may not be read."""
    parts: Sequence[PartLine]
    workers: Sequence[WorkerLine]
    running: int | None
    """Jobs that have started and not ended; None if Slurm was not asked."""
    pending: int | None
    waits: Sequence[str]
    """What slurm-operator waits for, or cannot do, each with its object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSummary:
    """One Slurm in pods, in one line."""

    namespace: str
    name: str
    state: str
    workers: int
    """That are wanted."""
    ready: int
    """Of their pods."""
    idle: int
    """In Slurm, by what the NodeSets were told last; so are the following."""
    allocated: int
    drained: int
    down: int
    why: str


def page(slurm: SlurmInPods, operator: str) -> SlurmPage:
    """Put everything on one page.

    operator: as in `SlurmPage`.
    """
    lines = parts.lines(slurm)
    alive = [each for each in slurm.queue or () if each.phase is not JobPhase.ENDED]
    pending = [each for each in alive if each.phase is JobPhase.WAITING]
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


def summaries(found: NamespaceObjects) -> list[SlurmSummary]:
    """Return a line for each Slurm."""
    return [_summary(found, controller) for controller in parts.controllers(found)]


def _summary(found: NamespaceObjects, controller: ObjectMetadata) -> SlurmSummary:
    objects = parts.belonging(found, controller.namespace, controller.name)
    waits = list(_waits(objects))
    told = [each.status for each in objects.node_sets]
    return SlurmSummary(
        namespace=controller.namespace,
        name=controller.name,
        state="NotReady" if waits else "Ready",
        workers=sum(each.desired for each in told),
        ready=sum(each.ready_replicas for each in told),
        idle=sum(each.slurm_idle for each in told),
        allocated=sum(each.slurm_allocated for each in told),
        drained=sum(each.slurm_drain for each in told),
        down=sum(each.slurm_down for each in told),
        why="; ".join(waits),
    )


def _waits(objects: NamespaceObjects) -> Iterator[str]:
    """Yield what is waited for; a SlurmCluster only repeats what its parts say, unless something is wrong with itself."""
    for cluster in objects.clusters:
        own = [condition for condition in cluster.status.conditions if condition.type == "Accepted"]
        yield from _of("SlurmCluster", cluster.metadata, own, cluster.fault)
    for part in objects.parts:
        yield from _of(part.kind, part.metadata, part.status.conditions, part.fault)
    for node_set in objects.node_sets:
        yield from _of("NodeSet", node_set.metadata, node_set.status.conditions, node_set.fault)


def _of(
    kind: str, metadata: ObjectMetadata, conditions: Sequence[ObjectCondition], fault: str
) -> Iterator[str]:
    for trouble in parts.troubles(metadata, conditions, fault):
        yield f"{kind}/{metadata.name}: {trouble}"
