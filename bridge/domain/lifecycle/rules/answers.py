"""The answers a rule can give, and the wording that rules share."""

from datetime import timedelta

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Action, Cancel, Complete, Outcome, OwnCause, Tell, Wait
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules.cases import JobCase
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.faults import published
from slurmruntime.values.ids import JobId


def do(reason: str, *actions: Action) -> Decision:
    """Return a decision that acts."""
    return Decision(actions=actions, reason=reason)


def wait(reason: str, *, retry: timedelta | None = None) -> Decision:
    """Return a decision that waits for an event, or until the retry."""
    return Decision(actions=(Wait(),), reason=reason, retry_after=retry)


def tell(
    pod: Pod,
    reason: str,
    text: str,
    *,
    job_id: JobId | None = None,
    allocated: bool = False,
    retry: timedelta | None = None,
) -> Decision:
    """Report on the pod unless it already shows this: waiting must not cost repeated writes."""
    text = published(text)
    condition = pod.condition(names.ALLOCATED_CONDITION)
    status = "True" if allocated else "False"
    if (
        condition is not None
        and (condition.status, condition.reason, condition.message) == (status, reason, text)
        and job_id in (None, pod.job_id)
    ):
        return wait(text, retry=retry)
    action = Tell(job_id=job_id, reason=reason, message=text, allocated=allocated)
    return Decision(actions=(action,), reason=text, retry_after=retry)


def complete_with(case: JobCase, how: Outcome) -> Decision:
    """End the placeholder with the pod's outcome."""
    action = Complete(job_id=case.job.id, sluid=case.job.sluid, outcome=how)
    return do(f"pod has ended: {outcome.in_words(how)}", action)


def cancel_of(job: SlurmJob, cause: OwnCause | None = None) -> Cancel:
    """Cancel this very job, for a cause of ours or because nothing needs it."""
    return Cancel(job_id=job.id, sluid=job.sluid, cause=cause)


def seconds(span: timedelta) -> str:
    """Write a duration for people."""
    return f"{span.total_seconds():g} s"
