"""What a Kubernetes node shows while Slurm has it: our taint, condition, and cordon mark."""

from collections.abc import Iterator
from dataclasses import replace

from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    NodeAction,
    RemoveCondition,
    RemoveTaint,
    SetCondition,
    SetTaint,
    Uncordon,
)
from slurmruntime.model.nodes import KubeNodeFacts, NodeCondition, SlurmNodeFacts, Taint
from slurmruntime.values import names


def condition(
    kube_node: KubeNodeFacts, slurm_node: SlurmNodeFacts, refusal: str | None
) -> NodeCondition:
    """Return the condition that shows the node's state in Slurm.

    Args:
        refusal: Slurm's error text against a change of the node; None if there is none.
    """
    slurm_condition = node_state.condition(slurm_node)
    if refusal and slurm_condition.status == "True":
        text = f"Slurm refuses a change of the node: {refusal}"
        return replace(slurm_condition, reason="ChangeRefused", message=text)
    missing = [p for p in node_spec.partitions(kube_node) if p not in slurm_node.partitions]
    if slurm_condition.status != "True" or not missing or not slurm_node.is_external:
        return slurm_condition
    text = (
        f"Slurm has no partition {', '.join(missing)} that takes nodes with a feature of that name"
    )
    if not slurm_node.partitions:
        return node_state.problem("NoPartition", text)
    return replace(slurm_condition, reason="PartitionMissing", message=text)


def set_condition(kube_node: KubeNodeFacts, desired: NodeCondition) -> Iterator[NodeAction]:
    """Set the condition unless the node already has it."""
    if kube_node.condition(desired.type) != desired:
        yield SetCondition(kube_node=kube_node.name, condition=desired)


def remove(kube_node: KubeNodeFacts | None) -> Iterator[NodeAction]:
    """Remove everything of ours from a Kubernetes node."""
    if kube_node is None:
        return
    yield from untaint(kube_node)
    yield from uncordon(kube_node)
    if kube_node.condition(names.SLURM_STATE_CONDITION) is not None:
        yield RemoveCondition(kube_node=kube_node.name)


def taint(kube_node: KubeNodeFacts, scheduler_name: str, effect: str) -> Iterator[NodeAction]:
    """Keep foreign pods off the node; without an effect, keep no taint."""
    if not effect:
        yield from untaint(kube_node)
        return
    wanted = Taint(key=names.MANAGED_NODE_TAINT, value=scheduler_name, effect=effect)
    if [one for one in kube_node.taints if one.key == wanted.key] != [wanted]:
        yield SetTaint(kube_node=kube_node.name, taint=wanted)


def untaint(kube_node: KubeNodeFacts) -> Iterator[NodeAction]:
    """Remove our taint, whatever its effect."""
    if any(one.key == names.MANAGED_NODE_TAINT for one in kube_node.taints):
        yield RemoveTaint(kube_node=kube_node.name)


def uncordon(kube_node: KubeNodeFacts) -> Iterator[NodeAction]:
    """Lift our own cordon."""
    if names.CORDON_ANNOTATION in kube_node.annotations:
        yield Uncordon(kube_node=kube_node.name)
