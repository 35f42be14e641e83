"""How a gang ends: early leavers leave the placeholder to the others, and the last one ends it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bridge.domain.gang import seating
from bridge.domain.gang.members import Answers, Member, has
from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import (
    Cancel,
    Cause,
    Complete,
    Evict,
    OwnCause,
    Record,
    Release,
)
from bridge.domain.lifecycle.decision import Deadlines, Decision
from bridge.domain.lifecycle.rules.answers import do, wait
from bridge.domain.lifecycle.table import Row
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Phase
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, PodUid

ENDING = frozenset({Row.GATED_DELETING, Row.UNPLACED, Row.TERMINAL, Row.DELETED})


def endings(ending: Sequence[Member], members: Sequence[Member]) -> Answers:
    """Leave the placeholder to the others if there are any; else let one of the last end it."""
    answers: dict[PodUid, Decision] = {}
    last: dict[JobId, list[Member]] = {}
    needed: dict[JobId, tuple[bool, bool]] = {}
    for member in ending:
        job, decision = member.job, member.decision
        if job is None or job.phase is JobPhase.ENDED or decision is None:
            continue
        if job.id not in needed:
            needed[job.id] = _needed(job, members)
        has_not_started = member.pod.is_gated or member.row is Row.UNPLACED
        by_placed, by_waiting = needed[job.id]
        if by_placed or (by_waiting and has_not_started):
            # On a stale view the lifecycle only waits: its decision lacks the member's outcome yet.
            answers[member.pod.uid] = _leave(member, job, decision) if member.is_fresh else decision
        elif not any(isinstance(a, Cancel) and a.cause is OwnCause.SPARE for a in decision.actions):
            last.setdefault(job.id, []).append(member)
    for those in last.values():
        answers |= {m.pod.uid: wait("the placeholder ends with the gang") for m in those}
        answers[those[0].pod.uid] = _end(those)
    return answers


def ended_by_others(members: Sequence[Member], answers: Answers) -> Answers:
    """Evict the others when a member fails, if their template says so: nothing would replace it."""
    failed: dict[JobId, Member] = {}
    for member in members:
        if member.pod.phase is Phase.FAILED and not member.pod.is_gated and member.job is not None:
            failed.setdefault(member.job.id, member)
    ended: dict[PodUid, Decision] = {}
    for other in members:
        by = failed.get(other.job.id) if other.job is not None else None
        says = other.pod.annotations.get(names.ON_FAILURE_ANNOTATION)
        is_alive = other.row in (Row.PLACED, Row.BOUND) and other.pod.uid in answers
        if by is not None and says == "end" and is_alive:
            text = f"{by.pod.name} of its gang failed"
            ended[other.pod.uid] = do(text, Evict(cause=Cause.MEMBER_FAILED, message=text))
    return ended


def ended_for_unused_slots(
    members: Sequence[Member], answers: Answers, policy: Deadlines, now: datetime
) -> Answers:
    """Evict a gang whose slots are kept for too long for members that were never placed.

    Some controllers create some members only when others run. A member is added to the
    placeholder's identity before it is placed, so a placeholder that names fewer members than it
    has slots still waits for some. Slots of members that were there and are gone do not count, but
    those of members that have been there for as long and cannot be placed do.
    """
    named: defaultdict[JobId, set[PodUid]] = defaultdict(set)
    for member in members:
        if member.job is not None:
            if member.job.id not in named:
                named[member.job.id].update(member.job.identity.pods)
            named[member.job.id].add(member.pod.uid)
    late = {
        member.pod.uid
        for member in members
        if member.row is Row.GATED
        and policy.kept_slots_deadline is not None
        and now - member.pod.created_at > policy.kept_slots_deadline
    }
    is_fresh = all(member.is_fresh for member in members)
    ended: dict[PodUid, Decision] = {}
    for member in members:
        job, own = member.job, answers.get(member.pod.uid)
        if own is None or job is None or member.row not in (Row.PLACED, Row.BOUND):
            continue
        absent = job.tasks - len(named[job.id] - late)
        began, deadline = job.started_at, policy.kept_slots_deadline
        if absent <= 0 or job.phase is not JobPhase.RUNNING or began is None or deadline is None:
            continue
        if job.identity.restores:  # it names only the members that were left by then
            continue
        remaining = began + deadline - now
        if remaining > timedelta(0):
            again = min(remaining, own.retry_after or remaining)
            ended[member.pod.uid] = replace(own, retry_after=again)
        elif is_fresh:
            text = (
                f"{absent} of the {job.tasks} slots of Slurm job {job.id} were kept for "
                f"{deadline.total_seconds():g} s for pods of its gang that were not created or could not be placed"
            )
            ended[member.pod.uid] = do(text, Evict(cause=Cause.INCOMPLETE, message=text))
    return ended


def _leave(member: Member, job: SlurmJob, decision: Decision) -> Decision:
    """Settle a member's part and release it, so that its controller can restart it."""
    if not member.pod.has_our_finalizer or member.row is Row.UNPLACED:
        return wait("others of its gang need the placeholder")
    failures = [
        Record(job_id=job.id, sluid=job.sluid, outcome=action.outcome)
        for action in decision.actions
        if isinstance(action, Complete) and outcome.is_failure(action.outcome)
    ]
    text = f"{decision.reason}; others of its gang keep Slurm job {job.id}"
    return do(text, *failures, Release())


def _end(those: Sequence[Member]) -> Decision:
    """End the placeholder as the worst of the members did.

    Members that were deleted while they ran do not count beside one that failed, or one that
    succeeded and still exists: a launcher's success ends its workers.
    """
    decisions = [member.decision for member in those if member.decision is not None]
    if before := [d for d in decisions if not has(d, Complete) and not has(d, Cancel)]:
        return before[0]  # its time limit is put right first
    completes = [a for decision in decisions for a in decision.actions if isinstance(a, Complete)]
    cancels = [decision for decision in decisions if has(decision, Cancel)]
    how = outcome.worst(complete.outcome for complete in completes)
    stands = any(
        m.decision is not None and has(m.decision, Complete) and not m.pod.is_deleting
        for m in those
    )
    job = those[0].job
    if job is None or not (outcome.is_failure(how) or stands or job.identity.failed or not cancels):
        return cancels[0]
    is_on_record = bool(cancels) and not stands and not outcome.is_failure(how)
    action = Complete(job_id=job.id, sluid=job.sluid, outcome=how, is_on_record=is_on_record)
    return do(f"gang has ended: {outcome.in_words(how)}", action)


def _needed(job: SlurmJob, members: Sequence[Member]) -> tuple[bool, bool]:
    """Check whether placed members need the placeholder, and whether waiting ones do."""
    by_placed = any(
        member.row in seating.HOLDING and job.is_named(member.pod.job_id, member.pod.sluid)
        for member in members
    )
    by_waiting = any(
        member.row is Row.GATED and member.job is not None and member.job.id == job.id
        for member in members
    )
    return by_placed, by_waiting
