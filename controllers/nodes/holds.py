"""Which nodes Slurm holds for the pods that run there.

Keeps other jobs off while placeholders are restored.
"""

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Column
from bridge.domain.model.nodes import KubeNodeFacts, SlurmNodeFacts
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import hold as node_hold
from bridge.domain.nodes.hold import Hold
from bridge.domain.observation.view import Evidence
from bridge.kube.cache import Cache
from bridge.reconcile.nodes import taken_by
from bridge.reconcile.placeholders import Placeholders
from controllers.pods.evidence import Inquiry
from controllers.pods.restoring import Restorer


class Holdings:
    """Our placed pods by node, and the leader's view of their placeholders."""

    def __init__(
        self, pods: Cache[Pod], placeholders: Placeholders, inquiry: Inquiry, restorer: Restorer
    ) -> None:
        self._on = pods.index(taken_by)
        self._placeholders = placeholders
        self._inquiry = inquiry
        self._restorer = restorer

    def hold(self, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None) -> Hold:
        """Return whether Slurm holds a node for its pods.

        A node that is not in Slurm is held for nobody, whatever our last reading shows.
        """
        pods = self._on.get(kube_node.name) if kube_node else []
        is_in_slurm = slurm_node is not None
        return node_hold.hold(self._hold_for(pod, is_in_slurm=is_in_slurm) for pod in pods)

    def _hold_for(self, pod: Pod, *, is_in_slurm: bool) -> Hold:
        row, column = lifecycle.cell(pod, self._placeholders.view(pod, pod.workload))
        evidence = Evidence.PENDING
        if not is_in_slurm:
            column = Column.NONE
        elif column is Column.NONE:
            evidence = self._inquiry.finding(pod).evidence
        return node_hold.hold_for(pod, (row, column), evidence, self._restorer.refusal(pod))
