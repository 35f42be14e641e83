"""A rule about pods that failed with their machine: nobody is to hold that against them."""

from dataclasses import replace

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Cause, Excuse, Wait
from bridge.domain.lifecycle.decision import Decision
from bridge.domain.model.pods import Pod
from slurmruntime.values import names


def excused(pod: Pod, decision: Decision) -> Decision:
    """Have a pod that its machine took down excused, before anything else is done for it.

    Its kubelet reports it as failed when it is back. The Job controller looks at that a second
    later, and counts the pod unless it carries DisruptionTarget by then: so nothing is waited for,
    neither Slurm's word nor a view that includes our last write.
    """
    is_blamed = pod.condition(names.DISRUPTION_TARGET) is None and not pod.is_deleting
    if not is_blamed or not outcome.lost_with_node(pod):
        return decision
    what = "rejected it" if pod.reason == outcome.REJECTED else "crashed"
    excuse = Excuse(cause=Cause.NODE_FAIL, message=f"node {pod.kube_node} {what}")
    others = (action for action in decision.actions if not isinstance(action, Wait))
    return replace(decision, actions=(excuse, *others))
