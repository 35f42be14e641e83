"""Which worker of a NodeSet: the one with a number, or the one on a Kubernetes node; and what it is called."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.crd.metadata import ObjectMetadata


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OnNode:
    """The worker on one Kubernetes node."""

    kube_node: str
    host: str
    """Its host name, and its name in Slurm."""


WorkerKey = int | OnNode
"""A number if `scalingMode` is StatefulSet, a node if it is DaemonSet."""


def is_on_nodes(node_set: NodeSetObject) -> bool:
    """Check whether there is one worker on each Kubernetes node that fits."""
    return node_set.spec.scaling_mode == "DaemonSet"


def age(metadata: ObjectMetadata) -> tuple[str, str]:
    """Return what sorts NodeSets, the oldest first."""
    return str(metadata.creation_timestamp), metadata.uid


def namesakes(node_sets: Iterable[NodeSetObject]) -> Mapping[str, str]:
    """Return the NodeSets whose nodes, or whose partition, would have names of an older one of the same Slurm.

    Their uids, with the older one's name. It takes time in proportion to how many there are: a prefix collides with one that is
    longer by digits only.
    """
    by_name: dict[str, str] = {}
    by_prefix: dict[str, str] = {}
    by_shorter: dict[str, str] = {}
    found: dict[str, str] = {}
    for each in sorted(node_sets, key=lambda one: age(one.metadata)):
        shorter = [] if is_on_nodes(each) else _shorter(each.node_prefix)
        older = by_name.get(each.slurm_name) or next(
            (by_prefix[prefix] for prefix in shorter if prefix in by_prefix),
            by_shorter.get(each.node_prefix) if shorter else None,
        )
        if older is not None:
            found[each.metadata.uid] = older
            continue
        name = each.metadata.name
        by_name[each.slurm_name] = name
        if shorter:
            by_prefix[each.node_prefix] = name
            by_shorter.update(dict.fromkeys(shorter, name))
    return found


def _shorter(prefix: str) -> list[str]:
    """Return a prefix, and it without one digit after the other at its end."""
    found = [prefix]
    while found[-1][-1:].isdigit():
        found.append(found[-1][:-1])
    return found


def pod_name(node_set: NodeSetObject, key: WorkerKey) -> str:
    """Return the name of its pod."""
    which = key.kube_node if isinstance(key, OnNode) else node_set.numbered(key)
    return f"{node_set.metadata.name}-{which}"


def host_name(node_set: NodeSetObject, key: WorkerKey) -> str:
    """Return its host name, which is its name in Slurm."""
    if isinstance(key, OnNode):
        return key.host
    return f"{node_set.node_prefix}{node_set.numbered(key)}"


def volumes_of(key: WorkerKey) -> str:
    """Return what the names of its claims end with; `ordinalPadding` may change, so it is no part of it."""
    return key.host if isinstance(key, OnNode) else str(key)
