"""Determines which nodes Slurm holds for the pods there, and which pods it holds nothing for.

A hold keeps other jobs off while placeholders are restored, and while pods run without one.
"""

from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Column
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import hold as node_hold
from bridge.domain.nodes.hold import Hold
from bridge.domain.observation.view import Evidence
from bridge.reconcile.nodes import taken_by
from bridge.reconcile.placeholders import Placeholders
from controllers.pods.losses import LossHandling
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values.ids import KubeNode


class Holdings:
    """Our placed pods by node, and the leader's view of their placeholders."""

    def __init__(self, pods: Cache[Pod], placeholders: Placeholders, losses: LossHandling) -> None:
        self._on = pods.index(taken_by)
        self._placeholders = placeholders
        self._breaker = losses.breaker
        self._lookup = losses.lookup
        self._restorer = losses.restorer

    def hold(self, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None) -> Hold:
        """Return whether Slurm holds a node for its pods.

        A node that is not in Slurm is not held, regardless of our last reading of jobs.
        """
        pods = self._on.get(kube_node.name) if kube_node else []
        is_in_slurm = slurm_node is not None
        return node_hold.hold(self._hold_for(pod, is_in_slurm=is_in_slurm) for pod in pods)

    def unbacked(self, kube_node: KubeNode) -> tuple[Pod, ...]:
        """Return the pods that keep running on a node without a placeholder until someone decides.

        Slurm would give their resources to other jobs.
        """
        bereft = self._breaker.bereft_on(kube_node)
        return tuple(pod for pod in bereft if not pod.is_deleting and self._stays(pod))

    def _stays(self, pod: Pod) -> bool:
        _, column = lifecycle.cell(pod, self._placeholders.view(pod, pod.workload))
        if column is Column.ENDED:
            return self._breaker.holds()
        return self._hold_for(pod, is_in_slurm=True) is Hold.UNDECIDED

    def _hold_for(self, pod: Pod, *, is_in_slurm: bool) -> Hold:
        row, column = lifecycle.cell(pod, self._placeholders.view(pod, pod.workload))
        evidence = Evidence.PENDING
        if not is_in_slurm:
            column = Column.NONE
        elif column is Column.NONE:
            evidence = self._lookup.finding(pod).evidence
        return node_hold.hold_for(pod, (row, column), evidence, self._restorer.refusal(pod))
