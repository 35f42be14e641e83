"""Rules for a pod whose placeholder Slurm has lost: doubt never evicts."""

from datetime import timedelta
from typing import assert_never

from bridge.domain.lifecycle import reasons
from bridge.domain.lifecycle.actions import Cause, Evict, Restore
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules.answers import do, seconds, tell, wait
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.lifecycle.rules.waiting import backoff_left
from bridge.domain.model import placeholder
from bridge.domain.observation.view import Evidence
from slurmruntime.values import names
from slurmruntime.values.faults import shortened

_ROOM_IS_TAKEN = ("Resources", "Priority")
"""Slurm's reasons while others hold what the job needs. A drained node, a limit or a hold is for
people to fix."""

_ASKED_AGAIN = timedelta(minutes=1)
"""How soon to look for evidence again if there was none: slurmdbd may have been away."""

_SOON = timedelta(seconds=1)

_SHOWN = 200
"""Bytes of a key that a message shows."""


def await_restore(case: JobCase) -> Decision:
    """Tell; if others still hold its node at the restore deadline: Evict."""
    job = case.job
    remaining = case.policy.restore_deadline - case.dwelt
    if remaining <= timedelta(0) and job.reason in _ROOM_IS_TAKEN:
        text = (
            f"Slurm job {job.id} did not get its node back within "
            f"{seconds(case.policy.restore_deadline)}: {job.reason}"
        )
        return do(text, Evict(cause=Cause.LOST, message=text))
    why = f" ({job.reason})" if job.reason else ""
    text = f"Slurm job {job.id} waits{why} although its pod was placed: it should get its node back"
    return tell(case.pod, "PlaceholderWaits", text, retry=max(remaining, _SOON))


def keep_forgotten(case: Case) -> Decision:
    """If there is evidence that Slurm lost it, or an operator asks for it: Restore.

    While Slurm knows one that it ended as never runnable: Wait, Tell.

    If there is evidence that it ended: Evict; neither: Wait, Tell PlaceholderLost.
    """
    job = f"Slurm job {case.pod.job_id}" if case.pod.job_id else "its placeholder"
    match case.facts.view.evidence:
        case Evidence.PENDING:
            return wait(
                f"Slurm does not know {job}: looking for evidence of what became of it", retry=_SOON
            )
        case Evidence.ENDED:
            text = f"{job} has ended and was purged, according to slurmdbd"
            return do(text, Evict(cause=Cause.ENDED, message=text))
        case Evidence.NODE_FAILED:
            text = f"{job} has ended because its node failed in Slurm, and was purged, according to slurmdbd"
            return do(text, Evict(cause=Cause.NODE_FAIL, message=text))
        case Evidence.LOST:
            return _restore(case, f"Slurm lost {job} without ending it")
        case Evidence.NONE:
            return _ask_operator(case, f"Slurm knows neither {job} nor whether it ended")
        case unreachable:
            assert_never(unreachable)


def _restore(case: Case, why: str) -> Decision:
    if case.pod.grant is None:
        text = (
            f"{why}; the pod does not record what was granted, so it cannot be requested again: "
            "the pod is kept"
        )
        return _keep(case, text)
    identity, granted = case.pod.grant
    if any(placeholder.may_be_root(part.user) for part in (granted, *granted.also)):
        text = (
            f"{why}; the pod's annotation {names.GRANT_ANNOTATION} says that it was root's, which no "
            "placeholder is: the pod is kept. Restore the annotation, or delete the pod"
        )
        return _keep(case, text)
    if identity.key != case.pod.workload:
        text = (
            f"{why}; the pod's annotations contradict each other: {names.GRANT_ANNOTATION} names "
            f"workload {shortened(identity.key, _SHOWN)}, {names.WORKLOAD_ANNOTATION} another one. "
            "A new placeholder would not be recognized as its own: the pod is kept. Restore the "
            "annotation, or delete the pod"
        )
        return _keep(case, text)
    if (refusal := case.facts.refusal) and (remaining := backoff_left(case)):
        return _keep(case, f"{why}; a new one is refused: {refusal.text}", retry=remaining)
    if impossible := [job for job in case.facts.view.ended if job.is_impossible]:
        text = f"{why}; {reasons.why_impossible(impossible[-1])}"
        return _keep(case, text, retry=_ASKED_AGAIN)
    return do(f"{why}: submit it again", Restore(lost=case.pod.placed_by))


def _ask_operator(case: Case, doubt: str) -> Decision:
    match case.pod.when_lost:
        case "restore":
            return _restore(case, f"{doubt}, and an operator chose restore")
        case "let-go":
            text = f"{doubt}, and an operator chose let-go"
            return do(text, Evict(cause=Cause.LOST, message=text))
        case _:
            text = (
                f"{doubt}: the pod is kept until an operator annotates it with "
                f"{names.WHEN_LOST_ANNOTATION}=restore or =let-go"
            )
            return _keep(case, text, retry=_ASKED_AGAIN)


def _keep(case: Case, text: str, *, retry: timedelta | None = None) -> Decision:
    return tell(case.pod, "PlaceholderLost", text, retry=retry)
