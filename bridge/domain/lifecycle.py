"""THE machine: what to do for one pod, given what Kubernetes says of it and what Slurm surely says of its placeholder.

Pure and level-triggered: no phase is stored, all is derived, and the same facts give the same decision. Rows are the
pod's situation, columns the placeholder's (`docs/lifecycle.md` is generated from the table).
"""

from bridge.domain.facts import Actor, Decision, Facts, Fit, Policy, Refusal
from bridge.domain.pods import Pod
from bridge.domain.view import Evidence, View

__all__ = [
    "Actor",
    "Decision",
    "Evidence",
    "Facts",
    "Fit",
    "Policy",
    "Refusal",
    "View",
    "actor",
    "decide",
]


def actor(pod: Pod) -> Actor:
    """Who owns this pod: the extender's leader while our gate is on, its deletion included; then the controllers'."""
    return Actor.EXTENDER if pod.is_gated else Actor.CONTROLLERS


def decide(facts: Facts, policy: Policy) -> Decision:
    """Say what to do next for this pod."""
    raise NotImplementedError
