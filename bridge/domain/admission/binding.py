"""The extender's two answers: which nodes a pod may go to, and whether it may be bound there.

The guard behind the gate: whatever reaches kube-scheduler without having been assigned by us finds no node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.domain import names
from bridge.domain.model.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pod as kube-scheduler shows it to an extender (from its cache: it may lag behind)."""

    full_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that are left, and for each other one the reason."""

    nodes: tuple[str, ...]
    refused: Mapping[str, str]


# Constant texts: kube-scheduler patches the pod's condition whenever the message changes, which wakes the pod again.
NOT_ASSIGNED = "Slurm has not assigned a node to this pod yet"
OTHER_NODE = "Slurm assigned another node to this pod"


def filter_nodes(pod: Candidate, nodes: Sequence[str]) -> Filtered:
    """Leave exactly the node that Slurm chose; answered from the request alone."""
    assigned = pod.annotations.get(names.NODE_ANNOTATION)
    if not assigned or names.JOB_ID_LABEL not in pod.labels or names.GATE in pod.gates:
        return Filtered((), dict.fromkeys(nodes, NOT_ASSIGNED))
    return Filtered(
        tuple(node for node in nodes if node == assigned),
        {node: OTHER_NODE for node in nodes if node != assigned},
    )


def refuse_binding(pod: Pod | None, node: str) -> str:
    """Say why this pod must not be bound to that node; "" if it may. None: no such pod, or another uid."""
    if pod is None:
        return "the pod is gone, or another one has its name: nothing to bind"
    if pod.is_deleting:
        return f"pod {pod.full_name} is being deleted"
    if pod.is_gated or pod.job_id is None or pod.assigned_node is None:
        return f"pod {pod.full_name}: {NOT_ASSIGNED}"
    if pod.assigned_node != node:
        return f"pod {pod.full_name}: Slurm assigned node {pod.assigned_node}, not {node}"
    return ""
