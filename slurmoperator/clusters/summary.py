"""The status of a SlurmCluster, from the status of its parts: pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from slurmoperator.objects.nodeset import NodeSetStatus
from slurmoperator.objects.own.slurm_cluster import SlurmClusterStatus
from slurmoperator.objects.parts import UntimedCondition, with_time
from slurmruntime.crd.conditions import ObjectCondition

_MOST_TROUBLES: Final = 3
_REQUIRED: Final = ("Accepted", "Configured", "Ready", "SlurmKnown")
_OPTIONAL: Final = ("Configured", "SlurmKnown")
"""Those of them that not every kind has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """The status of one object of a cluster."""

    name: str
    """Kind and name."""
    generation: int = 0
    conditions: tuple[ObjectCondition, ...] = ()
    workers: NodeSetStatus | None = None
    """The status of a NodeSet; None for other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Everything that the status depends on."""

    accepted: str = ""
    """What is wrong with the cluster; "" if nothing is."""
    accepted_reason: str = "BadInput"
    foreign_fields: tuple[str, ...] = ()
    """Messages about fields that other managers own."""
    failures: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    parts: Sequence[PartState] | None = None
    """None if nothing was created."""


def status(
    before: SlurmClusterStatus, facts: ClusterFacts, *, generation: int, now: datetime
) -> SlurmClusterStatus:
    """Return the whole status; equal to the one before if nothing has changed."""
    node_sets = [part.workers for part in facts.parts or () if part.workers]
    others = (
        condition for condition in before.conditions if condition.type not in ("Accepted", "Ready")
    )
    ours = [
        with_time(before.conditions, condition, generation=generation, now=now)
        for condition in (_accepted(facts), _ready(facts))
    ]
    after = msgspec.structs.replace(
        before, conditions=(*ours, *others), observed_generation=generation
    )
    if facts.parts is None:
        return after
    return msgspec.structs.replace(
        after,
        workers=sum(node_set.desired for node_set in node_sets),
        ready_workers=sum(node_set.ready_replicas for node_set in node_sets),
        idle=sum(node_set.slurm_idle for node_set in node_sets),
        allocated=sum(node_set.slurm_allocated for node_set in node_sets),
    )


def is_ready(facts: ClusterFacts) -> bool:
    """Check whether there is nothing to wait for."""
    return _ready(facts)[1] == "True"


def _accepted(facts: ClusterFacts) -> UntimedCondition:
    if facts.accepted:
        return "Accepted", "False", facts.accepted_reason, facts.accepted
    if facts.foreign_fields:
        return "Accepted", "True", "FieldsOfOthers", "; ".join(facts.foreign_fields)
    return "Accepted", "True", "Accepted", ""


def _ready(facts: ClusterFacts) -> UntimedCondition:
    if facts.waits:
        text = "; ".join((*facts.waits, *facts.failures))
        return "Ready", "False", "Deleting", f"being deleted: {text}"
    if facts.failures:
        return "Ready", "False", "Failing", "; ".join(facts.failures)
    if facts.parts is None:
        return "Ready", "Unknown", "NotMade", "nothing was created: see Accepted"
    late = [message for part in facts.parts if (message := trouble(part))]
    if not late:
        return "Ready", "True", "AllReady", ""
    more = [f"and {len(late) - _MOST_TROUBLES} more"] if len(late) > _MOST_TROUBLES else []
    return "Ready", "False", "NotReady", "; ".join((*late[:_MOST_TROUBLES], *more))


def trouble(part: PartState) -> str:
    """Return why a part is not ready, with its name; "" if it is."""
    return next(_troubles(part), "")


def _troubles(part: PartState) -> Iterator[str]:
    conditions = {condition.type: condition for condition in part.conditions}
    for kind in _REQUIRED:
        condition = conditions.get(kind)
        if condition is None:
            if kind not in _OPTIONAL:
                yield f"{part.name}: slurm-operator has not reported its state yet"
        elif (condition.observed_generation or 0) < part.generation:
            yield f"{part.name}: its last change has not been processed yet"
        elif condition.status != "True":
            yield f"{part.name}: {condition.reason}: {condition.message}"
