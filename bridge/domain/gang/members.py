"""A gang's members one by one: what each amounts to, and which of the workload's placeholders concern it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bridge.domain import lifecycle, names
from bridge.domain.actions import Tell, Wait
from bridge.domain.facts import Decision, Policy, WhenFull
from bridge.domain.gang import seating
from bridge.domain.jobs import JobPhase, SlurmJob
from bridge.domain.lifecycle import Row
from bridge.domain.pods import Pod
from bridge.domain.view import Concerns, View


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
        if job.phase is JobPhase.RUNNING and any(runs_in(job, member) for member in members)
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
    decision = wait(why, retry_s=1)
    return Member(pod=pod, row=Row.GATED, job=job, decision=decision, is_fresh=view.fresh)


def surplus(pod: Pod, job: SlurmJob, view: View, policy: Policy, *, dwelt: timedelta) -> Member:
    """Let a member wait for which its gang has no slot, until another one goes; after a moment it is told so."""
    text = (
        f"Slurm job {job.id} of its gang has {job.tasks} slots, and none for this pod: it waits until one becomes free "
        f"({names.WHEN_FULL_ANNOTATION}: {WhenFull.WAIT})"
    )
    decision = wait(text, retry_s=1)
    if view.fresh and dwelt >= policy.tell_after:
        decision = tell(pod, "GangFull", text, retry=None)
    return Member(pod=pod, row=Row.GATED, job=job, decision=decision, is_fresh=view.fresh)


def others(pod: Pod, jobs: Iterable[SlurmJob]) -> Member:
    """Take a member into account that the other program decides about."""
    job = next((each for each in jobs if concerns(pod, (), ())(each)), None)
    return Member(pod=pod, row=lifecycle.row_of(pod, node_is_gone=False), job=job, decision=None)


def runs_in(job: SlurmJob, pod: Pod) -> bool:
    """The pod was placed by this placeholder, and lives."""
    return (
        not pod.is_gated
        and job.is_named(pod.job_id, pod.sluid)
        and lifecycle.row_of(pod, node_is_gone=False) in (Row.PLACED, Row.BOUND)
    )


def has(decision: Decision, kind: type) -> bool:
    """Whether it asks for this."""
    return any(isinstance(action, kind) for action in decision.actions)


def wait(reason: str, *, retry_s: float | None = None) -> Decision:
    """Do nothing."""
    retry = timedelta(seconds=retry_s) if retry_s is not None else None
    return Decision(actions=(Wait(),), reason=reason, retry_after=retry)


def tell(pod: Pod, reason: str, text: str, *, retry: timedelta | None) -> Decision:
    """Say on a pod why it waits, unless it says so already."""
    said = pod.condition(names.ALLOCATED_CONDITION)
    if said is not None and (said.status, said.reason, said.message) == ("False", reason, text):
        return Decision(actions=(Wait(),), reason=text, retry_after=retry)
    action = Tell(job_id=None, reason=reason, message=text)
    return Decision(actions=(action,), reason=text, retry_after=retry)
