"""Rules for the end: first of the containers, then of the placeholder, then of our finalizer."""

from datetime import timedelta

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Cause, Outcome, Release
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.lifecycle.rules import graces
from bridge.domain.lifecycle.rules.answers import cancel_of, complete_with, do, wait
from bridge.domain.lifecycle.rules.cases import Case, JobCase
from bridge.domain.lifecycle.rules.limits import extend, limit_of, time_out

NODE_FAILS_WITHIN = timedelta(seconds=15)
"""Afterwards a pod that was lost with its machine counts as failed: others of the node live on, and
DOWN would end their jobs too."""


def let_stop(case: Case) -> Decision:
    """Wait; if its grace period is too long: Shorten."""
    return graces.shorten(case) or _wait_for_containers(case)


def hold(case: JobCase) -> Decision:
    """Wait; near its time limit: SetTimeLimit.

    Beyond it, or if its job has given up the node, if its grace period is too long: Shorten.
    """
    limit = limit_of(case)
    is_over = limit is not None and case.facts.now >= limit.runs_out_at
    if (is_over or case.facts.released) and (shorter := graces.shorten(case)):
        return shorter
    if limit is None:
        return _wait_for_containers(case)
    remaining = limit.extension_due_at - case.facts.now
    if remaining <= timedelta(0):
        return extend(case, limit)
    till_limit = limit.runs_out_at - case.facts.now
    soonest = min(remaining, till_limit) if till_limit > timedelta(0) else remaining
    return _wait_for_containers(case, retry=soonest)


def complete(case: JobCase) -> Decision:
    """Complete with the outcome; if its machine crashed, first Wait for Slurm's node to be down.

    If evicted at its time limit: SetTimeLimit to reset it, then Complete; if deleted before it
    ended, never bound or its node is gone: Cancel.
    """
    pod = case.pod
    if not pod.is_bound:
        return do("pod ended without ever running", cancel_of(case.job))
    if not pod.containers_are_gone:
        return do("pod's node is gone and its outcome is unknown", cancel_of(case.job))
    if not outcome.ended_by_itself(pod):
        return settle(case)
    # How long Slurm may still take to end the job with its node: only a node that is DOWN ends it.
    # Containers report the moment of the crash, not when their kubelet was back to report it.
    left = NODE_FAILS_WITHIN - case.dwelt
    if outcome.lost_with_node(pod) and left > timedelta():
        return wait("its node crashed: its job is about to end as NODE_FAIL", retry=left)
    return complete_with(case, outcome.of(pod))


def settle(case: JobCase) -> Decision:
    """If evicted at its time limit: SetTimeLimit to reset it, then Complete.

    If it never started: Complete; else Cancel.
    """
    match outcome.evicted_for(case.pod):
        case Cause.TIME_LIMIT:
            return time_out(case)
        case Cause.NOT_STARTED | Cause.INCOMPLETE:
            return complete_with(case, Outcome(exit_code=outcome.NO_EXIT_CODE))
        case _:
            return do("pod was deleted", cancel_of(case.job))


def cancel(case: JobCase) -> Decision:
    """Cancel."""
    return do(f"nothing needs Slurm job {case.job.id} any more", cancel_of(case.job))


def release(case: Case) -> Decision:
    """Release, once Slurm surely has no live placeholder."""
    if not case.pod.has_our_finalizer:
        return wait("nothing of it is left in Slurm")
    if not case.facts.view.surely_none:
        return wait("not sure yet that nothing is left in Slurm", retry=case.policy.poll_interval)
    return do("nothing of it is left in Slurm: release the pod", Release())


def _wait_for_containers(case: Case, retry: timedelta | None = None) -> Decision:
    return wait(f"containers may still run on {case.pod.kube_node}", retry=retry)
