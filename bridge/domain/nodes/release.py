"""Decide when Slurm's hold on a node is lifted: for all nodes of a placeholder at once.

A placeholder of several nodes starts when all of them take jobs. While one of them is drained,
Slurm passes the placeholder over, whatever its priority, and gives the other nodes to jobs that
wait behind it. So nodes that wait for the same placeholder are released by one request, which
slurmctld carries out between two passes of its scheduler. Placeholders that share a node join their
nodes into one group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import NodeAction, Undrain
from bridge.domain.nodes.hold import Hold
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode

RESTORING = "placeholders of its pods are about to start there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A node that has to be released together with others."""

    name: SlurmNode
    slurm_node: SlurmNodeFacts | None
    """None if Slurm has no such node, or it is not known yet."""
    hold: Hold


def groups(shared: Iterable[Iterable[SlurmNode]]) -> Mapping[SlurmNode, tuple[SlurmNode, ...]]:
    """Return for each node the nodes that are released together with it, itself included.

    Each group is in the order of names. A node that is alone is left out.

    Args:
        shared: for each waiting placeholder, the nodes of its pods.
    """
    above: dict[SlurmNode, SlurmNode] = {}

    def top(node: SlurmNode) -> SlurmNode:
        while above.setdefault(node, node) != node:
            above[node] = node = above[above[node]]
        return node

    for placeholder in shared:
        members = sorted({*placeholder})
        for one, other in pairwise(members):
            above[top(other)] = top(one)
    by_top: dict[SlurmNode, list[SlurmNode]] = {}
    for node in sorted(above):
        by_top.setdefault(top(node), []).append(node)
    return {node: tuple(group) for group in by_top.values() for node in group}


def release(group: Iterable[Companion]) -> tuple[tuple[NodeAction, ...], str]:
    """Return the actions that release a group, if all of it is ready, and the reason."""
    drained: list[SlurmNode] = []
    for node in group:
        if why := _not_ready(node):
            return (), f"placeholders wait for node {node.name}: {why}"
        if node.slurm_node is not None and "DRAIN" in node.slurm_node.states:
            drained.append(node.name)
    return ((Undrain(slurm_nodes=tuple(drained)),) if drained else ()), RESTORING


def _not_ready(node: Companion) -> str:
    """Explain why no job may or can start there; "" if the node can be released."""
    slurm_node = node.slurm_node
    if slurm_node is None:
        return "Slurm does not have it yet"
    if nodes.is_parked(slurm_node):
        return "it is not in its partitions yet"
    if node_state.is_by_others(slurm_node):
        return "it was taken out of service in Slurm"
    if node.hold in (Hold.MISSING, Hold.UNSURE):
        return "not all placeholders of its pods wait in Slurm yet"
    if node.hold is Hold.HELD and "DRAIN" in slurm_node.states:
        return f"it is drained ({slurm_node.reason})"
    return ""
