"""Rules about grace periods: none keeps a node from Slurm for longer than it should.

While a pod's job runs, its user is charged for containers that stop, so they may take as long as the
cap allows. Once the job is over, nobody is. Slurm frees its node at once, the next job there waits
for the containers, and a user may end their own jobs as often as they like. So then containers get
what Slurm gives the processes of a native job. The API server bounds neither a pod's own grace
period nor a DELETE's, but lets both be shortened.
"""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.caps import SECTION, Caps
from bridge.domain.lifecycle import reasons
from bridge.domain.lifecycle.actions import Cause, Evict, Shorten
from bridge.domain.lifecycle.decision import Deadlines, Decision
from bridge.domain.lifecycle.rules.answers import do
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod

KILL_WAIT_S = 30
"""Slurm's KillWait, by default: how long the processes of a job that was ended may take to stop."""

_NOT_BY_USERS = (Cause.NODE_FAIL, Cause.LOST, Cause.PREEMPTED)
"""Ends of a job that its own user does not bring about."""


def usable(case: Case) -> timedelta:
    """Return how long the pod's containers may take to stop."""
    asked_s = max(case.pod.grace_s, case.pod.deletion_grace_s)
    return timedelta(seconds=min(asked_s, case.policy.caps.grace_s))


def longest_s(job: SlurmJob | None, cause: Cause | None, caps: Caps) -> int:
    """Return the longest grace period in seconds.

    cause: why the pod has no right to its node any more; None if that is not known.
    """
    is_charged = job is not None and job.phase is JobPhase.RUNNING and cause is not Cause.RELEASED
    if is_charged or cause is None or cause in _NOT_BY_USERS:
        return caps.grace_s
    return min(KILL_WAIT_S, caps.grace_s)


def shorten(case: Case) -> Decision | None:
    """Shorten the grace period of a deleted pod that no longer has a right to its node.

    Return None if it is short enough already.
    """
    pod, caps = case.pod, case.policy.caps
    job = case.job if isinstance(case, JobCase) else None
    most_s = longest_s(job, _why_over(case), caps)
    if not pod.is_deleting or pod.deletion_grace_s <= most_s:
        return None
    why = f"setting {SECTION}.grace_s" if most_s == caps.grace_s else "no job pays for more"
    text = (
        f"its grace period of {pod.deletion_grace_s} s would keep a node that is Slurm's again: "
        f"shortened to {most_s} s ({why})"
    )
    return do(text, Shorten(grace_s=most_s, message=text))


def limit_grace(pod: Pod, job: SlurmJob | None, decision: Decision, policy: Deadlines) -> Decision:
    """Limit the grace period of an eviction, whatever the pod asks for."""
    actions = tuple(
        replace(action, grace_s=most_s)
        if isinstance(action, Evict)
        and pod.grace_s > (most_s := longest_s(job, action.cause, policy.caps))
        else action
        for action in decision.actions
    )
    return replace(decision, actions=actions)


def _why_over(case: Case) -> Cause | None:
    """Return why a pod that stops has no right to its node any more; None if it has, or who knows."""
    if case.facts.released:
        return Cause.RELEASED
    if not isinstance(case, JobCase):
        return None
    if case.job.phase is JobPhase.PAUSED:
        return Cause.SUSPENDED
    return reasons.cause_of(case.job.end) if case.job.end is not None else None
