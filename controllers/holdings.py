"""Which nodes Slurm holds for the pods that run there: what keeps strangers off while placeholders are brought back."""

from bridge.domain import lifecycle, restore
from bridge.domain.nodes import KubeNodeFacts, SlurmNodeFacts
from bridge.domain.pods import Pod
from bridge.domain.restore import Hold
from bridge.kube.cache import Cache
from bridge.runtime.placeholders import Placeholders


class Holdings:
    """Our placed pods by node, and the leader's picture of Slurm."""

    def __init__(self, pods: Cache[Pod], placeholders: Placeholders) -> None:
        self._on = pods.index(
            lambda pod: [node] if (node := pod.kube_node or pod.assigned_node) else []
        )
        self._placeholders = placeholders

    def hold(self, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None) -> Hold:
        """Say it of one node; what Slurm does not have it holds for nobody, whatever our last picture shows."""
        pods = self._on.get(kube_node.name) if kube_node else []
        cells = [lifecycle.cell(pod, self._placeholders.view(pod, pod.workload)) for pod in pods]
        if slurm_node is None:
            cells = [(row, lifecycle.Column.NONE) for row, _ in cells]
        return restore.hold(cells)
