"""The status of an object of the control plane: pure, and the same for the same facts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slurmoperator.daemons.situation import PartOutcome, PartPlan, WorkloadState
from slurmoperator.keys.rotation import KEY_CONDITION, RotationDecision
from slurmoperator.objects.controller import ControllerStatus
from slurmoperator.objects.labels import selecting
from slurmoperator.objects.loginset import LoginSetStatus
from slurmoperator.objects.parts import ConditionsOnly, UntimedCondition, with_time
from slurmoperator.objects.token import TokenStatus
from slurmoperator.rendering.loginset import LOGIN_APP
from slurmruntime.crd.conditions import ObjectCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """Everything that the conditions depend on."""

    accepted: str = ""
    """What is wrong with the object or with what it refers to; "" if nothing is."""
    accepted_reason: str = "BadInput"
    """CamelCase; of `accepted`."""
    notes: tuple[str, ...] = ()
    """What the object asks for and does not get, while all the rest is served."""
    waits: str = ""
    """What a deleted object waits for; "" if it is not deleted."""
    configured: str | None = None
    """What is wrong with the configuration; "" if nothing is, None if the object has none."""
    not_tried: str = ""
    """Why it is unknown whether the daemon accepts the configuration; "" if it is known."""
    digest: str = ""
    """Of the configuration in force; "" if no daemon has been seen serving with one."""
    kept_partitions: str = ""
    """Which partitions stay in it although the spec no longer has them, and why."""
    failures: tuple[str, ...] = ()
    is_interrupted: bool = False
    """Whether a call failed in a way that passes: then not everything that is wanted is there, and Ready does not become True."""
    workloads: tuple[WorkloadState, ...] | None = None
    """None if their state is unknown."""
    selector: str = ""
    """Selects the pods that a scale counts; "" if nothing is scaled."""
    issued_at: datetime | None = None
    """When a token was issued; None for other kinds."""
    ready_message: str = ""
    """The message of Ready when all is ready."""
    expired: str = ""
    """Why what was made is of no more use; "" if it still is."""
    key_step: int | None = None
    """Of a Controller: the version of their key that new daemons get; None if it is unknown."""
    key: RotationDecision | None = None
    """Of a Controller: how far the rotation of its key is; None if that was not checked: then the last condition stays."""


def report(plan: PartPlan, outcome: PartOutcome, now: datetime, *, waits: str = "") -> PartReport:
    """Return what to report of one look; `waits` is what a deleted object waits for."""
    failure = outcome.failure
    part_report = PartReport(
        accepted=plan.refused or outcome.refused,
        accepted_reason=outcome.refused_reason,
        notes=outcome.notes,
        waits=waits,
        configured=plan.configured,
        not_tried=plan.verdict.not_tried if plan.verdict else "",
        digest=plan.verdict.digest if plan.verdict else "",
        kept_partitions=plan.kept_partitions,
        failures=(str(failure),) if failure is not None and not failure.transient else (),
        is_interrupted=failure is not None and failure.transient,
        workloads=outcome.workloads,
        key_step=plan.ring.step if plan.ring else None,
        key=None if outcome.is_cut_short else plan.rotation,
    )
    if (login_set := plan.host_keys) is not None:
        labels = selecting(LOGIN_APP, login_set.metadata.name).items()
        selector = ",".join(f"{key}={value}" for key, value in labels)
        part_report = replace(part_report, selector=selector)
    if (token := plan.token) is not None:
        until = f"{token.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        expired = f"it expired at {until}: create another Token, or set spec.refresh"
        part_report = replace(
            part_report,
            issued_at=None if outcome.is_cut_short else token.issued_at,
            ready_message=f"valid until {until}",
            expired=expired if token.expires_at <= now else "",
        )
    return part_report


def status(
    before: ConditionsOnly, facts: PartReport, *, generation: int, now: datetime
) -> ConditionsOnly:
    """Return the whole status, of the type that it had before; equal to it if nothing has changed."""
    current = evaluate(before.conditions, facts, generation=generation, now=now)
    match before:
        case LoginSetStatus():
            pods = before.replicas
            if facts.workloads is not None:
                pods = sum(workload.pods for workload in facts.workloads)
            selector = facts.selector or before.selector
            return LoginSetStatus(conditions=current, replicas=pods, selector=selector)
        case ControllerStatus():
            step = before.slurm_key_step if facts.key_step is None else facts.key_step
            return ControllerStatus(conditions=current, slurm_key_step=step)
        case TokenStatus():
            return TokenStatus(conditions=current, issued_at=facts.issued_at or before.issued_at)
        case _:
            return ConditionsOnly(conditions=current)


def evaluate(
    before: Sequence[ObjectCondition], facts: PartReport, *, generation: int, now: datetime
) -> tuple[ObjectCondition, ...]:
    """Return the conditions, each with the time since which it has held; those that others set stay."""
    current = [_accepted(facts), *_configured(facts), _ready(facts), *_key(facts)]
    ours = [with_time(before, condition, generation=generation, now=now) for condition in current]
    if facts.is_interrupted:
        ours = [_not_yet(before, condition, now) for condition in ours]
    types = {"Accepted", "Configured", "Ready", *([] if facts.key is None else [KEY_CONDITION])}
    return (*ours, *(condition for condition in before if condition.type not in types))


def _not_yet(
    before: Sequence[ObjectCondition], condition: ObjectCondition, now: datetime
) -> ObjectCondition:
    """Return a condition as it was before if it is a Ready that would be True too early."""
    if (condition.type, condition.status) != ("Ready", "True"):
        return condition
    last = next((condition for condition in before if condition.type == "Ready"), None)
    if last is not None:
        return last
    unknown: UntimedCondition = ("Ready", "Unknown", "NotRead", "not everything is written yet")
    return with_time(before, unknown, generation=condition.observed_generation or 0, now=now)


def _accepted(facts: PartReport) -> UntimedCondition:
    if facts.accepted:
        return "Accepted", "False", facts.accepted_reason, facts.accepted
    if facts.notes:
        message = "; ".join((*facts.notes, "everything else is served"))
        return "Accepted", "True", "PartlyServed", message
    return "Accepted", "True", "Accepted", ""


def _configured(facts: PartReport) -> Iterable[UntimedCondition]:
    if facts.configured is None:
        return
    if facts.configured:
        in_force = f"; the configuration in force stays (digest {facts.digest[:12]})"
        text = f"{facts.configured}{in_force if facts.digest else ''}"
        yield "Configured", "False", "Refused", text
    elif facts.not_tried:
        yield "Configured", "Unknown", "NotTried", facts.not_tried
    elif facts.kept_partitions:
        message = f"digest {facts.digest[:12]}; {facts.kept_partitions}"
        yield "Configured", "True", "PartitionsKept", message
    else:
        yield "Configured", "True", "InForce", f"digest {facts.digest[:12]}"


def _key(facts: PartReport) -> Iterable[UntimedCondition]:
    if facts.key is not None and facts.key.reason:
        yield KEY_CONDITION, facts.key.truth, facts.key.reason, facts.key.message


def _ready(facts: PartReport) -> UntimedCondition:
    if facts.waits:
        return "Ready", "False", "Deleting", facts.waits
    if facts.failures:
        return "Ready", "False", "Failing", "; ".join(facts.failures)
    if facts.expired:
        return "Ready", "False", "Expired", facts.expired
    if facts.workloads is None:
        return "Ready", "Unknown", "NotRead", "the state of its pods is unknown"
    late = [workload for workload in facts.workloads if not workload.is_ready]
    deleted = [
        f"{workload.name}: {claim}"
        for workload in facts.workloads
        for claim in workload.deleted_claims
    ]
    if deleted and not late:
        return "Ready", "False", "VolumeDeleted", "; ".join(deleted)
    if not late:
        return "Ready", "True", "AllReady", facts.ready_message
    messages: list[str] = []
    for workload in late:
        messages.append(f"{workload.name}: {workload.ready} of {workload.desired} pods are ready")
        messages += workload.waits
    return "Ready", "False", "NotReady", "; ".join((*messages, *deleted))
