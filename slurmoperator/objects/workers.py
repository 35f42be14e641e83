"""Identifies a worker of a NodeSet, by ordinal or by Kubernetes node, and names it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.crd.metadata import ObjectMetadata


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OnNode:
    """The worker on one Kubernetes node."""

    kube_node: str
    host: str
    """Its host name, which is also its name in Slurm."""


WorkerKey = int | OnNode
"""An ordinal if `scalingMode` is StatefulSet, a node if it is DaemonSet."""


def is_on_nodes(node_set: NodeSetObject) -> bool:
    """Check whether there is one worker on each matching Kubernetes node."""
    return node_set.spec.scaling_mode == "DaemonSet"


def age(metadata: ObjectMetadata) -> tuple[str, str]:
    """Return the sort key for NodeSets, oldest first."""
    return str(metadata.creation_timestamp), metadata.uid


def namesakes(node_sets: Iterable[NodeSetObject]) -> Mapping[str, str]:
    """Return the NodeSets whose node or partition names collide with those of an older one in the same Slurm.

    Maps their uids to the older one's name. Takes linear time: a prefix collides only with one that is longer by digits.
    """
    by_name: dict[str, str] = {}
    by_prefix: dict[str, str] = {}
    by_shorter: dict[str, str] = {}
    older_names: dict[str, str] = {}
    for node_set in sorted(node_sets, key=lambda node_set: age(node_set.metadata)):
        shorter = [] if is_on_nodes(node_set) else _shorter(node_set.node_prefix)
        older = by_name.get(node_set.slurm_name) or next(
            (by_prefix[prefix] for prefix in shorter if prefix in by_prefix),
            by_shorter.get(node_set.node_prefix) if shorter else None,
        )
        if older is not None:
            older_names[node_set.metadata.uid] = older
            continue
        name = node_set.metadata.name
        by_name[node_set.slurm_name] = name
        if shorter:
            by_prefix[node_set.node_prefix] = name
            by_shorter.update(dict.fromkeys(shorter, name))
    return older_names


def _shorter(prefix: str) -> list[str]:
    """Return a prefix, and the prefix with one trailing digit after the other removed."""
    prefixes = [prefix]
    while prefixes[-1][-1:].isdigit():
        prefixes.append(prefixes[-1][:-1])
    return prefixes


def pod_name(node_set: NodeSetObject, key: WorkerKey) -> str:
    """Return the name of a worker's pod."""
    which = key.kube_node if isinstance(key, OnNode) else node_set.numbered(key)
    return f"{node_set.metadata.name}-{which}"


def host_name(node_set: NodeSetObject, key: WorkerKey) -> str:
    """Return a worker's host name, which is also its name in Slurm."""
    if isinstance(key, OnNode):
        return key.host
    return f"{node_set.node_prefix}{node_set.numbered(key)}"


def volumes_of(key: WorkerKey) -> str:
    """Return the suffix of a worker's claim names; without `ordinalPadding`, which may change."""
    return key.host if isinstance(key, OnNode) else str(key)
