"""What the members of a gang that wait for Slurm agree on: one submit, assignment together, a place for who comes later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bridge.domain import gang_members, names, seating
from bridge.domain.actions import Assign, Cancel, Enlist, OwnCause, Submit, Tell, Wait
from bridge.domain.facts import Decision, Policy
from bridge.domain.gang_members import Member
from bridge.domain.ids import PodUid
from bridge.domain.jobs import JobPhase, SlurmJob
from bridge.domain.lifecycle import Row
from bridge.domain.pods import Pod
from bridge.domain.workload import Workload


@dataclass(frozen=True, slots=True)
class Around:
    """What all decisions about those who wait look at."""

    members: Sequence[Member]
    gang: Workload
    policy: Policy
    now: datetime
    is_fresh: bool


def decide(waiting: Sequence[Member], around: Around) -> dict[PodUid, Decision]:
    """Those with our gate on."""
    gang = around.gang
    own = {member.pod.uid: member.decision or gang_members.wait("") for member in waiting}
    job = next((member.job for member in waiting if member.job is not None), None)
    if job is not None and any(gang_members.runs_in(job, member.pod) for member in around.members):
        return _joining(own, waiting, around)
    if any(gang_members.has(decision, Submit) for decision in own.values()):
        return _submitting(own, waiting, around)
    if job is not None and _is_resized(job, gang) and around.is_fresh:
        cancel = Cancel(job_id=job.id, sluid=job.sluid, cause=OwnCause.RESIZED)
        text = f"{gang.full_name} has {gang.size} pods by now, its placeholder is for {job.tasks}"
        return _by_the_first(own, Decision(actions=(cancel,), reason=text))
    if cancelling := [decision for decision in own.values() if gang_members.has(decision, Cancel)]:
        return _by_the_first(own, cancelling[0])
    if any(gang_members.has(decision, Assign) for decision in own.values()):
        return _assigning(own, waiting, around)
    return own


def _submitting(
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: Around
) -> dict[PodUid, Decision]:
    """Once, when all are here, and nothing keeps any of them."""
    gang = around.gang
    if not gang.is_complete:
        return {m.pod.uid: _tell_incomplete(m.pod, around) for m in waiting}
    if not all(gang_members.has(decision, Submit) for decision in own.values()):
        return _held(own, Submit, "another member of the gang cannot be submitted yet")
    submits = [a for each in own.values() for a in each.actions if isinstance(a, Submit)]
    avoid = sorted({node for submit in submits for node in submit.avoid})
    text = f"Slurm has no placeholder for {gang.full_name}: submit one for {gang.size} pods"
    submit = Submit(avoid=tuple(avoid), gang=gang)
    return _by_the_first(own, Decision(actions=(submit,), reason=text))


def _assigning(
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: Around
) -> dict[PodUid, Decision]:
    """All together; a placeholder that not all can use is given back."""
    gang = around.gang
    if gang.is_complete:
        if all(gang_members.has(decision, Assign) for decision in own.values()):
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
    own: Mapping[PodUid, Decision], waiting: Sequence[Member], around: Around
) -> dict[PodUid, Decision]:
    """Assign, after everybody is in the placeholder's identity; one that runs is not cancelled for a newcomer."""
    answers = _held(own, Cancel, "the gang's placeholder runs: another member finds no room yet")
    newcomers = [
        member.pod.uid
        for member in waiting
        if gang_members.has(answers[member.pod.uid], Assign)
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


def _tell_incomplete(pod: Pod, around: Around, within: timedelta | None = None) -> Decision:
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
    answers = dict.fromkeys(
        own, gang_members.wait(f"the first of the gang does it: {decision.reason}")
    )
    answers[next(iter(own))] = decision
    return answers


def _held(own: Mapping[PodUid, Decision], kind: type, why: str) -> dict[PodUid, Decision]:
    return {
        uid: gang_members.wait(why, retry_s=1) if gang_members.has(decision, kind) else decision
        for uid, decision in own.items()
    }
