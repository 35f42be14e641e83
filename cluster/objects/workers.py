"""Which worker of a NodeSet: the one with a number, or the one on a Kubernetes node; and what it is called."""

from dataclasses import dataclass

from cluster.objects.nodeset import NodeSetObject


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
