"""Rules for a pod that has its node and keeps it."""

from datetime import timedelta

from bridge.domain.lifecycle import reasons
from bridge.domain.lifecycle.actions import Cause, Evict
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules.answers import do, seconds, tell, wait
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.lifecycle.rules.limits import at_its_limit, limit_of
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode

_CORRECTED_AFTER = timedelta(seconds=5)
"""Delay before a stale "waiting" condition is corrected: avoids a burst of writes when many pods
are bound at once."""

_STALLED_RETRY = timedelta(seconds=10)
"""Others that are bound cause no event of this pod."""

_HELD_BACK_RETRY = timedelta(seconds=5)
"""A safety net: the breaker closes for reasons that cause no event of this pod."""


def await_binding(case: JobCase) -> Decision:
    """Wait; kube-scheduler has failed to bind it until the bind deadline: Evict.

    It binds no pod, or has not tried: Wait, Tell. Its job has given up the node: Evict.
    """
    # Not Cancel as well: it may have been bound a moment ago. Nothing binds a deleting pod, so
    # the next look is sure.
    if case.facts.released:
        return _let_go(case, case.facts.released)
    if _is_elsewhere(case):
        text = f"{_elsewhere(case)}, and the pod has not started"
        return do(text, Evict(cause=Cause.LOST, message=text, if_unchanged=True))
    failing_since = case.facts.unbindable_since
    waited = case.facts.now - failing_since if failing_since is not None else case.dwelt
    remaining = case.policy.bind_deadline - waited
    if remaining > timedelta(0):
        return wait(f"{case.pod.bound_by} has yet to bind it", retry=remaining)
    if failing_since is None:
        # Keep the pod: with kube-scheduler away, or busy, every pod that Slurm starts would go.
        ours = "" if case.pod.is_for_binder else "kube-scheduler and "
        text = (
            f"Slurm job {case.job.id} holds {case.pod.assigned_node}, but {case.pod.bound_by} has "
            f"not bound the pod and reports no failure: check {ours}slurm-bridge's extender"
        )
        return tell(case.pod, "BindingStalled", text, retry=_STALLED_RETRY)
    scheduled = case.pod.condition(names.POD_SCHEDULED)
    says = f": {scheduled.message}" if scheduled is not None and scheduled.message else ""
    text = (
        f"not bound to {case.pod.assigned_node} within {seconds(case.policy.bind_deadline)} "
        f"although Slurm job {case.job.id} holds it{says}"
    )
    return do(text, Evict(cause=Cause.NOT_BOUND, message=text, if_unchanged=True))


def confirm(case: JobCase) -> Decision:
    """Wait; if the pod still reports that it waits: after a while, Tell that it is allocated.

    Near its time limit: SetTimeLimit, Evict at the limit; nothing of it started by the start
    deadline: Evict; its job has given up the node: Evict.
    """
    if case.facts.released:
        return _let_go(case, case.facts.released)
    if _is_elsewhere(case):
        return _move(case)
    limit = limit_of(case)
    if limit is not None and (ending := at_its_limit(case, limit)):
        return ending
    remaining = None if case.pod.has_started else case.policy.start_deadline - case.dwelt
    if remaining is not None and remaining <= timedelta(0):
        trouble = f": {', '.join(case.pod.troubles)}" if case.pod.troubles else ""
        text = (
            f"not started on {case.pod.kube_node} within {seconds(case.policy.start_deadline)} "
            f"although Slurm job {case.job.id} holds it{trouble}"
        )
        return do(text, Evict(cause=Cause.NOT_STARTED, message=text, if_unchanged=True))
    text = f"submitted as Slurm job {case.job.id}, started on {case.pod.kube_node}"
    spans = [remaining] if remaining is not None else []
    if limit is not None:
        spans.append(min(limit.extension_due_at, limit.runs_out_at) - case.facts.now)
    condition = case.pod.condition(names.ALLOCATED_CONDITION)
    if condition is None:  # label and annotation say so already: two writes are spared
        return wait(text, retry=min(spans, default=None))
    if condition.status != "True" and case.dwelt < _CORRECTED_AFTER:
        return wait(text, retry=min([_CORRECTED_AFTER - case.dwelt, *spans]))
    return tell(case.pod, "Allocated", text, allocated=True, retry=min(spans, default=None))


def evict(case: JobCase) -> Decision:
    """Evict for the cause of the end."""
    end = case.job.end
    if end is None:
        return wait("how its placeholder ended is not read yet", retry=case.policy.poll_interval)
    text = reasons.how_it_ended(case.job)
    return do(text, Evict(cause=reasons.cause_of(end), message=text))


def keep_suspended(case: JobCase) -> Decision:
    """Wait, Tell; if the settings say so: Evict."""
    if case.policy.evict_suspended:
        text = f"Slurm job {case.job.id} was suspended"
        return do(text, Evict(cause=Cause.SUSPENDED, message=text))
    return tell_paused(case)


def tell_paused(case: JobCase) -> Decision:
    """Wait, Tell."""
    text = f"Slurm job {case.job.id} is suspended: it continues once it is resumed"
    return tell(case.pod, "Suspended", text, job_id=case.job.id if case.pod.is_gated else None)


def hold_back(case: Case, decision: Decision) -> Decision:
    """Tell instead of Evict what may be Slurm's mistake, while the circuit breaker is open.

    A pod that never ran may go.
    """
    evict = next((action for action in decision.actions if isinstance(action, Evict)), None)
    if not (case.facts.evictions_held and case.pod.is_bound and evict):
        return decision
    if not evict.cause.is_loss:
        return decision
    text = (
        f"{evict.message}, and so many other pods lost theirs that an operator must allow "
        "the evictions: see the log of slurm-bridge's controllers"
    )
    return tell(case.pod, "EvictionHeldBack", text, retry=_HELD_BACK_RETRY)


def _let_go(case: JobCase, node: SlurmNode) -> Decision:
    text = f"Slurm job {case.job.id} was made smaller while it ran and no longer holds node {node}"
    return do(text, Evict(cause=Cause.RELEASED, message=text))


def _is_elsewhere(case: JobCase) -> bool:
    """Check whether the placeholder holds another node than the pod's.

    An unknown node is no evidence.
    """
    node = case.pod.kube_node or case.pod.assigned_node
    return None not in (node, case.facts.kube_node) and node != case.facts.kube_node


def _elsewhere(case: JobCase) -> str:
    return f"Slurm job {case.job.id} holds node {case.facts.kube_node}, not the pod's"


def _move(case: JobCase) -> Decision:
    """Evict if Slurm came back from an old state and started the job elsewhere.

    Otherwise a node may only have been mapped to another name.
    """
    started, placed = case.job.started_at, case.pod.start_time
    if started is not None and placed is not None and started > placed:
        text = f"{_elsewhere(case)}: it started again after the pod had"
        return do(text, Evict(cause=Cause.LOST, message=text))
    return tell(case.pod, "NodeMismatch", f"{_elsewhere(case)}: an administrator should check")
