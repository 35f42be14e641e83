"""The cells of the table; a docstring's first line is the cell's text in docs/nodeset-lifecycle.md."""

from dataclasses import dataclass, replace

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
    WorkerPod,
    WorkerPolicy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCase:
    """A rule's input."""

    facts: WorkerFacts
    policy: WorkerPolicy


def rest(case: WorkerCase) -> WorkerDecision:
    """Do nothing."""
    return WorkerDecision(reason=f"{case.facts.name} needs no change")


def create(case: WorkerCase) -> WorkerDecision:
    """Create its pod."""
    return _do(f"{case.facts.name} has no pod", CreateWorker())


def begin(case: WorkerCase) -> WorkerDecision:
    """Protect it; wait for its slurmd."""
    return _keep(case, "waiting for its slurmd to register")


def register(case: WorkerCase) -> WorkerDecision:
    """Protect it; wait: it may have jobs that Slurm does not know now. Never delete it."""
    keep = _keep(case, "ready but not registered in Slurm; waiting for its slurmd")
    return replace(keep, retry_after=case.policy.requeue_after)


def serve(case: WorkerCase) -> WorkerDecision:
    """Protect it; drain it while its Kubernetes node is cordoned."""
    if case.facts.cordoned:
        return _do(case.facts.cordoned, *_protection(case), _drain(case))
    return _keep(case, "in service")


def keep_drained(case: WorkerCase) -> WorkerDecision:
    """Lift our drain once its reason is gone; leave others alone."""
    node, drain_reason = case.facts.seen.node, case.facts.drain_reason
    # A released worker stays so until it is surely busy: jobs are read only until the release.
    stays = bool(case.facts.cordoned) and node is not None and not node.states & BUSY
    protection = () if stays else _protection(case)
    if node is None or not node.reason.startswith(REASON_PREFIX):
        return WorkerDecision(
            actions=protection, reason=f"{case.facts.name} was not drained by slurm-operator"
        )
    if not drain_reason:
        return _do("the reason for our drain is gone", *protection, UndrainWorker())
    if node.reason != drain_reason:
        return _do(drain_reason, *protection, _drain(case))
    return WorkerDecision(
        actions=protection, reason=f"{case.facts.name} is drained: {drain_reason}"
    )


def come_back(case: WorkerCase) -> WorkerDecision:
    """Lift our drain once it is ready; leave others alone."""
    node = case.facts.seen.node
    is_ours = node is not None and node.reason.startswith(REASON_PREFIX)
    if case.facts.drain_reason or not is_ours:
        return keep_drained(case)
    return _keep(case, "it stays drained until it is ready")


def come_back_or_release(case: WorkerCase) -> WorkerDecision:
    """Allow evictions while its node is cordoned; otherwise lift our drain once it is ready."""
    return release(case) if case.facts.cordoned else come_back(case)


def release(case: WorkerCase) -> WorkerDecision:
    """Allow evictions while its node is cordoned; otherwise lift our drain, and no others."""
    pod, node = case.facts.pod, case.facts.seen.node
    if not case.facts.cordoned or pod is None or node is None:
        return keep_drained(case)
    is_ours = node.reason.startswith(REASON_PREFIX)
    if is_ours and node.reason != case.facts.drain_reason:
        return keep_drained(case)
    why = f"{case.facts.name} is drained and has no jobs: {case.facts.cordoned}"
    if not case.facts.is_guarded or not pod.is_protected:
        return WorkerDecision(reason=why)
    return _do(why, ReleaseWorker(uid=pod.uid, resource_version=pod.resource_version))


def doubt(case: WorkerCase) -> WorkerDecision:
    """Wait: draw no conclusion from what is unknown."""
    return WorkerDecision(
        reason=f"the state of {case.facts.name} in Slurm is unknown",
        retry_after=case.policy.requeue_after,
    )


def drain(case: WorkerCase) -> WorkerDecision:
    """Drain it; it stays protected."""
    return _do(case.facts.goes, _drain(case))


def wait_for_jobs(case: WorkerCase) -> WorkerDecision:
    """Wait for its jobs."""
    return WorkerDecision(
        reason=f"{case.facts.name} is removed ({case.facts.goes}) when its jobs have ended",
        retry_after=case.policy.requeue_after,
    )


def recheck(case: WorkerCase) -> WorkerDecision:
    """Check again: one reading does not prove that it has no jobs."""
    return WorkerDecision(
        reason=f"{case.facts.name} is drained and seems to have no jobs; checking once more",
        retry_after=case.policy.requeue_after,
    )


def delete(case: WorkerCase) -> WorkerDecision:
    """Delete its pod."""
    pod = case.facts.pod
    if pod is None:
        return rest(case)
    why = case.facts.goes or "its containers have ended for good"
    return _do(f"{case.facts.name}: {why}", _delete(pod))


def wait_for_end(case: WorkerCase) -> WorkerDecision:
    """Wait until it has ended."""
    return WorkerDecision(reason=f"the pod of {case.facts.name} is being deleted")


def _keep(case: WorkerCase, reason: str) -> WorkerDecision:
    return WorkerDecision(actions=_protection(case), reason=f"{case.facts.name}: {reason}")


def _protection(case: WorkerCase) -> tuple[WorkerAction, ...]:
    pod = case.facts.pod
    is_safe = not case.facts.is_guarded or (pod is not None and pod.is_protected)
    if pod is None or is_safe or pod.stage is PodStage.OVER:
        return ()
    return (ProtectWorker(),)


def _drain(case: WorkerCase) -> DrainWorker:
    return DrainWorker(reason=case.facts.drain_reason)


def _delete(pod: WorkerPod) -> DeleteWorker:
    return DeleteWorker(uid=pod.uid, resource_version=pod.resource_version)


def _do(reason: str, *actions: WorkerAction) -> WorkerDecision:
    return WorkerDecision(actions=actions, reason=reason)
