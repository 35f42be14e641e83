"""The node index: nodes by either name, whether they are gone for good, and pods by node."""

from bridge.domain.model.pods import BoundPod, Pod
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint set by an administrator on a machine that is certainly off: its containers no longer run
(KEP-2268).
"""


def bound_to(pod: Pod | BoundPod) -> list[KubeNode]:
    """Return the node a pod is bound to, as an index's keys."""
    return [pod.kube_node] if pod.kube_node else []


def taken_by(pod: Pod) -> list[KubeNode]:
    """Return the node where a pod of ours takes room, bound or only assigned, as an index's keys."""
    node = pod.kube_node or pod.assigned_node
    return [node] if node else []


class KubeNodes:
    """A view of the node cache."""

    def __init__(self, cache: Cache[KubeNodeFacts]) -> None:
        self._cache = cache
        self._by_slurm_name = cache.index(lambda node: [nodes.slurm_name(node)])

    def behind(self, slurm_node: SlurmNode) -> KubeNode | None:
        """Return the Kubernetes node with this Slurm name; None if there is none."""
        node = self.facts(slurm_node)
        return node.name if node else None

    def slurm_node(self, kube_node: KubeNode) -> SlurmNode | None:
        """Return this node's Slurm name; None if it is unknown, or another node holds it."""
        node = self._cache.get(kube_node)
        name = nodes.slurm_name(node) if node is not None else None
        return name if name is not None and self.behind(name) == kube_node else None

    def facts(self, slurm_node: SlurmNode) -> KubeNodeFacts | None:
        """Return the facts of the Kubernetes node with this Slurm name; None if there is none."""
        return nodes.holder(self._by_slurm_name.get(slurm_node))

    def topology(self, slurm_node: SlurmNode) -> str:
        """Return the node's place in Slurm's topology, as its annotation says; "" if it says none.

        The annotation counts, not Slurm's record: it is known at once and without a request. On a node with
        a slurmd, whose place is in Slurm's own configuration, only we read it.
        """
        node = self.facts(slurm_node)
        return node.annotations.get(names.TOPOLOGY_ANNOTATION, "") if node else ""

    def rivals(self, slurm_node: SlurmNode) -> list[KubeNodeFacts]:
        """Return the nodes that ask to be in Slurm under a name another node holds."""
        claimants = self._by_slurm_name.get(slurm_node)
        held_by = nodes.holder(claimants)
        return [node for node in claimants if node is not held_by and nodes.is_wanted(node)]

    def is_gone(self, kube_node: KubeNode) -> bool:
        """Check whether the node was deleted or declared out of service: nothing runs there now."""
        node = self._cache.get(kube_node)
        if node is None:
            return self._cache.synced.is_set()
        return any(taint.key == OUT_OF_SERVICE for taint in node.taints)
