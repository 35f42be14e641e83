"""The cells of the table; the first line of each docstring is the cell's text in docs/nodeset-lifecycle.md."""

from dataclasses import dataclass

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
    """Nothing."""
    return WorkerDecision(reason=f"{case.facts.name} is as it should be")


def create(case: WorkerCase) -> WorkerDecision:
    """Create its pod."""
    return _do(f"{case.facts.name} has no pod", CreateWorker())


def begin(case: WorkerCase) -> WorkerDecision:
    """Protect it; wait for its slurmd."""
    return _kept(case, "its slurmd is to register")


def register(case: WorkerCase) -> WorkerDecision:
    """Protect it; wait: it may have jobs that Slurm does not know now. Never delete it."""
    said = _kept(case, "it is ready, and Slurm does not have it: its slurmd is to register")
    return WorkerDecision(
        actions=said.actions, reason=said.reason, doubt=True, retry_after=case.policy.look_again
    )


def serve(case: WorkerCase) -> WorkerDecision:
    """Protect it; drain it while Kubernetes has its node cordoned."""
    if case.facts.cordoned:
        return _do(case.facts.cordoned, *_protection(case), _drain(case))
    return _kept(case, "in service")


def keep_drained(case: WorkerCase) -> WorkerDecision:
    """Lift our drain once nothing speaks for it; leave anybody else's alone."""
    node, wanted = case.facts.seen.node, case.facts.drain_reason
    # One that was released stays so until it is surely busy: who has jobs is read only until it is released.
    stays = bool(case.facts.cordoned) and node is not None and not node.states & BUSY
    protection = () if stays else _protection(case)
    if node is None or not node.reason.startswith(REASON_PREFIX):
        return WorkerDecision(
            actions=protection, reason=f"{case.facts.name} is drained, and not by us"
        )
    if not wanted:
        return _do("nothing speaks for our drain any more", *protection, UndrainWorker())
    if node.reason != wanted:
        return _do(wanted, *protection, _drain(case))
    return WorkerDecision(actions=protection, reason=f"{case.facts.name} is drained: {wanted}")


def come_back(case: WorkerCase) -> WorkerDecision:
    """Lift our drain once it is ready; leave anybody else's alone."""
    node = case.facts.seen.node
    is_ours = node is not None and node.reason.startswith(REASON_PREFIX)
    if case.facts.drain_reason or not is_ours:
        return keep_drained(case)
    return _kept(case, "it stays drained until it is ready")


def come_back_or_release(case: WorkerCase) -> WorkerDecision:
    """While Kubernetes has its node cordoned, let evictions have it. Else lift our drain once it is ready."""
    return release(case) if case.facts.cordoned else come_back(case)


def release(case: WorkerCase) -> WorkerDecision:
    """While Kubernetes has its node cordoned, let evictions have it. Else lift our drain; leave anybody else's alone."""
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
    """Wait: nothing is concluded from what is not known."""
    return WorkerDecision(
        reason=f"it is not known how {case.facts.name} stands in Slurm",
        doubt=True,
        retry_after=case.policy.look_again,
    )


def drain(case: WorkerCase) -> WorkerDecision:
    """Drain it; it stays protected."""
    return _do(case.facts.goes, _drain(case))


def wait_for_jobs(case: WorkerCase) -> WorkerDecision:
    """Wait for its jobs."""
    return WorkerDecision(
        reason=f"{case.facts.name} goes ({case.facts.goes}) when its jobs have ended",
        retry_after=case.policy.look_again,
    )


def look_again(case: WorkerCase) -> WorkerDecision:
    """Look once more: one reading does not prove that it has no jobs."""
    return WorkerDecision(
        reason=f"{case.facts.name} is drained and seems to have no jobs",
        retry_after=case.policy.look_again,
    )


def delete(case: WorkerCase) -> WorkerDecision:
    """Delete its pod."""
    pod = case.facts.pod
    if pod is None:
        return rest(case)
    why = case.facts.goes or "its containers are gone for good"
    return _do(f"{case.facts.name}: {why}", _delete(pod))


def wait_for_end(case: WorkerCase) -> WorkerDecision:
    """Wait for its end."""
    return WorkerDecision(reason=f"the pod of {case.facts.name} is being deleted")


def _kept(case: WorkerCase, reason: str) -> WorkerDecision:
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
