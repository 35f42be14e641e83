"""Determines which nodes are released together, and which of them releases all.

The groups are computed once per reading of Slurm; only the first node of a group looks at all
members.
"""

from collections.abc import Iterator, Mapping

from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import release
from bridge.domain.nodes.book import Unknown
from bridge.domain.nodes.hold import Hold
from bridge.domain.nodes.release import Companion
from bridge.reconcile.nodes import KubeNodes, taken_by
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm.snapshot import Snapshot
from controllers.nodes.holds import Holdings
from controllers.nodes.slurm import SlurmNodes
from slurmruntime.kube.cache import Cache
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode


class Companions:
    """The groups of nodes that wait for the same placeholders."""

    def __init__(
        self,
        *,
        pods: Cache[Pod],
        kube_nodes: KubeNodes,
        slurm_nodes: SlurmNodes,
        placeholders: Placeholders,
        holdings: Holdings,
    ) -> None:
        self._members = pods.index(lambda pod: [] if pod.is_terminal else [pod.workload])
        self._kube_nodes = kube_nodes
        self._slurm_nodes = slurm_nodes
        self._placeholders = placeholders
        self._holdings = holdings
        self._grouped: Snapshot | None = None
        self._groups: Mapping[SlurmNode, tuple[SlurmNode, ...]] = {}

    def leader(self, name: SlurmNode) -> SlurmNode:
        """Return the node that releases the whole group: the first that waits for placeholders."""
        listed = ((member, self._listed(member)) for member in self._group(name))
        waiting = (
            member for member, facts in listed if self._hold(member, facts) is Hold.RESTORING
        )
        return next(waiting, name)

    def of(self, name: SlurmNode) -> tuple[Companion, ...]:
        """Return the other nodes of its group, as last read."""
        others = [(other, self._listed(other)) for other in self._group(name) if other != name]
        return tuple(
            Companion(name=other, slurm_node=slurm_node, hold=self._hold(other, slurm_node))
            for other, slurm_node in others
        )

    async def read(self, name: SlurmNode) -> None:
        """Read the other nodes of its group from Slurm now.

        Raises:
            SlurmError: one of them could not be read.
        """
        for other in self._group(name):
            if other != name:
                await self._slurm_nodes.read(other)

    def _hold(self, name: SlurmNode, slurm_node: SlurmNodeFacts | None) -> Hold:
        return self._holdings.hold(self._kube_nodes.facts(name), slurm_node)

    def _listed(self, name: SlurmNode) -> SlurmNodeFacts | None:
        listed = self._slurm_nodes.get(name)
        return None if isinstance(listed, Unknown) else listed

    def _group(self, name: SlurmNode) -> tuple[SlurmNode, ...]:
        if self._grouped is not self._placeholders.snapshot:
            self._grouped = self._placeholders.snapshot
            self._groups = release.groups(self._shared())
        return self._groups.get(name, (name,))

    def _shared(self) -> Iterator[set[SlurmNode]]:
        """Yield, for each restored placeholder that is waiting, the nodes of its pods."""
        for job in self._grouped.jobs.values() if self._grouped else ():
            if job.phase is JobPhase.WAITING and job.identity.restores:
                pods = self._members.get(job.identity.key)
                taken = {kube_node for pod in pods for kube_node in taken_by(pod)}
                yield {
                    name for kube_node in taken if (name := self._kube_nodes.slurm_node(kube_node))
                }
