"""The cells of the lifecycle's table: each rule says what to do in one situation, and why.

The first line of a rule's docstring is its text in `docs/lifecycle.md`. No rule asks whether the view is fresh:
`lifecycle.decide` holds back whatever was decided on an old one.
"""

from datetime import timedelta
from typing import assert_never

from bridge.domain import backoff, grant, names, outcome, reasons, time_limits
from bridge.domain.actions import (
    Action,
    Adopt,
    Assign,
    Cancel,
    Cause,
    Complete,
    EndPod,
    Evict,
    Outcome,
    OwnCause,
    Release,
    Restore,
    SetTimeLimit,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.cases import Case, JobCase
from bridge.domain.facts import Decision, Fit
from bridge.domain.ids import JobId, KubeNode, SlurmNode
from bridge.domain.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.pods import Pod
from bridge.domain.time_limits import TimeLimit
from bridge.domain.view import Evidence
from bridge.domain.waiting_reasons import NOT_LOOKED_AT

SUBMITTED_AGAIN_AFTER = frozenset({JobEnd.NODE_FAIL, JobEnd.PREEMPTED, JobEnd.BOOT_FAIL})
"""Ends that nobody meant for the pod: a waiting one is submitted again."""


# --- waiting for Slurm -----------------------------------------------------------------------------------------------


def submit(case: Case) -> Decision:
    """Submit, when no other gate is on and the back-off is over."""
    pod = case.pod
    if pod.has_foreign_gate:
        return wait(f"{_foreign_gates(pod)} on: it could not start, so nothing is asked of Slurm")
    if not pod.has_our_finalizer:
        text = f"finalizer {names.FINALIZER} is missing, its placeholder could leak: create the pod again"
        return _say(case, "FinalizerMissing", text)
    if not case.facts.view.surely_none:
        return wait("not sure yet that Slurm has no placeholder", retry=case.policy.poll_interval)
    if remaining := _backoff_left(case):
        return _back_off(case, remaining)
    avoid = _nodes_to_avoid(case)
    besides = f", avoiding {', '.join(avoid)}" if avoid else ""
    return do(f"Slurm has no placeholder for it: submit one{besides}", Submit(avoid=avoid))


def tell_why(case: JobCase) -> Decision:
    """Wait; Tell why, once it has taken a moment."""
    job = case.job
    if job.submitted_at is None:  # our own submit's answer, not looked at since
        return wait("Slurm has just got its placeholder", retry=case.policy.tell_after)
    age = case.facts.now - job.submitted_at
    if age < case.policy.tell_after:
        return wait("Slurm has just got its placeholder", retry=case.policy.tell_after - age)
    reason = reasons.condition_reason(job.reason)
    if reason == NOT_LOOKED_AT and age < _UNEXPLAINED:
        return wait("Slurm has not said yet why it waits", retry=_UNEXPLAINED - age)
    if job.held and not reason.startswith("JobHeld"):
        reason = "JobHeld"
    gates = f"; {_foreign_gates(case.pod)} on as well" if case.pod.has_foreign_gate else ""
    text = reasons.why_it_waits(job, case.facts.now)
    return _say(case, reason, f"{text}{gates}", job_id=job.id)


def assign(case: JobCase) -> Decision:
    """Assign; does not fit: Cancel with that cause; terminating pods in the way: Wait."""
    job, node, fit = case.job, case.facts.kube_node, case.facts.fit
    if case.pod.has_foreign_gate:
        return _hold_for_foreign_gate(case)
    if not job.nodes:
        return wait("its node is not known yet", retry=case.policy.poll_interval)
    if node is None:
        return _misfit(case, "no Kubernetes node stands behind it")
    match fit:
        case None:
            return wait(f"fit on {node} not examined yet", retry=case.policy.poll_interval)
        case Fit.FITS:
            return do(
                f"Slurm job {job.id} runs on {job.nodes[0]}: assign {node}",
                Assign(
                    job_id=job.id,
                    sluid=job.sluid,
                    slurm_node=job.nodes[0],
                    kube_node=node,
                    grant=grant.encode(job.identity, job.grant) if job.grant else "",
                ),
            )
        case Fit.TERMINATING:
            return _await_room(case, node)
        case Fit.MISFIT:
            return _misfit(case, case.facts.fit_text or f"{node} cannot take it")
        case unreachable:
            assert_never(unreachable)


def answer_end(case: JobCase) -> Decision:
    """Node failed, preempted or our own cancel: Submit again with back-off; else EndPod."""
    end = case.job.end
    if end is None:
        return wait("how its placeholder ended is not read yet", retry=case.policy.poll_interval)
    if case.job.identity.cause or end in SUBMITTED_AGAIN_AFTER:
        return submit(case)
    text = f"{reasons.how_it_ended(case.job)} before the pod could start"
    return do(text, EndPod(cause=reasons.cause_of(end), message=text))


# --- placed ----------------------------------------------------------------------------------------------------------


def await_binding(case: JobCase) -> Decision:
    """Wait until the bind deadline, then Evict.

    Not Cancel as well: it may have been bound a moment ago. Nothing binds a deleting pod, so the next look is sure.
    """
    if _is_elsewhere(case):
        text = f"{_elsewhere(case)}, and the pod has not started"
        return do(text, Evict(cause=Cause.LOST, message=text, if_unchanged=True))
    remaining = case.policy.bind_deadline - case.dwelt
    if remaining > timedelta(0):
        return wait("kube-scheduler has yet to bind it", retry=remaining)
    text = (
        f"not bound to {case.pod.assigned_node} within {_seconds(case.policy.bind_deadline)} "
        f"although Slurm job {case.job.id} holds it{_scheduler_says(case.pod)}"
    )
    return do(text, Evict(cause=Cause.NOT_BOUND, message=text, if_unchanged=True))


def confirm(case: JobCase) -> Decision:
    """Wait; Tell, in a while, that it is allocated; near its time limit: SetTimeLimit, Evict at the limit; nothing of it started by the start deadline: Evict."""
    if _is_elsewhere(case):
        return _move(case)
    limit = _limit(case)
    if limit is not None and (ending := _at_its_limit(case, limit)):
        return ending
    remaining = None if case.pod.has_started else case.policy.start_deadline - case.dwelt
    if remaining is not None and remaining <= timedelta(0):
        text = (
            f"not started on {case.pod.kube_node} within {_seconds(case.policy.start_deadline)} "
            f"although Slurm job {case.job.id} holds it{_kubelet_says(case.pod)}"
        )
        return do(text, Evict(cause=Cause.NOT_STARTED, message=text, if_unchanged=True))
    text = f"Slurm job {case.job.id} holds node {case.pod.kube_node}"
    spans = [remaining] if remaining is not None else []
    if limit is not None:
        spans.append(min(limit.extension_due_at, limit.runs_out_at) - case.facts.now)
    if case.pod.condition(names.ALLOCATED_CONDITION) is None and case.dwelt < _CONFIRMED_AFTER:
        return wait(text, retry=min([_CONFIRMED_AFTER - case.dwelt, *spans]))
    return _say(case, "Allocated", text, allocated=True, retry=min(spans, default=None))


def await_restore(case: JobCase) -> Decision:
    """Tell; others hold its node at the restore deadline: Evict."""
    job = case.job
    remaining = case.policy.restore_deadline - case.dwelt
    if remaining <= timedelta(0) and job.reason in _ROOM_IS_TAKEN:
        text = f"Slurm job {job.id} did not get its node back within {_seconds(case.policy.restore_deadline)}: {job.reason}"
        return do(text, Evict(cause=Cause.LOST, message=text))
    why = f" ({job.reason})" if job.reason else ""
    text = f"Slurm job {job.id} waits{why} although its pod was placed: it should get its node back"
    return _say(case, "PlaceholderWaits", text, retry=max(remaining, _SOON))


def keep_forgotten(case: Case) -> Decision:
    """Evidence that Slurm lost it, or an operator's word: Restore; that it ended: Evict; neither: Wait, Tell PlaceholderLost."""
    job = f"Slurm job {case.pod.job_id}" if case.pod.job_id else "its placeholder"
    match case.facts.view.evidence:
        case Evidence.PENDING:
            return wait(f"Slurm does not know {job}: looking for what became of it", retry=_SOON)
        case Evidence.ENDED:
            text = f"{job} has ended and is purged, as slurmdbd knows"
            return do(text, Evict(cause=Cause.ENDED, message=text))
        case Evidence.LOST:
            return _restore(case, f"Slurm lost {job} without ending it")
        case Evidence.NONE:
            return _ask_operator(case, f"Slurm does not know {job}, nor whether it ended")
        case unreachable:
            assert_never(unreachable)


def may_be_adopted(pod: Pod, job: SlurmJob) -> bool:
    """It stands in for the pod's lost placeholder, and the pod does not say so yet."""
    is_known = job.sluid is not None or job.phase is JobPhase.RUNNING
    return (
        is_known
        and job.phase is not JobPhase.ENDED
        and bool(job.identity.restores)
        and not job.is_named(pod.job_id, pod.sluid)
    )


def adopt(job: SlurmJob) -> Decision:
    """Adopt."""
    text = f"Slurm job {job.id} stands in for the one that was lost"
    return do(text, Adopt(job_id=job.id, sluid=job.sluid))


def evict(case: JobCase) -> Decision:
    """Evict for the cause of the end."""
    end = case.job.end
    if end is None:
        return wait("how its placeholder ended is not read yet", retry=case.policy.poll_interval)
    text = reasons.how_it_ended(case.job)
    return do(text, Evict(cause=reasons.cause_of(end), message=text))


def keep_suspended(case: JobCase) -> Decision:
    """Wait, Tell; where the settings say so: Evict."""
    if case.policy.evict_suspended:
        text = f"Slurm job {case.job.id} was suspended"
        return do(text, Evict(cause=Cause.SUSPENDED, message=text))
    return tell_paused(case)


def tell_paused(case: JobCase) -> Decision:
    """Wait, Tell."""
    text = f"Slurm job {case.job.id} is suspended: it goes on when somebody resumes it"
    return _say(case, "Suspended", text, job_id=case.job.id if case.pod.is_gated else None)


# --- un-gated by somebody else ---------------------------------------------------------------------------------------


def tell_unplaced(case: Case) -> Decision:
    """Wait, Tell that nothing can place it."""
    text = f"gate {names.GATE} was removed by hand before Slurm placed the pod: delete and create it again"
    return _say(case, "GateRemoved", text)


# --- ending ----------------------------------------------------------------------------------------------------------


def let_stop(case: Case) -> Decision:
    """Wait."""
    return wait(f"containers may still run on {case.pod.kube_node}")


def hold(case: JobCase) -> Decision:
    """Wait; near its time limit: SetTimeLimit."""
    limit = _limit(case)
    if limit is None:
        return let_stop(case)
    remaining = limit.extension_due_at - case.facts.now
    if remaining <= timedelta(0):
        return _extend(case, limit)
    return wait(f"containers may still run on {case.pod.kube_node}", retry=remaining)


def complete(case: JobCase) -> Decision:
    """Complete with the outcome; evicted at its time limit: SetTimeLimit back, then Complete; deleted before it ended, never bound or its node gone: Cancel."""
    pod = case.pod
    if not pod.is_bound:
        return do("pod ended without ever running", _cancel(case.job))
    if not pod.containers_are_gone:
        return do("pod's node is gone and nobody knows how it ended", _cancel(case.job))
    if not outcome.ended_by_itself(pod):
        return settle(case)
    return _complete(case, outcome.of(pod))


def settle(case: JobCase) -> Decision:
    """Evicted at its time limit: SetTimeLimit back, then Complete; never started: Complete; else Cancel."""
    match outcome.evicted_for(case.pod):
        case Cause.TIME_LIMIT:
            return _time_out(case)
        case Cause.NOT_STARTED:
            return _complete(case, Outcome(exit_code=outcome.NO_EXIT_CODE))
        case _:
            return do("pod was deleted", _cancel(case.job))


def cancel(case: JobCase) -> Decision:
    """Cancel."""
    return do(f"nothing needs Slurm job {case.job.id} any more", _cancel(case.job))


def release(case: Case) -> Decision:
    """Release, once Slurm surely has no live one."""
    if not case.pod.has_our_finalizer:
        return wait("nothing of it is left in Slurm")
    if not case.facts.view.surely_none:
        return wait("not sure yet that nothing is left in Slurm", retry=case.policy.poll_interval)
    return do("nothing of it is left in Slurm: release the pod", Release())


# --- after the table -------------------------------------------------------------------------------------------------


def hold_back(case: Case, decision: Decision) -> Decision:
    """Tell instead of Evict while the circuit breaker is open; what never ran may go."""
    evict = next((action for action in decision.actions if isinstance(action, Evict)), None)
    if not (case.facts.evictions_held and case.pod.is_bound and evict):
        return decision
    if not evict.cause.is_on_slurms_word:
        return decision
    text = (
        f"{evict.message}, and so many others lost theirs that an operator has to allow the evictions: "
        "see the log of slurm-bridge's controllers"
    )
    return _say(case, "EvictionHeldBack", text, retry=_HELD_BACK_RETRY)


# --- time limits -----------------------------------------------------------------------------------------------------


def _at_its_limit(case: JobCase, limit: TimeLimit) -> Decision | None:
    """Extend the job in time, then evict the pod when its true limit is reached; None while neither is due."""
    if case.facts.now >= limit.extension_due_at:
        return _extend(case, limit)
    if case.facts.now < limit.runs_out_at:
        return None
    text = f"Slurm job {case.job.id} reached its time limit"
    return do(text, Evict(cause=Cause.TIME_LIMIT, message=text, if_unchanged=True))


def _extend(case: JobCase, limit: TimeLimit) -> Decision:
    grace = timedelta(seconds=max(case.pod.grace_s, case.pod.deletion_grace_s))
    minutes = limit.extended_min(case.facts.now, grace)
    text = f"Slurm would end job {case.job.id} before its containers: extend it to {minutes} min"
    return do(text, _set_time_limit(case.job, limit, minutes))


def _time_out(case: JobCase) -> Decision:
    """Give the job its true limit back; once that is over for Slurm too, to complete it is to time it out."""
    limit = _limit(case)
    if limit is not None and limit.is_extended:
        text = "pod was evicted at its time limit: set the limit back"
        return do(text, _set_time_limit(case.job, limit, limit.true_min))
    if limit is None or limit.runs_out_at > case.facts.now + time_limits.LEAD:
        return do("somebody lifted the limit its pod was evicted for", _cancel(case.job))
    remaining = limit.runs_out_at + time_limits.SETTLED - case.facts.now
    if remaining > timedelta(0):
        return wait("its time limit is over in a moment", retry=remaining)
    return _complete(case, Outcome(timed_out=True))


def _limit(case: JobCase) -> TimeLimit | None:
    return time_limits.of(case.job, case.policy.overtime)


def _set_time_limit(job: SlurmJob, limit: TimeLimit, minutes: int) -> SetTimeLimit:
    return SetTimeLimit(
        job_id=job.id,
        sluid=job.sluid,
        minutes=minutes,
        true_min=limit.true_min,
        expected_min=limit.shown_min,
    )


# --- before the table ------------------------------------------------------------------------------------------------


def cancel_spares(spares: tuple[SlurmJob, ...]) -> Decision:
    """Cancel what no pod was placed by, before anything else is concluded."""
    ids = ", ".join(str(job.id) for job in spares)
    return do(f"spare placeholders: {ids}", *(_cancel(job, OwnCause.SPARE) for job in spares))


def finish_cancel(job: SlurmJob) -> Decision:
    """Cancel what already carries our cause: we died, or lost the reply, between recording it and cancelling."""
    recorded = job.identity.cause
    cause = OwnCause(recorded) if recorded in set(OwnCause) else OwnCause.UNUSED
    return do(f"cancel of Slurm job {job.id} was begun ({recorded})", _cancel(job, cause))


# --- words and pieces ------------------------------------------------------------------------------------------------

_SOON = timedelta(seconds=1)

_CONFIRMED_AFTER = timedelta(seconds=5)
"""Label and annotation say it already: a pod that is over by then is spared the write."""

_ROOM_IS_TAKEN = ("Resources", "Priority")
"""Slurm's reasons while others have what the job asks for. A drained node, a limit or a hold is for people to mend."""

_ASKED_AGAIN = timedelta(minutes=1)
"""How soon evidence is looked for again where there was none: slurmdbd may have been away."""

_HELD_BACK_RETRY = timedelta(seconds=5)
"""A safety net: the breaker closes for what no event of this pod's tells of."""

_UNEXPLAINED = timedelta(seconds=15)
"""For so long a reason is awaited before the pod is told that there is none: Slurm's next pass gives one."""


def do(reason: str, *actions: Action) -> Decision:
    """Act."""
    return Decision(actions=actions, reason=reason)


def wait(reason: str, *, retry: timedelta | None = None) -> Decision:
    """Wait for an event, or until the retry."""
    return Decision(actions=(Wait(),), reason=reason, retry_after=retry)


def _say(
    case: Case,
    reason: str,
    text: str,
    *,
    job_id: JobId | None = None,
    allocated: bool = False,
    retry: timedelta | None = None,
) -> Decision:
    """Tell it unless the pod says so already; waiting is free only if what did not change is not written."""
    pod = case.pod
    said = pod.condition(names.ALLOCATED_CONDITION)
    status = "True" if allocated else "False"
    if (
        said is not None
        and (said.status, said.reason, said.message) == (status, reason, text)
        and job_id in (None, pod.job_id)
    ):
        return wait(text, retry=retry)
    tell = Tell(job_id=job_id, reason=reason, message=text, allocated=allocated)
    return Decision(actions=(tell,), reason=text, retry_after=retry)


def _restore(case: Case, why: str) -> Decision:
    if case.pod.grant is None:
        text = f"{why}; what it was is not written on the pod, so it cannot be asked for again: the pod is kept"
        return _keep(case, text)
    if (refusal := case.facts.refusal) and (remaining := _backoff_left(case)):
        return _keep(case, f"{why}; a new one is refused: {refusal.text}", retry=remaining)
    return do(f"{why}: submit it again", Restore(lost=case.pod.placed_by))


def _ask_operator(case: Case, doubt: str) -> Decision:
    match case.pod.when_lost:
        case "restore":
            return _restore(case, f"{doubt}, and an operator said restore")
        case "let-go":
            text = f"{doubt}, and an operator said let-go"
            return do(text, Evict(cause=Cause.LOST, message=text))
        case _:
            text = (
                f"{doubt}: the pod is kept until an operator annotates it with "
                f"{names.WHEN_LOST_ANNOTATION}=restore or =let-go"
            )
            return _keep(case, text, retry=_ASKED_AGAIN)


def _keep(case: Case, text: str, *, retry: timedelta | None = None) -> Decision:
    return _say(case, "PlaceholderLost", text, retry=retry)


def _complete(case: JobCase, how: Outcome) -> Decision:
    action = Complete(job_id=case.job.id, sluid=case.job.sluid, outcome=how)
    return do(f"pod has ended: {outcome.in_words(how)}", action)


def _cancel(job: SlurmJob, cause: OwnCause | None = None) -> Cancel:
    return Cancel(job_id=job.id, sluid=job.sluid, cause=cause)


def _misfit(case: JobCase, why: str) -> Decision:
    job = case.job
    text = f"Slurm job {job.id} got node {', '.join(job.nodes)}, but {why}: looking for another"
    tell = Tell(job_id=job.id, reason="NodeMisfit", message=text)
    return do(text, _cancel(job, OwnCause.MISFIT), tell)


def _await_room(case: JobCase, node: KubeNode) -> Decision:
    """Slurm frees at once, containers take their grace: hold the allocation until they are gone."""
    text = f"Slurm job {case.job.id} has node {node}, where pods are still terminating"
    if case.dwelt < case.policy.tell_after:
        return wait(text, retry=_SOON)
    return _say(case, "NodeTerminatingPods", text, job_id=case.job.id, retry=_SOON)


def _hold_for_foreign_gate(case: JobCase) -> Decision:
    """Nobody else can use the allocation: hold it for no longer than a bind may take."""
    remaining = case.policy.bind_deadline - case.dwelt
    text = f"Slurm job {case.job.id} runs, but {_foreign_gates(case.pod)} on"
    if remaining > timedelta(0):
        return _say(case, "ForeignGate", text, job_id=case.job.id, retry=remaining)
    return do(f"{text}: give the nodes back", _cancel(case.job, OwnCause.UNUSED))


def _backoff_left(case: Case) -> timedelta:
    """How long until the next submit may be tried: after ended placeholders, and after refusals."""
    now = case.facts.now
    first, cap = case.policy.backoff_first, case.policy.backoff_cap
    ended = [job for job in case.facts.view.ended if job.identity.cause != OwnCause.SPARE]
    begun = [moment for job in ended if (moment := job.started_at or job.submitted_at)]
    remaining = timedelta(0)
    if begun:
        remaining = backoff.left(len(ended), max(begun), now, first=first, cap=cap)
    if refusal := case.facts.refusal:
        after_refusal = backoff.left(refusal.attempts, refusal.at, now, first=first, cap=cap)
        remaining = max(remaining, after_refusal)
    return remaining


def _back_off(case: Case, remaining: timedelta) -> Decision:
    if refusal := case.facts.refusal:
        text = f"its placeholder is refused: {refusal.text}"
        return _say(case, "SubmitRefused", text, retry=remaining)
    return wait("its last placeholder ended a moment ago: back off", retry=remaining)


def _nodes_to_avoid(case: Case) -> tuple[SlurmNode, ...]:
    """Nodes that Kubernetes could not take a while ago; Slurm would choose the same again."""
    oldest = case.facts.now - case.policy.avoid_node
    return tuple(
        sorted(
            {
                node
                for job in case.facts.view.ended
                if job.identity.cause == OwnCause.MISFIT
                and (job.started_at is None or job.started_at > oldest)
                for node in job.identity.misfits or job.nodes
            }
        )
    )


def _is_elsewhere(case: JobCase) -> bool:
    """The placeholder holds another node than the pod's; an unknown node is no evidence."""
    node = case.pod.kube_node or case.pod.assigned_node
    return None not in (node, case.facts.kube_node) and node != case.facts.kube_node


def _elsewhere(case: JobCase) -> str:
    return f"Slurm job {case.job.id} holds node {case.facts.kube_node}, not the pod's"


def _move(case: JobCase) -> Decision:
    """Slurm came back from an old state and started it again elsewhere; or only a node's name was mapped anew."""
    started, placed = case.job.started_at, case.pod.start_time
    if started is not None and placed is not None and started > placed:
        text = f"{_elsewhere(case)}: it started again after the pod had"
        return do(text, Evict(cause=Cause.LOST, message=text))
    return _say(case, "NodeMismatch", f"{_elsewhere(case)}: an administrator should look")


def _foreign_gates(pod: Pod) -> str:
    return "scheduling gates " + ", ".join(gate for gate in pod.gates if gate != names.GATE)


def _scheduler_says(pod: Pod) -> str:
    scheduled = pod.condition("PodScheduled")
    return f": {scheduled.message}" if scheduled is not None and scheduled.message else ""


def _kubelet_says(pod: Pod) -> str:
    said = [f"{c.name}: {c.reason} {c.message}".strip() for c in pod.containers if c.reason]
    return f": {', '.join(said)}" if said else ""


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"
