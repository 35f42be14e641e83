"""What an object of the control plane is told: pure, and the same for the same facts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from slurmoperator.daemons.workload import WorkloadState
from slurmoperator.keys.rotation import RotationDecision
from slurmoperator.objects.controller import ControllerStatus
from slurmoperator.objects.loginset import LoginSetStatus
from slurmoperator.objects.parts import ConditionsOnly
from slurmoperator.objects.token import TokenStatus
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

KEY_CONDITION: Final = "SlurmKeyRotated"
"""Of a Controller whose daemons' key was replaced, or is to be."""

_LONGEST_MESSAGE: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFacts:
    """Everything that the conditions depend on."""

    accepted: str = ""
    """What is wrong with the object, or with what it names; "" if nothing is."""
    accepted_reason: str = "BadInput"
    """CamelCase; of `accepted`."""
    notes: tuple[str, ...] = ()
    """What is wanted and left out, while all the rest is served."""
    waits: str = ""
    """What a deleted object waits for; "" if it is not deleted."""
    configured: str | None = None
    """What is wrong with the configuration; "" if nothing is, None if the object has none."""
    not_tried: str = ""
    """Why it is not known whether the daemon takes the configuration; "" if it is."""
    digest: str = ""
    """Of the configuration in force; "" if none was ever seen so."""
    kept: str = ""
    """Which partitions are in it that nobody wants any more, and why."""
    failures: tuple[str, ...] = ()
    """What could not be done just now."""
    workloads: tuple[WorkloadState, ...] | None = None
    """None if it is not known how they stand."""
    selector: str = ""
    """Selects the pods that a scale counts; "" if nothing is scaled."""
    issued_at: datetime | None = None
    """Of a token."""
    said: str = ""
    """What there is to say when all is ready."""
    expired: str = ""
    """Why what was made is of no use any more; "" if it is."""
    key_step: int | None = None
    """Of a Controller: which step of their key daemons get that are made now; None if that is not known."""
    key: RotationDecision | None = None
    """Likewise: how far its key is on the way to another one; None if nobody has looked: then the old word holds."""


def status(
    before: ConditionsOnly, facts: PartFacts, *, generation: int, now: datetime
) -> ConditionsOnly:
    """Return the whole status, of the type that it had before; equal to it if nothing has changed."""
    found = told(before.conditions, facts, generation=generation, now=now)
    match before:
        case LoginSetStatus():
            pods = before.replicas
            if facts.workloads is not None:
                pods = sum(workload.there for workload in facts.workloads)
            selector = facts.selector or before.selector
            return LoginSetStatus(conditions=found, replicas=pods, selector=selector)
        case ControllerStatus():
            step = before.slurm_key_step if facts.key_step is None else facts.key_step
            return ControllerStatus(conditions=found, slurm_key_step=step)
        case TokenStatus():
            return TokenStatus(conditions=found, issued_at=facts.issued_at or before.issued_at)
        case _:
            return ConditionsOnly(conditions=found)


def told(
    before: Sequence[ObjectCondition], facts: PartFacts, *, generation: int, now: datetime
) -> tuple[ObjectCondition, ...]:
    """Return the conditions, each with the time since which it has held; those of others stay."""
    found = [_accepted(facts), *_configured(facts), _ready(facts), *_key(facts)]
    ours = [
        _since(before, each, generation=generation, now=now.replace(microsecond=0))
        for each in found
    ]
    names = {"Accepted", "Configured", "Ready", *([] if facts.key is None else [KEY_CONDITION])}
    return (*ours, *(each for each in before if each.type not in names))


_Told = tuple[str, Literal["True", "False", "Unknown"], str, str]


def _accepted(facts: PartFacts) -> _Told:
    if facts.accepted:
        return "Accepted", "False", facts.accepted_reason, facts.accepted
    if facts.notes:
        return "Accepted", "True", "PartlyServed", "; ".join((*facts.notes, "all else is served"))
    return "Accepted", "True", "Accepted", ""


def _configured(facts: PartFacts) -> Iterable[_Told]:
    if facts.configured is None:
        return
    if facts.configured:
        kept = f"; what is in force stays (digest {facts.digest[:12]})" if facts.digest else ""
        yield "Configured", "False", "Refused", f"{facts.configured}{kept}"
    elif facts.not_tried:
        yield "Configured", "Unknown", "NotTried", facts.not_tried
    elif facts.kept:
        yield "Configured", "True", "PartitionsKept", f"digest {facts.digest[:12]}; {facts.kept}"
    else:
        yield "Configured", "True", "InForce", f"digest {facts.digest[:12]}"


def _key(facts: PartFacts) -> Iterable[_Told]:
    if facts.key is not None and facts.key.reason:
        yield KEY_CONDITION, facts.key.truth, facts.key.reason, facts.key.message


def _ready(facts: PartFacts) -> _Told:
    if facts.waits:
        return "Ready", "False", "Deleting", facts.waits
    if facts.failures:
        return "Ready", "False", "Failing", "; ".join(facts.failures)
    if facts.expired:
        return "Ready", "False", "Expired", facts.expired
    if facts.workloads is None:
        return "Ready", "Unknown", "NotRead", "it is not known how its pods stand"
    late = [workload for workload in facts.workloads if not workload.is_ready]
    leaving = [
        f"{workload.name}: {said}" for workload in facts.workloads for said in workload.leaving
    ]
    if leaving and not late:
        return "Ready", "False", "VolumeDeleted", "; ".join(leaving)
    if not late:
        return "Ready", "True", "AllReady", facts.said
    said = (
        "; ".join((f"{each.name}: {each.ready} of {each.wanted} pods are ready", *each.waits))
        for each in late
    )
    return "Ready", "False", "NotReady", "; ".join((*said, *leaving))


def _since(
    before: Sequence[ObjectCondition], found: _Told, *, generation: int, now: datetime
) -> ObjectCondition:
    """Return a condition with the time since which it has held."""
    kind, truth, reason, message = found
    old = next((each for each in before if each.type == kind), None)
    return ObjectCondition(
        type=kind,
        status=truth,
        reason=reason,
        message=faults.shortened(message, _LONGEST_MESSAGE),
        observed_generation=generation,
        last_transition_time=old.last_transition_time if old and old.status == truth else now,
    )
