"""What the members of a gang agree on.

Each member is decided for by the lifecycle's table, as if it were alone with the placeholder. Here that is brought
together: what concerns the placeholder is done once, by the first member, and only if all agree; members are assigned
together or not at all; who ends before others leaves the placeholder to them, and the last one ends it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bridge.domain import lifecycle, names, outcome, seating
from bridge.domain.actions import (
    Assign,
    Cancel,
    Cause,
    Complete,
    Enlist,
    Evict,
    OwnCause,
    Record,
    Release,
    Restore,
    SetTimeLimit,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.facts import Decision, Policy
from bridge.domain.faults import Fault
from bridge.domain.ids import JobId, PodUid
from bridge.domain.jobs import JobPhase, SlurmJob
from bridge.domain.lifecycle import Row
from bridge.domain.pods import Phase, Pod
from bridge.domain.view import Concerns, View
from bridge.domain.workload import Workload

_ENDING = frozenset({Row.GATED_DELETING, Row.UNPLACED, Row.TERMINAL, Row.DELETED})


_REPEATED = (Cancel, Restore, SetTimeLimit)
"""What members whose decisions do not depend on each other ask for alike."""

_OF_THE_PLACEHOLDER = (Submit, Restore, Enlist, Cancel, Complete, SetTimeLimit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member, and what would be done if it were alone."""

    pod: Pod
    row: Row
    job: SlurmJob | None
    """The placeholder that counts for it."""
    decision: Decision | None
    """None: it is the other program's."""
    dwelt: timedelta = timedelta(0)
    """Since when it is in this cell of the table."""
    is_fresh: bool = True
    """Of the view that was decided on."""


def concerns(pod: Pod, members: Sequence[Pod], jobs: Iterable[SlurmJob]) -> Concerns:
    """Tell which of a workload's placeholders concern one of its pods.

    A group may be created again under its name while the old one ends, so a placeholder concerns those it names. New
    members join one that names any of those they wait with; or one that runs, as long as a member placed by it lives.
    """
    if not pod.is_gated:
        return lambda job: pod.uid in job.identity.pods or job.is_named(pod.job_id, pod.sluid)
    if not seating.is_waiting(pod):
        return lambda job: pod.uid in job.identity.pods
    forming = {member.uid for member in members if seating.is_waiting(member)}
    live = [job for job in jobs if job.phase is not JobPhase.ENDED]
    joined = {job.id for job in live if not forming.isdisjoint(job.identity.pods)}
    joined = joined or {
        job.id
        for job in live
        if job.phase is JobPhase.RUNNING and any(_runs_in(job, member) for member in members)
    }
    return lambda job: pod.uid in job.identity.pods or job.id in joined


def joining(members: Sequence[Pod], jobs: Sequence[SlurmJob]) -> Iterator[tuple[Pod, SlurmJob]]:
    """List the waiting pods that claim a place in a placeholder that was submitted without them."""
    for pod in filter(seating.is_waiting, members):
        its = [job for job in jobs if job.phase is not JobPhase.ENDED]
        its = list(filter(concerns(pod, members, jobs), its))
        if its and not any(pod.uid in job.identity.pods for job in its):
            yield pod, its[0]


def unseated(pod: Pod, job: SlurmJob, view: View) -> Member:
    """Let a member wait for a slot that is about to be free, or for what Slurm says of the nodes."""
    why = "no slot of the gang's placeholder is free yet"
    if not seating.slots(job):
        why = f"Slurm job {job.id} has no room for {job.tasks} tasks on {', '.join(job.nodes)}"
    decision = _wait(why, retry_s=1)
    return Member(pod=pod, row=Row.GATED, job=job, decision=decision, is_fresh=view.fresh)


def others(pod: Pod, jobs: Iterable[SlurmJob]) -> Member:
    """Take a member into account that the other program decides about."""
    job = next((each for each in jobs if concerns(pod, (), ())(each)), None)
    return Member(pod=pod, row=lifecycle.row_of(pod, node_is_gone=False), job=job, decision=None)


def without_claim(pod: Pod, decision: Decision, faults: Sequence[Fault]) -> Decision:
    """Submit nothing for a pod whose claim to a group is faulty: nobody knows what to submit."""
    if not faults or not _has(decision, Submit):
        return decision
    text = "; ".join(fault.text for fault in faults)
    return tell(pod, "PodGroupInvalid", text, retry=None)


def agree(
    members: Sequence[Member],
    gang: Workload | None,
    policy: Policy,
    *,
    now: datetime,
    is_fresh: bool,
) -> tuple[tuple[Pod, Decision], ...]:
    """Bring the members' decisions together.

    Args:
        members: all pods of the workload, in rank order.
        gang: those that wait for Slurm; None if none does.
        policy: the settings.
        now: the time.
        is_fresh: Slurm was read, and the pods seen, after our last write about any of them.
    """
    decided = {member.pod.uid: member for member in members if member.decision is not None}
    waiting = [member for member in decided.values() if member.row is Row.GATED]
    answers: dict[PodUid, Decision] = {
        member.pod.uid: decision
        for member in members
        if (decision := member.decision) is not None and member.row is not Row.GATED
    }
    answers |= _endings([m for m in decided.values() if m.row in _ENDING], members)
    answers |= _ended_by_others(members, answers)
    if waiting and gang is not None:
        around = _Around(members, gang, policy, now, is_fresh)
        answers |= _waiting(waiting, around)
    once = _once(answers)
    for member in decided.values():
        if is_fresh and member.job is not None and member.job.remains:
            rest = Cancel(job_id=member.job.id, sluid=member.job.sluid)
            own = once[member.pod.uid]
            once[member.pod.uid] = replace(own, actions=(rest, *own.actions))
            break
    return tuple((decided[uid].pod, decision) for uid, decision in once.items())


def _once(answers: Mapping[PodUid, Decision]) -> dict[PodUid, Decision]:
    """Of the same thing to be done to the placeholder, the first."""
    done: set[object] = set()
    once: dict[PodUid, Decision] = {}
    for uid, decision in answers.items():
        to_do = {action for action in decision.actions if isinstance(action, _REPEATED)}
        once[uid] = _wait(f"once for all: {decision.reason}") if to_do & done else decision
        done |= to_do
    return once


@dataclass(frozen=True, slots=True)
class _Around:
    """What all decisions about those who wait look at."""

    members: Sequence[Member]
    gang: Workload
    policy: Policy
    now: datetime
    is_fresh: bool


def _waiting(waiting: Sequence[Member], around: _Around) -> dict[PodUid, Decision]:
    """Those with our gate on."""
    gang = around.gang
    own = {member.pod.uid: member.decision or _wait("") for member in waiting}
    job = next((member.job for member in waiting if member.job is not None), None)
    if job is not None and any(_runs_in(job, member.pod) for member in around.members):
        return _joining(own, waiting, around)
    if any(_has(decision, Submit) for decision in own.values()):
        return _submitting(own, waiting, around)
    if job is not None and _is_resized(job, gang) and around.is_fresh:
        cancel = Cancel(job_id=job.id, sluid=job.sluid, cause=OwnCause.RESIZED)
        text = f"{gang.full_name} has {gang.size} pods by now, its placeholder is for {job.tasks}"
        return _by_the_first(own, Decision(actions=(cancel,), reason=text))
    if cancelling := [decision for decision in own.values() if _has(decision, Cancel)]:
        return _by_the_first(own, cancelling[0])
    if any(_has(decision, Assign) for decision in own.values()):
        return _assigning(own, waiting, around)
    return own


def _submitting(
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: _Around
) -> dict[PodUid, Decision]:
    """Once, when all are here, and nothing keeps any of them."""
    gang = around.gang
    if not gang.is_complete:
        return {m.pod.uid: _tell_incomplete(m.pod, around) for m in waiting}
    if not all(_has(decision, Submit) for decision in own.values()):
        return _held(own, Submit, "another member of the gang cannot be submitted yet")
    submits = [a for each in own.values() for a in each.actions if isinstance(a, Submit)]
    avoid = sorted({node for submit in submits for node in submit.avoid})
    text = f"Slurm has no placeholder for {gang.full_name}: submit one for {gang.size} pods"
    submit = Submit(avoid=tuple(avoid), gang=gang)
    return _by_the_first(own, Decision(actions=(submit,), reason=text))


def _assigning(
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: _Around
) -> dict[PodUid, Decision]:
    """All together; a placeholder that not all can use is given back."""
    gang = around.gang
    if gang.is_complete:
        if all(_has(decision, Assign) for decision in own.values()):
            return _joining(own, waiting, around)
        return _held(own, Assign, "not every member of the gang can be placed yet")
    job, dwelt = waiting[0].job, max(member.dwelt for member in waiting)
    remaining = around.policy.bind_deadline - dwelt
    if job is None or remaining > timedelta(0):
        return {m.pod.uid: _tell_incomplete(m.pod, around, within=remaining) for m in waiting}
    cancel = Cancel(job_id=job.id, sluid=job.sluid, cause=OwnCause.UNUSED)
    text = f"Slurm job {job.id} runs, but {_missing(gang)}: give the nodes back"
    return _by_the_first(own, Decision(actions=(cancel,), reason=text))


def _joining(
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: _Around
) -> dict[PodUid, Decision]:
    """Assign, after everybody is in the placeholder's identity; one that runs is not cancelled for a newcomer."""
    answers = _held(own, Cancel, "the gang's placeholder runs: another member finds no room yet")
    newcomers = [
        member.pod.uid
        for member in waiting
        if _has(answers[member.pod.uid], Assign)
        and member.job is not None
        and member.pod.uid not in member.job.identity.pods
    ]
    job = waiting[0].job
    if newcomers and job is not None:
        alive = {m.pod.uid for m in around.members if m.row in (*seating.HOLDING, Row.GATED)}
        enlist = Enlist(
            job_id=job.id, sluid=job.sluid, pods=tuple(newcomers), alive=frozenset(alive)
        )
        first = answers[newcomers[0]]
        answers[newcomers[0]] = replace(first, actions=(enlist, *first.actions))
    return answers


def _endings(ending: Sequence[Member], members: Sequence[Member]) -> dict[PodUid, Decision]:
    """Whoever ends before others leaves the placeholder to them; of the last ones, one ends it for all."""
    answers: dict[PodUid, Decision] = {}
    last: dict[JobId, list[Member]] = {}
    for member in ending:
        job, decision = member.job, member.decision
        if job is None or job.phase is JobPhase.ENDED or decision is None:
            continue
        if any(_needs(other, job, member) for other in members if other is not member):
            answers[member.pod.uid] = _leave(member, job, decision)
        elif not _spares_only(decision):
            last.setdefault(job.id, []).append(member)
    for those in last.values():
        answers |= {m.pod.uid: _wait("the placeholder ends with the gang") for m in those}
        answers[those[0].pod.uid] = _end(those)
    return answers


def _ended_by_others(
    members: Sequence[Member], answers: Mapping[PodUid, Decision]
) -> dict[PodUid, Decision]:
    """Where their template says so, a member's failure ends the others: nobody would replace it."""
    failed = [
        member
        for member in members
        if member.pod.phase is Phase.FAILED and not member.pod.is_gated and member.job is not None
    ]
    ended: dict[PodUid, Decision] = {}
    for other in members:
        by = next((f for f in failed if f.job is not None and f.job == other.job), None)
        says = other.pod.annotations.get(names.ON_FAILURE_ANNOTATION)
        is_alive = other.row in (Row.PLACED, Row.BOUND) and other.pod.uid in answers
        if by is not None and says == "end" and is_alive:
            text = f"{by.pod.name} of its gang failed"
            evict = Evict(cause=Cause.MEMBER_FAILED, message=text)
            ended[other.pod.uid] = Decision(actions=(evict,), reason=text)
    return ended


def _leave(member: Member, job: SlurmJob, decision: Decision) -> Decision:
    """Its part is settled: a finalizer held for the whole gang would keep its controller from starting it again."""
    if not member.pod.has_our_finalizer or member.row is Row.UNPLACED:
        return _wait("others of its gang need the placeholder")
    failures = [
        Record(job_id=job.id, sluid=job.sluid, outcome=action.outcome)
        for action in decision.actions
        if isinstance(action, Complete) and outcome.is_failure(action.outcome)
    ]
    text = f"{decision.reason}; others of its gang keep Slurm job {job.id}"
    return Decision(actions=(*failures, Release()), reason=text)


def _end(those: Sequence[Member]) -> Decision:
    """End the placeholder as the worst of the members did.

    Those that were deleted while they ran do not count beside one that failed, or that succeeded and still stands: a
    launcher's success ends its workers.
    """
    decisions = [member.decision for member in those if member.decision is not None]
    if before := [
        each for each in decisions if not _has(each, Complete) and not _has(each, Cancel)
    ]:
        return before[0]  # its time limit is put right first
    completes = [a for each in decisions for a in each.actions if isinstance(a, Complete)]
    cancels = [each for each in decisions if _has(each, Cancel)]
    how = outcome.worst(complete.outcome for complete in completes)
    stands = any(
        _has(member.decision, Complete) and not member.pod.is_deleting
        for member in those
        if member.decision is not None
    )
    job = those[0].job
    if job is None or not (outcome.is_failure(how) or stands or job.identity.failed or not cancels):
        return cancels[0]
    is_on_record = bool(cancels) and not stands and not outcome.is_failure(how)
    action = Complete(job_id=job.id, sluid=job.sluid, outcome=how, is_on_record=is_on_record)
    return Decision(actions=(action,), reason=f"gang has ended: {outcome.in_words(how)}")


def _needs(other: Member, job: SlurmJob, ending: Member) -> bool:
    if other.row is Row.GATED:
        has_not_started = ending.pod.is_gated or ending.row is Row.UNPLACED
        return has_not_started and other.job is not None and other.job.id == job.id
    return other.row in seating.HOLDING and job.is_named(other.pod.job_id, other.pod.sluid)


def _runs_in(job: SlurmJob, pod: Pod) -> bool:
    """The pod was placed by this placeholder, and lives."""
    return (
        not pod.is_gated
        and job.is_named(pod.job_id, pod.sluid)
        and lifecycle.row_of(pod, node_is_gone=False) in (Row.PLACED, Row.BOUND)
    )


def _is_resized(job: SlurmJob, gang: Workload) -> bool:
    """Another number of pods is wanted than was submitted."""
    return (
        job.phase is JobPhase.WAITING
        and job.submitted_at is not None  # else it was not read yet
        and not job.identity.cause
        and gang.is_complete
        and gang.is_resized(job.tasks)
    )


def _missing(gang: Workload) -> str:
    if gang.faults:
        return f"{gang.full_name} cannot be placed: {'; '.join(each.text for each in gang.faults)}"
    return f"{gang.full_name} has {len(gang.members)} of the {gang.needed} pods it needs to start"


def _tell_incomplete(pod: Pod, around: _Around, within: timedelta | None = None) -> Decision:
    """Nothing is held for a gang that is not complete; after a while its members say what is missing."""
    gang, policy = around.gang, around.policy
    text = _missing(gang)
    oldest = min(member.created_at for member in gang.members)
    patience = policy.tell_after if gang.faults else policy.incomplete_after
    remaining = patience - (around.now - oldest)
    soonest = min(within, _LOOK_AGAIN) if within is not None else _LOOK_AGAIN
    if remaining > timedelta(0):
        return Decision(actions=(Wait(),), reason=text, retry_after=min(remaining, soonest))
    reason = "PodGroupInvalid" if gang.faults else "PodGroupIncomplete"
    return tell(pod, reason, text, retry=soonest)


def tell(pod: Pod, reason: str, text: str, *, retry: timedelta | None) -> Decision:
    """Say on a pod why it waits, unless it says so already."""
    said = pod.condition(names.ALLOCATED_CONDITION)
    if said is not None and (said.status, said.reason, said.message) == ("False", reason, text):
        return Decision(actions=(Wait(),), reason=text, retry_after=retry)
    action = Tell(job_id=None, reason=reason, message=text)
    return Decision(actions=(action,), reason=text, retry_after=retry)


_LOOK_AGAIN = timedelta(seconds=10)
"""The object that says how large a group is may be edited or created without an event for us."""


def _by_the_first(own: Mapping[PodUid, Decision], decision: Decision) -> dict[PodUid, Decision]:
    """One does it, the others wait."""
    answers = dict.fromkeys(own, _wait(f"the first of the gang does it: {decision.reason}"))
    answers[next(iter(own))] = decision
    return answers


def _held(own: Mapping[PodUid, Decision], kind: type, why: str) -> dict[PodUid, Decision]:
    return {
        uid: _wait(why, retry_s=1) if _has(decision, kind) else decision
        for uid, decision in own.items()
    }


def _spares_only(decision: Decision) -> bool:
    return any(isinstance(a, Cancel) and a.cause is OwnCause.SPARE for a in decision.actions)


def is_idle(decision: Decision) -> bool:
    """Whether there is nothing to do."""
    return all(isinstance(action, Wait) for action in decision.actions)


def leads(decision: Decision) -> bool:
    """Whether it concerns the placeholder, and so comes before what others do."""
    return any(isinstance(a, _OF_THE_PLACEHOLDER) for a in decision.actions)


def _has(decision: Decision, kind: type) -> bool:
    return any(isinstance(action, kind) for action in decision.actions)


def _wait(reason: str, *, retry_s: float | None = None) -> Decision:
    retry = timedelta(seconds=retry_s) if retry_s is not None else None
    return Decision(actions=(Wait(),), reason=reason, retry_after=retry)
