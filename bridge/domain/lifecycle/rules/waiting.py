"""Rules for a pod that waits for Slurm: our gate is on."""

from datetime import timedelta
from typing import assert_never

from bridge.domain.lifecycle import reasons
from bridge.domain.lifecycle.actions import Action, Assign, EndPod, OwnCause, Submit, Tell
from bridge.domain.lifecycle.decision import Decision, Facts, Fit
from bridge.domain.lifecycle.rules.answers import cancel_of, do, tell, wait
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.lifecycle.waiting_reasons import NOT_LOOKED_AT
from bridge.domain.model import grant
from bridge.domain.model.jobs import JobEnd
from bridge.domain.model.pods import Pod
from bridge.domain.observation import binding
from slurmruntime.values import backoff, names
from slurmruntime.values.ids import KubeNode, SlurmNode

SUBMITTED_AGAIN_AFTER = frozenset({JobEnd.NODE_FAIL, JobEnd.PREEMPTED, JobEnd.BOOT_FAIL})
"""Ends that were not meant for the pod: a waiting one is submitted again."""

_UNEXPLAINED = timedelta(seconds=15)
"""How long to wait for a reason before reporting that there is none: Slurm's next pass gives
one."""

_SOON = timedelta(seconds=1)

_MOST_SHRUNK = 3
"""How many placeholders with less than the pod takes Slurm may start before none is submitted any
more. Counted among those that Slurm still knows."""

_MOST_MISFITS = 6
"""How many placeholders may get unsuitable nodes, counted among those that Slurm still knows: the
back-off has grown to half a minute by then."""

_MOST_UNBOUND = 3
"""How many pods of a controller may be evicted because they cannot be bound; each holds its nodes
until the bind deadline."""

_PIN_AGAIN = timedelta(minutes=2)
"""Longer than the work queue ever waits between two attempts."""

_MISFIT_HELD = "NodeMisfitHeld"
_HELD_FOR = timedelta(hours=1)
_HELD_RETRY = timedelta(minutes=1)

NEVER_RUNNABLE = "NeverRunnable"
_IMPOSSIBLE_FOR = timedelta(minutes=10)
"""How long after a job that could never run the next one is submitted. Slurm forgets jobs sooner
(MinJobAge): from then on, the pod is held for as long again."""

_NODES_SETTLE = timedelta(seconds=10)
"""How soon pods that lacked nodes are tried again after nodes have changed."""

_TERMINATING = "NodeTerminatingPods"
_OUTLIVED_FOR = timedelta(minutes=1)
"""How long to hold an allocation for pods that nothing evicts; its user is charged meanwhile."""
_UNHELD_FOR = timedelta(seconds=10)
"""How long a question of slurmctld's script may take until it is known; it comes before the job runs."""

_GRANT_HELD = "GrantHeld"
"""The condition's reason while none is submitted; it stays when Slurm has forgotten the jobs."""


def submit(case: Case) -> Decision:
    """Submit, when no other gate is on and the back-off is over.

    If the last three were changed while they waited and got less than the pod takes: Tell. If the
    last six got nodes that cannot take it, or the last three of its controller's pods could not be
    bound: Tell, for an hour. If Slurm ended the last one as never runnable: Tell, until nodes change,
    or for ten minutes.
    """
    pod = case.pod
    if pod.has_foreign_gate:
        return wait(f"{_foreign_gates(pod)} on: it could not start, so no job is submitted")
    if not pod.has_our_finalizer:
        text = (
            f"finalizer {names.FINALIZER} is missing, so its placeholder could leak: "
            "create the pod again"
        )
        return tell(case.pod, "FinalizerMissing", text)
    if not case.facts.view.surely_none:
        return wait("not sure yet that Slurm has no placeholder", retry=case.policy.poll_interval)
    shrunk = [job for job in case.facts.view.ended if job.identity.cause == OwnCause.SHRUNK]
    if len(shrunk) >= _MOST_SHRUNK or case.reported == _GRANT_HELD:
        text = (
            f"{_MOST_SHRUNK} Slurm jobs in a row were changed while they waited, and got less than "
            "the pod requests: none is submitted any more; delete the pod and create it again"
        )
        return tell(case.pod, _GRANT_HELD, text)
    if held := _held_for_its_nodes(case) or _held_as_impossible(case):
        return held
    if remaining := backoff_left(case):
        if refusal := case.facts.refusal:
            text = f"its placeholder is refused: {refusal.text}"
            return tell(case.pod, "SubmitRefused", text, retry=remaining)
        return wait("its last placeholder ended a moment ago: back off", retry=remaining)
    avoid = _nodes_to_avoid(case)
    besides = f", avoiding {', '.join(avoid)}" if avoid else ""
    return do(f"Slurm has no placeholder for it: submit one{besides}", Submit(avoid=avoid))


def tell_why(case: JobCase) -> Decision:
    """Wait; Tell why, once it has taken a moment."""
    job = case.job
    if job.submitted_at is None:
        # Our own submit's answer. The job will be read in its turn, which wakes the pod; among very
        # many jobs that may take minutes.
        return wait("its placeholder was just submitted")
    age = case.facts.now - job.submitted_at
    if age < case.policy.tell_after:
        return wait("its placeholder was just submitted", retry=case.policy.tell_after - age)
    reason = reasons.condition_reason(job.reason)
    if reason == NOT_LOOKED_AT and age < _UNEXPLAINED:
        return wait("Slurm has not given a reason yet", retry=_UNEXPLAINED - age)
    if job.held and not reason.startswith("JobHeld"):
        reason = "JobHeld"
    gates = f"; {_foreign_gates(case.pod)} on as well" if case.pod.has_foreign_gate else ""
    text = reasons.why_it_waits(job, case.facts.now)
    return tell(case.pod, reason, f"{text}{gates}", job_id=job.id)


def assign(case: JobCase) -> Decision:
    """Assign; does not fit, or got less than the pod takes: Cancel with that cause.

    Terminating pods in the way, or Kubernetes still makes its claim: Wait. slurmctld's script has not
    asked: Wait for some seconds, then Cancel. Pods in the way whose job
    has ended, and that nothing evicts: Wait for a minute, then Cancel. Its claims got no devices:
    Tell, and try again. A pin that has failed so, or that the API server has refused, for as long as
    a bind may take counts as a misfit.
    """
    job, node, fit = case.job, case.facts.kube_node, case.facts.fit
    if case.pod.has_foreign_gate:
        return _hold_for_foreign_gate(case)
    if not job.nodes:
        return wait("its node is not known yet", retry=case.policy.poll_interval)
    if case.facts.shortfall:
        return _shrunk(case)
    if node is None:
        return _misfit(case, "it has no Kubernetes node")
    match fit:
        case None:
            return wait(f"fit on {node} not examined yet", retry=case.policy.poll_interval)
        case Fit.FITS:
            return _pin(case, node)
        case Fit.TERMINATING | Fit.OUTLIVED | Fit.UNHELD:
            return _await_room(case, node)
        case Fit.MISFIT:
            return _misfit(case, case.facts.fit_text or f"{node} cannot take it")
        case unreachable:
            assert_never(unreachable)


def _pin(case: JobCase, node: KubeNode) -> Decision:
    job = case.job
    if why := _why_unpinnable(case):
        return _misfit(case, why)
    unmade = [claim.entry for claim in case.pod.resource_claims if not claim.claim]
    if unmade and case.dwelt < case.policy.tell_after:
        # The pod's own event wakes it; what failed would be tried again after a back-off.
        return wait(f"Kubernetes has not made the claim for {unmade[0]} yet", retry=_SOON)
    return do(
        f"Slurm job {job.id} runs on {job.nodes[0]}: assign {node}",
        *_awaited_devices(case),
        Assign(
            job_id=job.id,
            sluid=job.sluid,
            slurm_node=job.nodes[0],
            kube_node=node,
            grant=grant.encode(job.identity, job.grant) if job.grant else "",
            waited=_awaited_room(case),
        ),
    )


def answer_end(case: JobCase) -> Decision:
    """Node failed, preempted or our own cancel: Submit again with back-off; else EndPod.

    If it never had a node, because Slurm found that it could never run: as if there were none.
    """
    end = case.job.end
    if end is None:
        return wait("how its placeholder ended is not read yet", retry=case.policy.poll_interval)
    is_ours = case.job.identity.cause or case.job.is_impossible
    if is_ours or end in SUBMITTED_AGAIN_AFTER:
        return submit(case)
    text = f"{reasons.how_it_ended(case.job)} before the pod could start"
    return do(text, EndPod(cause=reasons.cause_of(end), message=text))


def tell_unplaced(case: Case) -> Decision:
    """Wait, Tell that nothing can place it."""
    text = (
        f"gate {names.GATE} was removed by hand before Slurm placed the pod: "
        "delete and create it again"
    )
    return tell(case.pod, "GateRemoved", text)


def _misfit(case: JobCase, why: str) -> Decision:
    job = case.job
    text = f"Slurm job {job.id} got node {', '.join(job.nodes)}, but {why}"
    report = Tell(job_id=job.id, reason="NodeMisfit", message=f"{text}: looking for another")
    return do(text, cancel_of(job, OwnCause.MISFIT), report)


def _shrunk(case: JobCase) -> Decision:
    job = case.job
    text = (
        f"Slurm job {job.id} was changed while it waited: {case.facts.shortfall}; "
        "it is cancelled and submitted again"
    )
    report = Tell(job_id=job.id, reason="GrantTooSmall", message=text)
    return do(text, cancel_of(job, OwnCause.SHRUNK), report)


def _held_for_its_nodes(case: Case) -> Decision | None:
    """Hold back a pod that Slurm would only start and cancel again; None if it may try.

    Each try takes nodes from others for a moment, and leaves a job in the accounting.
    """
    facts = case.facts
    misfits = [job for job in facts.view.ended if job.identity.cause == OwnCause.MISFIT]
    is_held = case.reported == _MISFIT_HELD and case.dwelt < _HELD_FOR
    if len(misfits) >= _MOST_MISFITS or is_held:
        text = (
            f"{_MOST_MISFITS} Slurm jobs in a row got nodes that Kubernetes cannot use for the pod: "
            "none is submitted for an hour; see the events of the pod for what is missing there, "
            "or delete the pod and create it again"
        )
        retry = max(_HELD_FOR - case.dwelt, _HELD_RETRY)
        return tell(case.pod, _MISFIT_HELD, text, retry=retry)
    if len(facts.bind_failures) >= _MOST_UNBOUND:
        where = ", ".join(dict.fromkeys(failure.node for failure in facts.bind_failures))
        text = (
            f"kube-scheduler could not bind the last {len(facts.bind_failures)} pods of the same "
            f"controller (on {where}): none is submitted for an hour; see the events of the "
            "evicted pods for the reason"
        )
        again_at = facts.bind_failures[-_MOST_UNBOUND].at + binding.LASTS
        return tell(case.pod, "BindHeld", text, retry=max(again_at - facts.now, _HELD_RETRY))
    return None


def awaits_nodes(facts: Facts) -> bool:
    """Check whether other nodes might let the pod start: it is examined again when nodes change."""
    condition, refusal = facts.pod.condition(names.ALLOCATED_CONDITION), facts.refusal
    return (
        (refusal is not None and refusal.is_of_nodes)
        or (condition is not None and condition.reason == NEVER_RUNNABLE)
        or any(job.is_impossible for job in facts.view.ended)
    )


def _held_as_impossible(case: Case) -> Decision | None:
    """Hold back a pod whose last job could never run; None if the next one may be tried."""
    now, condition = case.facts.now, case.pod.condition(names.ALLOCATED_CONDITION)
    jobs = [job for job in case.facts.view.ended if job.is_impossible]
    if jobs:
        last = max(jobs, key=lambda job: job.id)
        since, text = last.submitted_at or now, reasons.why_impossible(last)
    elif condition is not None and condition.reason == NEVER_RUNNABLE:
        since, text = now - case.dwelt, condition.message
    else:
        return None
    again_at = since + _IMPOSSIBLE_FOR
    changed_at = case.facts.nodes_changed_at
    if changed_at is not None and changed_at > since:
        again_at = min(again_at, changed_at + _NODES_SETTLE)
    return tell(case.pod, NEVER_RUNNABLE, text, retry=again_at - now) if again_at > now else None


def _why_unpinnable(case: JobCase) -> str:
    """Return why the pod cannot be pinned although it fits; "" as long as trying is worth it."""
    refusal = case.facts.pin_refusal
    if refusal is None or refusal.job_id != case.job.id:
        return ""
    if case.facts.now - refusal.since < case.policy.bind_deadline:
        return ""
    # A gang's placeholder stays for the others: what was in the way may have gone meanwhile.
    if case.facts.now - refusal.tried_at >= max(case.policy.bind_deadline, _PIN_AGAIN):
        return ""
    if refusal.is_of_devices:
        return f"the pod's resource claims cannot get their devices there ({refusal.text})"
    return f"the API server refuses to give it to the pod ({refusal.text})"


def _await_room(case: JobCase, node: KubeNode) -> Decision:
    """Hold the allocation until terminating containers are gone, or native jobs are held back.

    Slurm frees at once, containers use their grace period.
    """
    is_outlived = case.facts.fit is Fit.OUTLIVED
    if is_outlived and case.dwelt >= _OUTLIVED_FOR:
        return _misfit(case, "pods whose jobs have ended still run there, and nothing evicts them")
    if case.facts.fit is Fit.UNHELD:
        text = case.facts.fit_text
        return _misfit(case, text) if case.dwelt >= _UNHELD_FOR else wait(text, retry=_SOON)
    began = case.job.started_at
    since = f" since {began:%H:%M:%S} UTC" if began else ""
    what = "pods run whose jobs have ended" if is_outlived else "pods are still terminating"
    text = f"Slurm job {case.job.id} has node {node}{since}, where {what}"
    if case.dwelt < case.policy.tell_after:
        return wait(text, retry=_SOON)
    return tell(case.pod, _TERMINATING, text, job_id=case.job.id, retry=_SOON)


def _awaited_devices(case: JobCase) -> tuple[Action, ...]:
    """Tell which devices the pod waits for, once attempts have failed for a while.

    Kubernetes may make a template's claim a moment later than Slurm starts the job.
    """
    refusal = case.facts.pin_refusal
    if refusal is None or refusal.job_id != case.job.id or not refusal.is_of_devices:
        return ()
    if case.facts.now - refusal.since < case.policy.tell_after:
        return ()
    text = f"Slurm job {case.job.id} runs, but the pod's resource claims wait: {refusal.text}"
    decision = tell(case.pod, "DevicesNotGiven", text, job_id=case.job.id)
    return tuple(action for action in decision.actions if isinstance(action, Tell))


def _awaited_room(case: JobCase) -> timedelta | None:
    """Return how long its job has held the node for nothing; None if that was not reported."""
    began = case.job.started_at
    if case.reported != _TERMINATING or case.pod.job_id != case.job.id or began is None:
        return None
    return max(case.facts.now - began, timedelta(0))


def _hold_for_foreign_gate(case: JobCase) -> Decision:
    """Hold the allocation for no longer than a bind may take: no other job can use it."""
    remaining = case.policy.bind_deadline - case.dwelt
    text = f"Slurm job {case.job.id} runs, but {_foreign_gates(case.pod)} on"
    if remaining > timedelta(0):
        return tell(case.pod, "ForeignGate", text, job_id=case.job.id, retry=remaining)
    return do(f"{text}: give the nodes back", cancel_of(case.job, OwnCause.UNUSED))


def backoff_left(case: Case) -> timedelta:
    """Return how long until the next submit: after ended placeholders, and after refusals."""
    now = case.facts.now
    first, cap = case.policy.backoff_first, case.policy.backoff_cap
    ended = [job for job in case.facts.view.ended if job.identity.cause != OwnCause.SPARE]
    begun = [moment for job in ended if (moment := job.started_at or job.submitted_at)]
    remaining = timedelta(0)
    if begun:
        remaining = backoff.left(len(ended), max(begun), now, first=first, cap=cap)
    if refusal := case.facts.refusal:
        after_refusal = backoff.left(refusal.attempts, refusal.at, now, first=first, cap=cap)
        changed_at = case.facts.nodes_changed_at
        if refusal.is_of_nodes and changed_at is not None and changed_at > refusal.at:
            after_refusal = min(after_refusal, refusal.at + _NODES_SETTLE - now)
        remaining = max(remaining, after_refusal)
    return remaining


def _nodes_to_avoid(case: Case) -> tuple[SlurmNode, ...]:
    """Return nodes that Kubernetes could not take lately; Slurm would choose the same again."""
    oldest = case.facts.now - case.policy.avoid_node
    return tuple(
        sorted(
            {failure.node for failure in case.facts.bind_failures}
            | {
                node
                for job in case.facts.view.ended
                if job.identity.cause == OwnCause.MISFIT
                and (job.started_at is None or job.started_at > oldest)
                for node in job.identity.misfits or job.nodes
            }
        )
    )


def _foreign_gates(pod: Pod) -> str:
    return "scheduling gates " + ", ".join(gate for gate in pod.gates if gate != names.GATE)
