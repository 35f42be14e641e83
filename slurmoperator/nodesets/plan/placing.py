"""The Kubernetes nodes of workers: those that should have one when each fitting node gets one, and the one that a numbered worker returns to.

The first is as for a DaemonSet, with two differences. A cordoned node gets no new worker, or `kubectl drain` would never finish. And a
worker that has to leave is drained first and waits for its jobs, which is up to `slurmoperator.workers.table`. Pure.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from slurmoperator.nodesets.plan.look import NodeSetFacts, PodFacts
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.placing import NodeConstraints
from slurmoperator.objects.placing import placing as read_placing
from slurmoperator.objects.workers import OnNode, WorkerKey, age, is_on_nodes
from slurmoperator.rendering.node_sets.worker import worker_tolerations
from slurmruntime.model.affinity import Selector, Toleration, hard_taints, untolerated
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.faults import Refusal

HOST_ANNOTATION: Final = "nodeset.slinky.slurm.net/hostname-override"
"""On a Kubernetes node: its worker's name in Slurm, instead of the first label of its own."""
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """Where workers should be."""

    hosts: Mapping[str, str]
    """The Kubernetes nodes that should have a worker, and its host name."""
    leaving: Mapping[str, str]
    """The Kubernetes nodes whose worker has to leave, and why."""
    faults: tuple[str, ...] = ()
    """Why fitting Kubernetes nodes get no worker."""


def node_plan(facts: NodeSetFacts, existing: Iterable[tuple[WorkerKey, PodFacts]]) -> NodePlan:
    """Return where workers should be, and which have to leave."""
    current = {key.kube_node: key.host for key, _ in existing if isinstance(key, OnNode)}
    try:
        constraints = constraints_of(facts.node_set)
    except Refusal:  # existing workers stay where they are
        return NodePlan(hosts=current, leaving={})
    free = [node for name, node in facts.kube_nodes.items() if name not in current]
    return plan(
        facts.kube_nodes.values(),
        current,
        selector=constraints.selector,
        tolerations=constraints.tolerations,
        owners=_host_owners(facts, free),
        unreadable=facts.unreadable_nodes,
    )


def constraints_of(node_set: NodeSetObject) -> NodeConstraints:
    """Return where its workers may run.

    Raises:
        Refusal: that cannot be read.
    """
    constraints = read_placing(node_set.spec.pod_spec)
    ours = read_placing({"tolerations": worker_tolerations(node_set)})
    return replace(constraints, tolerations=(*ours.tolerations, *constraints.tolerations))


def _host_owners(facts: NodeSetFacts, kube_nodes: Iterable[KubeNodeFacts]) -> dict[str, str]:
    """Return what owns the host names that workers on these nodes would have, if anything does.

    A pod owns its name. Beyond that the NodeSets decide, as other NodeSets' pods may not be in
    the cache yet: a name that ends in a number may be that of a future worker, and one that
    several NodeSets want for a Kubernetes node belongs to the oldest of them.
    """
    own = age(facts.node_set.metadata)
    others = [other for other in facts.others if other.metadata.deletion_timestamp is None]
    numbered = [other for other in others if not is_on_nodes(other)]
    owners: dict[str, str] = {}
    for host in {host_of(kube_node) for kube_node in kube_nodes}:
        for other in numbered:
            number = host.removeprefix(other.node_prefix)
            if number != host and number.isdecimal():
                owners[host] = f"the numbered workers of NodeSet {other.metadata.name}"
                break
        if pod := facts.hosts.get(host):
            owners[host] = f"pod {pod}"
    for other in reversed(others):  # the first of them is named
        if is_on_nodes(other) and age(other.metadata) < own:
            text = f"the older NodeSet {other.metadata.name} (let only one of them select a node)"
            owners |= dict.fromkeys(fitting_hosts(facts.kube_nodes.values(), other), text)
    return owners


def fitting_hosts(kube_nodes: Iterable[KubeNodeFacts], node_set: NodeSetObject) -> frozenset[str]:
    """Return the host names that a NodeSet's workers on all fitting nodes would have."""
    try:
        constraints = constraints_of(node_set)
    except Refusal:
        return frozenset()
    tolerated, selector = tuple(constraints.tolerations), constraints.selector
    return frozenset(
        host_of(kube_node) for kube_node in kube_nodes if _fits(kube_node, selector, tolerated)
    )


def plan(
    kube_nodes: Iterable[KubeNodeFacts],
    current: Mapping[str, str],
    *,
    selector: Selector,
    tolerations: Iterable[Toleration],
    owners: Mapping[str, str],
    unreadable: Collection[str] = (),
) -> NodePlan:
    """Return where workers with this selector and these tolerations should be, of all readable nodes.

    `current` are the nodes with a worker, or for which a pod was made already, and its host name. `owners` names what has a host name
    already, such as `pod gpu-0`. A node that is neither readable nor unreadable is gone.
    """
    tolerated = tuple(tolerations)
    by_name = {str(kube_node.name): kube_node for kube_node in kube_nodes}
    leaving = {
        name: why
        for name in current
        if (name in by_name or name not in unreadable)
        and (why := _why_leaving(name, by_name.get(name), selector, tolerated))
    }
    hosts = {name: host for name, host in current.items() if name not in leaving}
    faults: list[str] = []
    node_of_host = {host: name for name, host in current.items()}
    for name, node in sorted(by_name.items()):
        if name in current or not _fits(node, selector, tolerated):
            continue
        host = host_of(node)
        if fault := _host_fault(name, host, node_of_host, owners):
            faults.append(fault)
            continue
        hosts[name], node_of_host[host] = host, name
    return NodePlan(hosts=hosts, leaving=leaving, faults=tuple(faults))


def _fits(node: KubeNodeFacts, selector: Selector, tolerated: tuple[Toleration, ...]) -> bool:
    is_tolerated = not untolerated(hard_taints(node), tolerated)
    return not node.is_deleting and selector.selects(node) and is_tolerated


def host_of(node: KubeNodeFacts) -> str:
    """Return the host name of a node's worker."""
    return node.annotations.get(HOST_ANNOTATION) or str(node.name).partition(".")[0]


def _why_leaving(
    name: str, node: KubeNodeFacts | None, selector: Selector, tolerations: tuple[Toleration, ...]
) -> str:
    """Return why a node's worker has to leave, or ""; cordons and NoSchedule taints let it stay."""
    if node is None or node.is_deleting:
        return f"Kubernetes has no node {name} any more"
    if not selector.selects(node):
        return f"node {name} is not selected any more"
    evicting = [taint for taint in node.taints if taint.effect == "NoExecute"]
    if taint := untolerated(evicting, tolerations):
        return f"node {name} has the taint {taint.key}"
    return ""


def _host_fault(
    name: str, host: str, node_of_host: Mapping[str, str], owners: Mapping[str, str]
) -> str:
    advice = f"set another name in the node's annotation {HOST_ANNOTATION}"
    if not _HOST.fullmatch(host):
        return f"node {name}: expected a host name of at most 63 lower-case letters, digits and hyphens, found {host[:80]!r}; {advice}"
    if other := node_of_host.get(host):
        return f"node {name}: worker name {host} belongs to the worker of node {other}; {advice}"
    if owner := owners.get(host):
        return f"node {name}: worker name {host} belongs to {owner}; {advice}"
    return ""


def pins(
    before: Mapping[str, str],
    bound: Mapping[int, str],
    *,
    desired: Collection[int],
    nodes: Container[str],
    shares: bool,
) -> dict[str, str]:
    """Return the Kubernetes node of each desired worker by ordinal, as `status.ordinalToNode` has it, if its NodeSet pins (`pinToNode`).

    A worker's first node stays its own while Kubernetes has that node. A worker that is scaled in loses its node. So does one
    without a pod whose node another worker has taken: it would wait for ever. `bound` are the nodes of existing pods, `nodes`
    those that Kubernetes has; `shares` is whether several workers may be on one node.
    """
    holders = {} if shares else {node: ordinal for ordinal, node in bound.items()}
    by_ordinal = {}
    for ordinal in sorted(desired):
        node = before.get(str(ordinal), "")
        if not node or node not in nodes or holders.get(node, ordinal) != ordinal:
            node = bound.get(ordinal, "")
        if node:
            by_ordinal[str(ordinal)] = node
    return by_ordinal
