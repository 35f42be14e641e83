"""Combines the decisions of a gang's members.

The lifecycle's table decides for each member as if it were alone with the placeholder. Here the
decisions are combined: an action on the placeholder is done once, by the first member, and only if
all agree; members are assigned together or not at all; a member that ends before others leaves the
placeholder to them, and the last one ends it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bridge.domain.gang import endings, waiting
from bridge.domain.gang.members import Answers, Member
from bridge.domain.gang.waiting import GangContext
from bridge.domain.lifecycle.actions import (
    Cancel,
    Complete,
    Enlist,
    Resize,
    Restore,
    SetTimeLimit,
    Submit,
    Wait,
)
from bridge.domain.lifecycle.decision import Deadlines, Decision
from bridge.domain.lifecycle.rules.answers import cancel_of, wait
from bridge.domain.lifecycle.table import Row
from bridge.domain.model.pods import Pod
from bridge.domain.workloads.workload import Workload
from slurmruntime.values.ids import PodUid

_REPEATED = (Cancel, Restore, SetTimeLimit)
"""Actions that several members request alike, since their decisions do not depend on each other."""

_OF_THE_PLACEHOLDER = (Submit, Resize, Restore, Enlist, Cancel, Complete, SetTimeLimit)


def agree(
    members: Sequence[Member],
    gang: Workload | None,
    policy: Deadlines,
    *,
    now: datetime,
    is_fresh: bool,
) -> tuple[tuple[Pod, Decision], ...]:
    """Combine the members' decisions.

    Args:
        members: all pods of the workload, in rank order.
        gang: those that wait for Slurm; None if none does.
        is_fresh: Slurm was read, and the pods seen, after our last write about any of them.
    """
    decided = {member.pod.uid: member for member in members if member.decision is not None}
    gated = [member for member in decided.values() if member.row is Row.GATED]
    answers: dict[PodUid, Decision] = {
        member.pod.uid: decision
        for member in members
        if (decision := member.decision) is not None and member.row is not Row.GATED
    }
    answers |= endings.endings([m for m in decided.values() if m.row in endings.ENDING], members)
    answers |= endings.ended_for_unused_slots(members, answers, policy, now)
    answers |= endings.ended_by_others(members, answers)
    if gated and gang is not None:
        context = GangContext(members, gang, policy, now, is_fresh)
        answers |= waiting.decide(gated, context)
    once = _once(answers)
    for member in decided.values():
        if is_fresh and member.job is not None and member.job.remains:
            rest = cancel_of(member.job)
            own = once[member.pod.uid]
            once[member.pod.uid] = replace(own, actions=(rest, *own.actions))
            break
    return tuple((decided[uid].pod, decision) for uid, decision in once.items())


def _once(answers: Answers) -> dict[PodUid, Decision]:
    """Keep only the first of equal actions on the placeholder."""
    done: set[object] = set()
    once: dict[PodUid, Decision] = {}
    for uid, decision in answers.items():
        to_do = {action for action in decision.actions if isinstance(action, _REPEATED)}
        once[uid] = wait(f"once for all: {decision.reason}") if to_do & done else decision
        done |= to_do
    return once


def is_idle(decision: Decision) -> bool:
    """Check whether there is nothing to do."""
    return all(isinstance(action, Wait) for action in decision.actions)


def leads(decision: Decision) -> bool:
    """Check whether it concerns the placeholder and so comes before the other decisions."""
    return any(isinstance(a, _OF_THE_PLACEHOLDER) for a in decision.actions)
