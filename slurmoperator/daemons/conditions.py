"""The status of an object of the control plane: pure, and the same for the same facts."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from slurmoperator.daemons.situation import PartOutcome, PartPlan
from slurmoperator.keys.rotation import KEY_CONDITION
from slurmoperator.objects import labels
from slurmoperator.objects.controller import ControllerStatus
from slurmoperator.objects.loginset import LoginSetStatus
from slurmoperator.objects.parts import ConditionsOnly, UntimedCondition, condition_of, with_time
from slurmoperator.objects.token import TokenStatus
from slurmoperator.rendering.loginset import LOGIN_APP
from slurmruntime.crd.conditions import ObjectCondition


def status(
    before: ConditionsOnly,
    plan: PartPlan,
    outcome: PartOutcome,
    *,
    waits: str = "",
    generation: int,
    now: datetime,
) -> ConditionsOnly:
    """Return the whole status, of the type that it had before; equal to it if nothing has changed. `waits` is what a deleted object waits for."""
    current = evaluate(
        before.conditions, plan, outcome, waits=waits, generation=generation, now=now
    )
    match before:
        case LoginSetStatus():
            pods, selector = before.replicas, before.selector
            if outcome.workloads is not None:
                pods = sum(workload.pods for workload in outcome.workloads)
            if plan.host_keys is not None:
                selector = labels.selector(LOGIN_APP, plan.host_keys.metadata.name)
            return LoginSetStatus(conditions=current, replicas=pods, selector=selector)
        case ControllerStatus():
            step = plan.ring.step if plan.ring else before.slurm_key_step
            return ControllerStatus(conditions=current, slurm_key_step=step)
        case TokenStatus():
            is_issued = plan.token is not None and not outcome.is_cut_short
            issued_at = plan.token.issued_at if plan.token and is_issued else before.issued_at
            return TokenStatus(conditions=current, issued_at=issued_at)
        case _:
            return ConditionsOnly(conditions=current)


def evaluate(
    before: Sequence[ObjectCondition],
    plan: PartPlan,
    outcome: PartOutcome,
    *,
    waits: str = "",
    generation: int,
    now: datetime,
) -> tuple[ObjectCondition, ...]:
    """Return the conditions, each with the time since which it has held; those that others set stay.

    While a call fails in a way that passes, not everything is written that is wanted, and Ready does not become True.
    """
    current = [
        _accepted(plan, outcome),
        *_configured(plan),
        _ready(plan, outcome, waits, now),
    ]
    types = {"Accepted", "Configured", "Ready"}
    # If the rotation of a Controller's key was not checked, its last condition stays.
    if (key := plan.rotation) is not None and not outcome.is_cut_short:
        types.add(KEY_CONDITION)
        if key.reason:
            current.append((KEY_CONDITION, key.truth, key.reason, key.message))
    ours = [with_time(before, condition, generation=generation, now=now) for condition in current]
    if outcome.failure is not None and outcome.failure.transient:
        ours = [_not_yet(before, condition, now) for condition in ours]
    return (*ours, *(condition for condition in before if condition.type not in types))


def _not_yet(
    before: Sequence[ObjectCondition], condition: ObjectCondition, now: datetime
) -> ObjectCondition:
    """Return a condition as it was before if it is a Ready that would be True too early."""
    if (condition.type, condition.status) != ("Ready", "True"):
        return condition
    last = condition_of(before, "Ready")
    if last is not None:
        return last
    unknown: UntimedCondition = ("Ready", "Unknown", "NotRead", "not everything is written yet")
    return with_time(before, unknown, generation=condition.observed_generation or 0, now=now)


def _accepted(plan: PartPlan, outcome: PartOutcome) -> UntimedCondition:
    if refused := plan.refused or outcome.refused:
        return "Accepted", "False", outcome.refused_reason, refused
    if outcome.notes:
        message = "; ".join((*outcome.notes, "everything else is served"))
        return "Accepted", "True", "PartlyServed", message
    return "Accepted", "True", "Accepted", ""


def _configured(plan: PartPlan) -> Iterable[UntimedCondition]:
    if plan.configured is None:
        return
    digest = plan.verdict.digest[:12] if plan.verdict else ""
    if plan.configured:
        in_force = f"; the configuration in force stays (digest {digest})" if digest else ""
        yield "Configured", "False", "Refused", f"{plan.configured}{in_force}"
    elif plan.verdict and plan.verdict.not_tried:
        yield "Configured", "Unknown", "NotTried", plan.verdict.not_tried
    elif plan.kept_partitions:
        message = f"digest {digest}; {plan.kept_partitions}"
        yield "Configured", "True", "PartitionsKept", message
    else:
        yield "Configured", "True", "InForce", f"digest {digest}"


def _ready(plan: PartPlan, outcome: PartOutcome, waits: str, now: datetime) -> UntimedCondition:
    if waits:
        return "Ready", "False", "Deleting", waits
    if outcome.failure is not None and not outcome.failure.transient:
        return "Ready", "False", "Failing", str(outcome.failure)
    until = f"{plan.token.expires_at:%Y-%m-%dT%H:%M:%SZ}" if plan.token else ""
    if plan.token and plan.token.expires_at <= now:
        text = f"it expired at {until}: create another Token, or set spec.refresh"
        return "Ready", "False", "Expired", text
    if outcome.workloads is None:
        return "Ready", "Unknown", "NotRead", "the state of its pods is unknown"
    late = [workload for workload in outcome.workloads if not workload.is_ready]
    deleted = [
        f"{workload.name}: {claim}"
        for workload in outcome.workloads
        for claim in workload.deleted_claims
    ]
    if deleted and not late:
        return "Ready", "False", "VolumeDeleted", "; ".join(deleted)
    if not late:
        return "Ready", "True", "AllReady", f"valid until {until}" if until else ""
    messages: list[str] = []
    for workload in late:
        messages.append(f"{workload.name}: {workload.ready} of {workload.desired} pods are ready")
        messages += workload.waits
    return "Ready", "False", "NotReady", "; ".join((*messages, *deleted))
