"""What a gang's waiting members agree on: one submit, joint assignment, slots for latecomers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bridge.domain.gang import seating
from bridge.domain.gang.members import Answers, Member, Names, has, runs_in
from bridge.domain.lifecycle.actions import (
    Action,
    Assign,
    Cancel,
    Enlist,
    OwnCause,
    Resize,
    Submit,
)
from bridge.domain.lifecycle.decision import Deadlines, Decision
from bridge.domain.lifecycle.rules.answers import cancel_of, do, tell, wait
from bridge.domain.lifecycle.table import Row
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.workloads.workload import Workload
from slurmruntime.values.faults import one_line

_LOOK_AGAIN = timedelta(seconds=10)
"""The object that declares a group's size may be edited or created without an event that we see."""

_SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class GangContext:
    """The context of all decisions about waiting members."""

    members: Sequence[Member]
    gang: Workload
    policy: Deadlines
    now: datetime
    is_fresh: bool


def decide(waiting: Sequence[Member], context: GangContext) -> Answers:
    """Decide for the members that have our gate on."""
    own = {member.pod.uid: member.decision or wait("") for member in waiting}
    job = next((member.job for member in waiting if member.job is not None), None)
    if job is not None and any(runs_in(job, member.pod) for member in context.members):
        return _joining(own, waiting, context)
    if any(has(decision, Submit) for decision in own.values()):
        return _submitting(own, waiting, context)
    if job is not None and context.is_fresh and (update := _updating(waiting, context, job)):
        return _by_the_first(own, update)
    if job is not None and context.is_fresh and _started_at_another_size(job, context.gang):
        text = (
            f"Slurm job {job.id} started for {job.tasks} pods of {context.gang.full_name}, "
            f"which has {context.gang.size}"
        )
        return _by_the_first(own, do(text, cancel_of(job, OwnCause.RESIZED)))
    if cancelling := [decision for decision in own.values() if has(decision, Cancel)]:
        return _by_the_first(own, cancelling[0])
    if any(has(decision, Assign) for decision in own.values()):
        return _assigning(own, waiting, context)
    return own


def _submitting(own: Answers, waiting: Sequence[Member], context: GangContext) -> Answers:
    """Submit once, when all members are here and nothing holds any of them back."""
    gang = context.gang
    if not gang.is_complete:
        return _tell_incomplete(waiting, context)
    if not all(has(decision, Submit) for decision in own.values()):
        return _held(own, Submit, "another member of the gang cannot be submitted yet")
    submits = [
        action
        for decision in own.values()
        for action in decision.actions
        if isinstance(action, Submit)
    ]
    avoid = sorted({node for submit in submits for node in submit.avoid})
    text = f"Slurm has no placeholder for {gang.full_name}: submit one for {gang.size} pods"
    return _by_the_first(own, do(text, Submit(avoid=tuple(avoid), gang=gang)))


def _assigning(own: Answers, waiting: Sequence[Member], context: GangContext) -> Answers:
    """Assign all together; cancel a placeholder that not all of them can use."""
    gang = context.gang
    if gang.is_complete:
        if all(has(decision, Assign) for decision in own.values()):
            return _joining(own, waiting, context)
        return _held(own, Assign, "not every member of the gang can be placed yet")
    job, dwelt = waiting[0].job, max(member.dwelt for member in waiting)
    remaining = context.policy.bind_deadline - dwelt
    if job is None or remaining > timedelta(0):
        return _tell_incomplete(waiting, context, within=remaining)
    text = f"Slurm job {job.id} runs, but {_missing(gang)}: give the nodes back"
    return _by_the_first(own, do(text, cancel_of(job, OwnCause.UNUSED)))


def _joining(own: Answers, waiting: Sequence[Member], context: GangContext) -> Answers:
    """Assign once all are in the placeholder's identity; no newcomer cancels a running one.

    One that finds no room, or whose pin is refused, says why. Its slot is not kept for ever
    (`endings.ended_for_unused_slots`).
    """
    answers = {
        member.pod.uid: _unplaced(member, own[member.pod.uid], context)
        if has(own[member.pod.uid], Cancel)
        else own[member.pod.uid]
        for member in waiting
    }
    assigned = [member for member in waiting if has(answers[member.pod.uid], Assign)]
    if enlist := _enlist(assigned, context):
        first = answers[enlist.pods[0]]
        answers[enlist.pods[0]] = replace(first, actions=(enlist, *first.actions))
    return answers


def _unplaced(member: Member, decision: Decision, context: GangContext) -> Decision:
    """Wait; after a moment Tell what keeps the member from joining the others."""
    text = f"the other pods of its gang run, and this one cannot join them: {decision.reason}"
    if member.dwelt < context.policy.tell_after:
        return wait(text, retry=_SOON)
    return tell(member.pod, "GangMemberUnplaced", text, retry=_SOON)


def _updating(waiting: Sequence[Member], context: GangContext, job: SlurmJob) -> Decision | None:
    """Let a waiting placeholder name, and ask for, all that wait for it; None if it does."""
    is_read = job.submitted_at is not None
    if job.phase is not JobPhase.WAITING or not is_read or job.identity.cause:
        return None
    gang, actions, reasons = context.gang, list[Action](), list[str]()
    if enlist := _enlist(waiting, context):
        actions.append(enlist)
        reasons.append(
            f"Slurm job {job.id} does not name {len(enlist.pods)} of those that wait for it"
        )
    if gang.is_complete and gang.is_resized([part.tasks for part in job.components]):
        actions.append(Resize(job_id=job.id, sluid=job.sluid, gang=gang))
        reasons.append(
            f"{gang.full_name} has {gang.size} pods by now, Slurm job {job.id} is for {job.tasks}"
        )
    return do("; ".join(reasons), *actions) if actions else None


def _started_at_another_size(job: SlurmJob, gang: Workload) -> bool:
    """Check whether it started before it could be updated.

    No member is placed yet, and the members must not be split.
    """
    tasks = [part.tasks for part in job.components]
    differs = gang.is_resized(tasks) if gang.is_exact else gang.declared > sum(tasks)
    return job.phase is JobPhase.RUNNING and not job.identity.cause and gang.is_complete and differs


def _enlist(newcomers: Sequence[Member], context: GangContext) -> Enlist | None:
    names = Names()
    unnamed = [
        (member.pod.uid, member.job)
        for member in newcomers
        if member.job is not None and not names.has(member.job, member.pod)
    ]
    if not unnamed:
        return None
    job = unnamed[0][1]
    alive = {m.pod.uid for m in context.members if m.row in (*seating.HOLDING, Row.GATED)}
    return Enlist(
        job_id=job.id,
        sluid=job.sluid,
        pods=tuple(uid for uid, _ in unnamed),
        alive=frozenset(alive),
    )


def _missing(gang: Workload) -> str:
    if gang.faults:
        return f"{gang.full_name} cannot be placed: {one_line(gang.faults)}"
    return f"{gang.full_name} has {len(gang.members)} of the {gang.needed} pods it needs to start"


def _tell_incomplete(
    waiting: Sequence[Member], context: GangContext, within: timedelta | None = None
) -> Answers:
    """Hold nothing for an incomplete gang; after a while its members report what is missing.

    Only the first reports how many exist: its count changes with every pod that comes or goes,
    and must not be written to all the others each time.
    """
    gang, policy = context.gang, context.policy
    text = _missing(gang)
    oldest = min(member.created_at for member in gang.members)
    patience = policy.tell_after if gang.faults else policy.incomplete_after
    remaining = patience - (context.now - oldest)
    soonest = min(within, _LOOK_AGAIN) if within is not None else _LOOK_AGAIN
    if remaining > timedelta(0):
        silent = wait(text, retry=min(remaining, soonest))
        return {member.pod.uid: silent for member in waiting}
    reason = "PodGroupInvalid" if gang.faults else "PodGroupIncomplete"
    first = waiting[0].pod
    rest = (
        text
        if gang.faults
        else f"{gang.full_name} has fewer than the {gang.needed} pods it needs to start; "
        f"pod {first.name} reports how many"
    )
    return {
        member.pod.uid: tell(
            member.pod, reason, text if member.pod is first else rest, retry=soonest
        )
        for member in waiting
    }


def _by_the_first(own: Answers, decision: Decision) -> Answers:
    answers = dict.fromkeys(own, wait(f"the first of the gang does it: {decision.reason}"))
    answers[next(iter(own))] = decision
    return answers


def _held(own: Answers, kind: type, why: str) -> Answers:
    return {
        uid: wait(why, retry=_SOON) if has(decision, kind) else decision
        for uid, decision in own.items()
    }
