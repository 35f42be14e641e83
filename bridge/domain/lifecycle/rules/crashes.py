"""A rule about pods that failed with their machine: they are not to blame."""

from dataclasses import replace

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Cause, Excuse, Wait
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.model.pods import Pod
from slurmruntime.values import names


def excuse(pod: Pod, decision: Decision) -> Decision:
    """Excuse a pod that its machine took down, before anything else is done for it.

    Its kubelet reports it as failed when it is back. A second later the Job controller counts the
    pod, unless it carries DisruptionTarget by then. So this waits for nothing: neither for Slurm nor
    for a view that includes our last write.
    """
    is_blamed = pod.condition(names.DISRUPTION_TARGET) is None and not pod.is_deleting
    if not is_blamed or not outcome.lost_with_node(pod):
        return decision
    what = "rejected it" if pod.reason == outcome.REJECTED else "crashed"
    action = Excuse(cause=Cause.NODE_FAIL, message=f"node {pod.kube_node} {what}")
    others = (other for other in decision.actions if not isinstance(other, Wait))
    return replace(decision, actions=(action, *others))
