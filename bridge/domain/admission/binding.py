"""The extender's two decisions: which nodes a pod may go to, and whether it may be bound there.

This is the check behind the gate: a pod that reaches kube-scheduler without our assignment finds no
node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.model.pods import Pod
from slurmruntime.values import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pod as kube-scheduler shows it to an extender (from its cache, which may lag behind)."""

    full_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The nodes that are left, and the reason for each of the others."""

    nodes: tuple[str, ...]
    refused: Mapping[str, str]


# Constant texts: kube-scheduler patches the pod's condition whenever the message changes, and that
# wakes the pod again.
NOT_ASSIGNED = "Slurm has not assigned a node to this pod yet"
OTHER_NODE = "Slurm assigned another node to this pod"


def filter_nodes(pod: Candidate, nodes: Sequence[str]) -> FilterResult:
    """Keep exactly the node that Slurm chose; the request alone determines the answer."""
    assigned = pod.annotations.get(names.NODE_ANNOTATION)
    if not assigned or names.JOB_ID_LABEL not in pod.labels or names.GATE in pod.gates:
        return FilterResult((), dict.fromkeys(nodes, NOT_ASSIGNED))
    return FilterResult(
        tuple(node for node in nodes if node == assigned),
        {node: OTHER_NODE for node in nodes if node != assigned},
    )


def refuse_binding(pod: Pod | None, node: str) -> str:
    """Explain why this pod must not be bound to that node; "" if it may be.

    pod: None if there is no such pod, or it has another uid.
    """
    if pod is None:
        return "the pod is gone, or another pod has its name: nothing to bind"
    if pod.is_deleting:
        return f"pod {pod.full_name} is being deleted"
    if pod.is_gated or pod.job_id is None or pod.assigned_node is None:
        return f"pod {pod.full_name}: {NOT_ASSIGNED}"
    if pod.assigned_node != node:
        return f"pod {pod.full_name}: Slurm assigned node {pod.assigned_node}, not {node}"
    return ""
