"""Where workers should be if each fitting Kubernetes node gets one: pure."""

from collections.abc import Iterable
from dataclasses import replace

from slurmoperator.nodesets.plan.look import NodeSetFacts, PodFacts
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.placing import NodeConstraints
from slurmoperator.objects.placing import placing as read_placing
from slurmoperator.objects.workers import OnNode, WorkerKey, age, is_on_nodes
from slurmoperator.rendering.node_sets.worker import worker_tolerations
from slurmoperator.workers import placing
from slurmoperator.workers.placing import NodePlan
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values.faults import Refusal


def node_plan(facts: NodeSetFacts, existing: Iterable[tuple[WorkerKey, PodFacts]]) -> NodePlan:
    """Return where workers should be, and which have to leave."""
    current = {key.kube_node: key.host for key, _ in existing if isinstance(key, OnNode)}
    try:
        constraints = constraints_of(facts.node_set)
    except Refusal:  # existing workers stay where they are
        return NodePlan(hosts=current, leaving={})
    free = [node for name, node in facts.kube_nodes.items() if name not in current]
    return placing.plan(
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
    for host in {placing.host_of(kube_node) for kube_node in kube_nodes}:
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
            owners |= dict.fromkeys(_fitting_hosts(facts, other), text)
    return owners


def _fitting_hosts(facts: NodeSetFacts, node_set: NodeSetObject) -> frozenset[str]:
    try:
        constraints = constraints_of(node_set)
    except Refusal:
        return frozenset()
    return placing.fitting_hosts(
        facts.kube_nodes.values(),
        selector=constraints.selector,
        tolerations=constraints.tolerations,
    )
