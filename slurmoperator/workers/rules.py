"""The cells of the table; a docstring's first line is the cell's text in docs/nodeset-lifecycle.md."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from slurmoperator.workers.actions import (
    CreateWorker,
    DeleteWorker,
    DrainWorker,
    ProtectWorker,
    ReleaseWorker,
    UndrainWorker,
    WorkerAction,
    WorkerDecision,
)
from slurmoperator.workers.situation import (
    BUSY,
    REASON_PREFIX,
    PodStage,
    WorkerFacts,
)

_REQUEUE_AFTER: Final = timedelta(seconds=5)


def rest(facts: WorkerFacts) -> WorkerDecision:
    """Do nothing."""
    return WorkerDecision(reason=f"{facts.name} needs no change")


def create(facts: WorkerFacts) -> WorkerDecision:
    """Create its pod."""
    return _do(f"{facts.name} has no pod", CreateWorker())


def begin(facts: WorkerFacts) -> WorkerDecision:
    """Protect it; wait for its slurmd."""
    return _keep(facts, "waiting for its slurmd to register")


def register(facts: WorkerFacts) -> WorkerDecision:
    """Protect it; wait: it may have jobs that Slurm does not know now. Never delete it."""
    keep = _keep(facts, "ready but not registered in Slurm; waiting for its slurmd")
    return replace(keep, retry_after=_REQUEUE_AFTER)


def serve(facts: WorkerFacts) -> WorkerDecision:
    """Protect it; drain it while its Kubernetes node is cordoned."""
    if facts.cordoned:
        return _do(facts.cordoned, *_protection(facts), _drain(facts))
    return _keep(facts, "in service")


def keep_drained(facts: WorkerFacts) -> WorkerDecision:
    """Lift our drain once its reason is gone; leave others alone."""
    node, drain_reason = facts.seen.node, facts.drain_reason
    # A released worker stays so until it is surely busy: jobs are read only until the release.
    stays = bool(facts.cordoned) and node is not None and not node.states & BUSY
    protection = () if stays else _protection(facts)
    if node is None or not node.reason.startswith(REASON_PREFIX):
        return WorkerDecision(
            actions=protection, reason=f"{facts.name} was not drained by slurm-operator"
        )
    if not drain_reason:
        return _do("the reason for our drain is gone", *protection, UndrainWorker())
    if node.reason != drain_reason:
        return _do(drain_reason, *protection, _drain(facts))
    return WorkerDecision(actions=protection, reason=f"{facts.name} is drained: {drain_reason}")


def come_back(facts: WorkerFacts) -> WorkerDecision:
    """Lift our drain once it is ready; leave others alone."""
    node = facts.seen.node
    is_ours = node is not None and node.reason.startswith(REASON_PREFIX)
    if facts.drain_reason or not is_ours:
        return keep_drained(facts)
    return _keep(facts, "it stays drained until it is ready")


def come_back_or_release(facts: WorkerFacts) -> WorkerDecision:
    """Allow evictions while its node is cordoned; otherwise lift our drain once it is ready."""
    return release(facts) if facts.cordoned else come_back(facts)


def release(facts: WorkerFacts) -> WorkerDecision:
    """Allow evictions while its node is cordoned; otherwise lift our drain, and no others."""
    pod, node = facts.pod, facts.seen.node
    if not facts.cordoned or pod is None or node is None:
        return keep_drained(facts)
    is_ours = node.reason.startswith(REASON_PREFIX)
    if is_ours and node.reason != facts.drain_reason:
        return keep_drained(facts)
    why = f"{facts.name} is drained and has no jobs: {facts.cordoned}"
    if not facts.is_guarded or not pod.is_protected:
        return WorkerDecision(reason=why)
    return _do(why, ReleaseWorker(uid=pod.uid, resource_version=pod.resource_version))


def doubt(facts: WorkerFacts) -> WorkerDecision:
    """Wait: draw no conclusion from what is unknown."""
    return WorkerDecision(
        reason=f"the state of {facts.name} in Slurm is unknown",
        retry_after=_REQUEUE_AFTER,
    )


def drain(facts: WorkerFacts) -> WorkerDecision:
    """Drain it; it stays protected."""
    return _do(facts.goes, _drain(facts))


def wait_for_jobs(facts: WorkerFacts) -> WorkerDecision:
    """Wait for its jobs."""
    return WorkerDecision(
        reason=f"{facts.name} is removed ({facts.goes}) when its jobs have ended",
        retry_after=_REQUEUE_AFTER,
    )


def recheck(facts: WorkerFacts) -> WorkerDecision:
    """Check again: one reading does not prove that it has no jobs."""
    return WorkerDecision(
        reason=f"{facts.name} is drained and seems to have no jobs; checking once more",
        retry_after=_REQUEUE_AFTER,
    )


def delete(facts: WorkerFacts) -> WorkerDecision:
    """Delete its pod."""
    pod = facts.pod
    if pod is None:
        return rest(facts)
    why = facts.goes or "its containers have ended for good"
    action = DeleteWorker(uid=pod.uid, resource_version=pod.resource_version)
    return _do(f"{facts.name}: {why}", action)


def wait_for_end(facts: WorkerFacts) -> WorkerDecision:
    """Wait until it has ended."""
    return WorkerDecision(reason=f"the pod of {facts.name} is being deleted")


def _keep(facts: WorkerFacts, reason: str) -> WorkerDecision:
    return WorkerDecision(actions=_protection(facts), reason=f"{facts.name}: {reason}")


def _protection(facts: WorkerFacts) -> tuple[WorkerAction, ...]:
    pod = facts.pod
    is_safe = not facts.is_guarded or (pod is not None and pod.is_protected)
    if pod is None or is_safe or pod.stage is PodStage.OVER:
        return ()
    return (ProtectWorker(),)


def _drain(facts: WorkerFacts) -> DrainWorker:
    return DrainWorker(reason=facts.drain_reason)


def _do(reason: str, *actions: WorkerAction) -> WorkerDecision:
    return WorkerDecision(actions=actions, reason=reason)
