"""The Kubernetes nodes as endings and registration look at them: by either name, and whether they are gone for good."""

from bridge.domain.ids import KubeNode, SlurmNode
from bridge.domain.model import nodes
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.kube.cache import Cache

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint that an administrator sets on a machine that is surely off: its containers run no more (KEP-2268)."""


class KubeNodes:
    """A view of the cache of nodes."""

    def __init__(self, cache: Cache[KubeNodeFacts]) -> None:
        self._cache = cache
        self._by_slurm_name = cache.index(lambda node: [nodes.slurm_name(node)])

    def behind(self, slurm_node: SlurmNode) -> KubeNode | None:
        """The Kubernetes node of that Slurm name; None if there is none."""
        found = self.facts(slurm_node)
        return found.name if found else None

    def slurm_node(self, kube_node: KubeNode) -> SlurmNode | None:
        """The Slurm name that is this node's; None if nobody knows it, or another node has that name."""
        node = self._cache.get(kube_node)
        name = nodes.slurm_name(node) if node is not None else None
        return name if name is not None and self.behind(name) == kube_node else None

    def facts(self, slurm_node: SlurmNode) -> KubeNodeFacts | None:
        """The same, whole."""
        return nodes.holder(self._by_slurm_name.get(slurm_node))

    def rivals(self, slurm_node: SlurmNode) -> list[KubeNodeFacts]:
        """Those that are to be in Slurm under a name that another one has."""
        claimants = self._by_slurm_name.get(slurm_node)
        held_by = nodes.holder(claimants)
        return [node for node in claimants if node is not held_by and nodes.is_wanted(node)]

    def is_gone(self, kube_node: KubeNode) -> bool:
        """The node was deleted, or declared out of service: nothing runs there any more."""
        node = self._cache.get(kube_node)
        if node is None:
            return self._cache.synced.is_set()
        return any(taint.key == OUT_OF_SERVICE for taint in node.taints)
