"""Rules about grace periods: none keeps a node from Slurm for longer than the cap.

Slurm frees a node the moment a job ends, and the next job there waits for the containers that still
run. The API server bounds neither a pod's own grace period nor a DELETE's, but lets both be
shortened.
"""

from dataclasses import replace
from datetime import timedelta

from bridge.domain.caps import SECTION
from bridge.domain.lifecycle.actions import Evict, Shorten
from bridge.domain.lifecycle.decision import Deadlines, Decision
from bridge.domain.lifecycle.rules.answers import do
from bridge.domain.lifecycle.rules.cases import Case
from bridge.domain.model.pods import Pod


def usable(case: Case) -> timedelta:
    """Return how long the pod's containers may take to stop."""
    asked_s = max(case.pod.grace_s, case.pod.deletion_grace_s)
    return timedelta(seconds=min(asked_s, case.policy.caps.grace_s))


def shorten(case: Case) -> Decision | None:
    """Shorten the grace period of a deleted pod that no longer has a right to its node.

    Return None if it is short enough already.
    """
    pod, most_s = case.pod, case.policy.caps.grace_s
    if not pod.is_deleting or pod.deletion_grace_s <= most_s:
        return None
    text = (
        f"its grace period of {pod.deletion_grace_s} s would keep a node that is Slurm's again: "
        f"shortened to {most_s} s (setting {SECTION}.grace_s)"
    )
    return do(text, Shorten(grace_s=most_s, message=text))


def limit_grace(pod: Pod, decision: Decision, policy: Deadlines) -> Decision:
    """Limit the grace period of an eviction to the cap, whatever the pod asks for."""
    most_s = policy.caps.grace_s
    if pod.grace_s <= most_s:
        return decision
    actions = (
        replace(action, grace_s=most_s) if isinstance(action, Evict) else action
        for action in decision.actions
    )
    return replace(decision, actions=tuple(actions))
