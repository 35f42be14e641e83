"""Register a node in Slurm that must not take jobs yet, or reserve one for the pods that run there.

An external node cannot be created drained, and slurmctld may start waiting jobs on it between its
creation and its drain. So one that must not take jobs yet is created *parked*: with our mark, but
without any feature that a NodeSet selects, and therefore in no partition of that kind. There it is
drained and given its features. Partitions do not follow that change (measured with 26.05):
slurmctld rebuilds them only when some node is created or deleted, so a spare node is created and
deleted. Once the node is drained and in its partitions, the feature that marks it as parked is
removed. If a process dies on the way, that feature remains, and the next one repeats the whole
sequence.

A placeholder of several nodes starts when all of them take jobs. While one of them is drained,
Slurm passes the placeholder over, whatever its priority, and gives the other nodes to jobs that
wait behind it. So nodes that wait for the same placeholder are released by one request, which
slurmctld carries out between two passes of its scheduler. Placeholders that share a node join their
nodes into one group.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Create,
    Drain,
    NodeAction,
    RenewPartitions,
    SetFeatures,
    Undrain,
)
from bridge.domain.nodes.decision import Case, Companion, NodePlan, RecordCase
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.named import SOON
from bridge.domain.nodes.state import REASON_PREFIX
from slurmruntime.model import nodes
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, SlurmNode

RESTORING = "placeholders of its pods are about to start there"
_LOST = "pods run here whose jobs Slurm has lost"


def parked_spec(wanted: SlurmNodeSpec, cluster: ClusterId) -> SlurmNodeSpec:
    """Return the description under which the node is created."""
    return replace(wanted, features=(nodes.cluster_feature(cluster), names.PARKED_FEATURE))


def leave(wanted: SlurmNodeSpec, cluster: ClusterId) -> Iterator[NodeAction]:
    """Yield the steps that put a drained node into its partitions."""
    features = (*wanted.features, names.PARKED_FEATURE)
    yield SetFeatures(slurm_node=wanted.name, features=features)
    yield RenewPartitions(
        spare=SlurmNodeSpec(
            # In no partition, and with our mark: one left behind is removed like any unwanted node.
            name=SlurmNode(f"{names.SPARE_NODE}-{cluster}"),
            address=wanted.address,
            cpus=1,
            memory_mib=1,
            features=(nodes.cluster_feature(cluster),),
        )
    )
    yield SetFeatures(slurm_node=wanted.name, features=wanted.features)


def create(case: Case) -> tuple[NodeAction, ...]:
    """Return the steps that create the node: parked and drained, if it must not take jobs yet."""
    why = _unheld(case.facts.hold) or case.standing.unavailable
    if not why:
        return (Create(spec=case.wanted),)
    cluster = case.settings.publishing.cluster
    return (
        Create(spec=parked_spec(case.wanted, cluster)),
        Drain(slurm_node=case.wanted.name, reason=REASON_PREFIX + why),
        *leave(case.wanted, cluster),
    )


def leave_again(case: RecordCase) -> NodePlan:
    """Repeat the way out of parking after a process died before the node was in its partitions.

    The node is drained first if it must not take jobs there.
    """
    slurm_node = case.slurm_node
    why = _LOST if case.facts.hold is not Hold.HELD else case.standing.unavailable
    actions = tuple(leave(case.wanted, case.settings.publishing.cluster))
    if why and not slurm_node.states & node_state.OUT_OF_SERVICE:
        actions = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + why), *actions)
    return NodePlan(actions=actions, reason="it is parked, perhaps without its partitions")


def keep_for_pods(case: RecordCase) -> NodePlan:
    """Reserve the node for its pods, whose placeholders Slurm has lost.

    No other job may start there before their placeholders do, whether the node is cordoned or not.
    """
    facts, slurm_node = case.facts, case.slurm_node
    actions: tuple[NodeAction, ...] = ()
    reason = "waiting for Slurm to report the placeholders of its pods"
    if _unheld(facts.hold):
        reason = _unheld(facts.hold)
        if "DRAIN" not in slurm_node.states and not case.standing.is_by_others:
            actions = (Drain(slurm_node=slurm_node.name, reason=REASON_PREFIX + reason),)
    elif facts.hold is Hold.RESTORING and facts.leader is not None:
        reason = f"{RESTORING}; it is released together with {facts.leader}"
    elif facts.hold is Hold.RESTORING:
        own = Companion(name=slurm_node.name, slurm_node=slurm_node, hold=facts.hold)
        actions, reason = release((own, *facts.companions))
    elif all(isinstance(action, Drain) for action in case.standing.to_slurm.actions):
        # A drain does no harm, whatever Slurm reports next; lifting one might.
        actions = case.standing.to_slurm.actions
    return NodePlan(actions=actions, reason=reason, again=SOON)


def _unheld(hold: Hold) -> str:
    is_unheld = hold in (Hold.MISSING, Hold.UNDECIDED)
    return _LOST if is_unheld else ""


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
