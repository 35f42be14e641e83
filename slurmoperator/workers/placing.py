"""The Kubernetes nodes that should have a worker when each fitting node gets one.

As for a DaemonSet, with two differences. A cordoned node gets no new worker, or `kubectl drain` would never finish. And a worker that
has to leave is drained first and waits for its jobs, which is up to `table`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slurmruntime.model.affinity import Selector, Toleration, hard_taints, untolerated
from slurmruntime.model.nodes import KubeNodeFacts

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


def fitting_hosts(
    kube_nodes: Iterable[KubeNodeFacts], *, selector: Selector, tolerations: Iterable[Toleration]
) -> frozenset[str]:
    """Return the host names that workers on all fitting nodes would have."""
    tolerated = tuple(tolerations)
    return frozenset(
        host_of(kube_node) for kube_node in kube_nodes if _fits(kube_node, selector, tolerated)
    )


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
