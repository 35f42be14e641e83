"""How a SlurmCluster stands, from what its parts are told: pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.own.slurm_cluster import SlurmClusterStatus
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

_LONGEST_MESSAGE: Final = 2048
_MOST_SAID: Final = 3
_MATTER: Final = ("Accepted", "Configured", "Ready", "SlurmKnown")
_OF_SOME: Final = ("Configured", "SlurmKnown")
"""Of these not every kind is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """What an object that was made is told."""

    name: str
    """Kind and name."""
    generation: int = 0
    conditions: tuple[ObjectCondition, ...] = ()
    workers: NodeSetStatus | None = None
    """Of a NodeSet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Everything that the status depends on."""

    accepted: str = ""
    """What is wrong with the cluster; "" if nothing is."""
    accepted_reason: str = "BadInput"
    left: tuple[str, ...] = ()
    """Fields that others own."""
    failures: tuple[str, ...] = ()
    """What could not be done just now."""
    waits: tuple[str, ...] = ()
    """What a deleted cluster waits for."""
    parts: Sequence[PartState] | None = None
    """None if nothing was made."""


def status(
    before: SlurmClusterStatus, facts: ClusterFacts, *, generation: int, now: datetime
) -> SlurmClusterStatus:
    """Return the whole status; equal to the one before if nothing has changed."""
    found = (_accepted(facts), _ready(facts))
    sets = [part.workers for part in facts.parts or () if part.workers]
    others = (
        condition for condition in before.conditions if condition.type not in ("Accepted", "Ready")
    )
    told = [_since(before, each, generation, now.replace(microsecond=0)) for each in found]
    numbers = before if facts.parts is None else None
    return SlurmClusterStatus(
        conditions=(*told, *others),
        observed_generation=generation,
        workers=numbers.workers if numbers else sum(each.desired for each in sets),
        ready_workers=numbers.ready_workers
        if numbers
        else sum(each.ready_replicas for each in sets),
        idle=numbers.idle if numbers else sum(each.slurm_idle for each in sets),
        allocated=numbers.allocated if numbers else sum(each.slurm_allocated for each in sets),
    )


def is_ready(facts: ClusterFacts) -> bool:
    """Check whether there is nothing to wait for."""
    return _ready(facts)[1] == "True"


_Told = tuple[str, Literal["True", "False", "Unknown"], str, str]


def _accepted(facts: ClusterFacts) -> _Told:
    if facts.accepted:
        return "Accepted", "False", facts.accepted_reason, facts.accepted
    if facts.left:
        return "Accepted", "True", "FieldsOfOthers", "; ".join(facts.left)
    return "Accepted", "True", "Accepted", ""


def _ready(facts: ClusterFacts) -> _Told:
    if facts.waits:
        text = "; ".join((*facts.waits, *facts.failures))
        return "Ready", "False", "Deleting", f"it is deleted: {text}"
    if facts.failures:
        return "Ready", "False", "Failing", "; ".join(facts.failures)
    if facts.parts is None:
        return "Ready", "Unknown", "NotMade", "nothing was made of it: see Accepted"
    late = [said for part in facts.parts if (said := trouble(part))]
    if not late:
        return "Ready", "True", "AllReady", ""
    more = [f"and {len(late) - _MOST_SAID} more"] if len(late) > _MOST_SAID else []
    return "Ready", "False", "NotReady", "; ".join((*late[:_MOST_SAID], *more))


def trouble(part: PartState) -> str:
    """Return which part is not ready and why; "" if it is."""
    return next(_troubles(part), "")


def _troubles(part: PartState) -> Iterator[str]:
    told = {condition.type: condition for condition in part.conditions}
    for kind in _MATTER:
        found = told.get(kind)
        if found is None:
            if kind not in _OF_SOME:
                yield f"{part.name}: slurm-operator has not told yet how it stands"
        elif (found.observed_generation or 0) < part.generation:
            yield f"{part.name}: its change is not taken in yet"
        elif found.status != "True":
            yield f"{part.name}: {found.reason}: {found.message}"


def _since(
    before: SlurmClusterStatus, found: _Told, generation: int, now: datetime
) -> ObjectCondition:
    kind, truth, reason, message = found
    old = next((condition for condition in before.conditions if condition.type == kind), None)
    return ObjectCondition(
        type=kind,
        status=truth,
        reason=reason,
        message=faults.shortened(message, _LONGEST_MESSAGE),
        observed_generation=generation,
        last_transition_time=old.last_transition_time if old and old.status == truth else now,
    )
