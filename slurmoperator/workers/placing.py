"""On which Kubernetes nodes there is to be a worker, if there is one on each that fits: as for a DaemonSet, with two differences.

A cordoned node gets no new worker, or `kubectl drain` would never come to its end. And whoever is to go is drained first, and
waits for its jobs: that is the table's.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slurmruntime.model.affinity import Selector, Toleration, hard_taints, untolerated
from slurmruntime.model.nodes import KubeNodeFacts

HOST_ANNOTATION: Final = "nodeset.slinky.slurm.net/hostname-override"
"""On a Kubernetes node: what its worker is called in Slurm, instead of the first part of the node's name."""
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """Where there are to be workers."""

    hosts: Mapping[str, str]
    """Kubernetes nodes that are to have one, and what it is called."""
    leaving: Mapping[str, str]
    """Kubernetes nodes whose worker is to go, and why."""
    faults: tuple[str, ...] = ()
    """Kubernetes nodes that fit and get none, and why."""


def plan(
    kube_nodes: Iterable[KubeNodeFacts],
    there: Mapping[str, str],
    *,
    selector: Selector,
    tolerations: Iterable[Toleration],
    taken: Callable[[str], str],
    unreadable: Collection[str] = (),
) -> NodePlan:
    """Return where there are to be workers.

    Args:
        kube_nodes: all of them that can be read.
        there: the nodes that have a worker, or are to get the one that was made for them, and what it is called.
        selector: of the workers.
        tolerations: of the workers.
        taken: says whose a name is already, such as `pod gpu-0`, or "".
        unreadable: the nodes that Kubernetes has and that cannot be read; what is missing here and there is gone.
    """
    tolerated, by_name = (
        tuple(tolerations),
        {str(kube_node.name): kube_node for kube_node in kube_nodes},
    )
    leaving = {
        name: why
        for name in there
        if (name in by_name or name not in unreadable)
        and (why := _why_not_there(name, by_name.get(name), selector, tolerated))
    }
    hosts = {name: host for name, host in there.items() if name not in leaving}
    faults: list[str] = []
    held = {host: name for name, host in there.items()}
    for name, node in sorted(by_name.items()):
        if name in there or not _fits(node, selector, tolerated):
            continue
        host = host_of(node)
        if fault := _fault(name, host, held, taken):
            faults.append(fault)
            continue
        hosts[name], held[host] = host, name
    return NodePlan(hosts=hosts, leaving=leaving, faults=tuple(faults))


def fitting_hosts(
    kube_nodes: Iterable[KubeNodeFacts], *, selector: Selector, tolerations: Iterable[Toleration]
) -> frozenset[str]:
    """Return what the workers would be called on all nodes that fit."""
    tolerated = tuple(tolerations)
    return frozenset(
        host_of(kube_node) for kube_node in kube_nodes if _fits(kube_node, selector, tolerated)
    )


def _fits(node: KubeNodeFacts, selector: Selector, tolerated: tuple[Toleration, ...]) -> bool:
    is_tolerated = not untolerated(hard_taints(node), tolerated)
    return not node.is_deleting and selector.selects(node) and is_tolerated


def host_of(node: KubeNodeFacts) -> str:
    """Return what a node's worker would be called."""
    return node.annotations.get(HOST_ANNOTATION) or str(node.name).partition(".")[0]


def _why_not_there(
    name: str,
    node: KubeNodeFacts | None,
    selector: Selector,
    tolerations: tuple[Toleration, ...],
) -> str:
    """Return why the worker of a node is to go; a cordon and a NoSchedule taint leave it where it is."""
    if node is None or node.is_deleting:
        return f"Kubernetes has no node {name} any more"
    if not selector.selects(node):
        return f"node {name} is not selected any more"
    evicting = [each for each in node.taints if each.effect == "NoExecute"]
    if taint := untolerated(evicting, tolerations):
        return f"node {name} has the taint {taint.key}"
    return ""


def _fault(name: str, host: str, held: Mapping[str, str], taken: Callable[[str], str]) -> str:
    advice = f"give the node another name in its annotation {HOST_ANNOTATION}"
    if not _HOST.fullmatch(host):
        return f"node {name}: expected a host name of at most 63 small letters, digits and hyphens, found {host[:80]!r}; {advice}"
    if other := held.get(host):
        return f"node {name}: its worker would be called {host}, as that of node {other}; {advice}"
    if other := taken(host):
        return f"node {name}: its worker would be called {host}, as {other}; {advice}"
    return ""
