"""The nodes that both systems know: where a pod may go, and whether it fits by Kubernetes' accounting."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model import hybrid
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import NOBODY, Neighbours, Pod
from bridge.domain.nodes import vacating
from bridge.domain.request import candidates, fit
from bridge.domain.request.candidates import Pool
from bridge.domain.request.fit import KubeLimits
from bridge.escrow.questions import Questions
from bridge.reconcile.informers import Mirror
from bridge.reconcile.nodes import KubeNodes, bound_to, taken_by
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import nodes as slurm_nodes
from slurmclient.errors import SlurmError
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process.clock import Clock, pause
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode, SlurmNode

_POOL_LASTS_S = 10.0
"""Maximum age of Slurm's node list for a new submit; the fit check catches later changes of nodes."""
_DOUBTFUL_POOL_LASTS_S = 1.0
"""The same for a list that is empty, or lacks nodes of the previous one. At a reconfigure, slurmctld
forgets the features by which we know our nodes, until the controllers set them again."""
_FIRST_AGAIN_S = 1.0
_PAUSES = 4
"""Where nodes change all the time, a fifth of the time is spent on lists (one of two thousand nodes can
take two seconds), and as much on pairing the last list with Kubernetes' nodes."""
_LONGEST_UNPAIRED_S = 1.0
"""The controllers rely on us noticing within two seconds that a node leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How native jobs and pods share hybrid nodes."""

    rule: HybridRule
    questions: Questions | None = None
    """Knows when slurmctld's script last asked about any job; None: it never did."""


class BridgedNodes:
    """Nodes and their pods, from the informers' caches and Slurm's list."""

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        cluster: ClusterId,
        mirror: Mirror,
        placeholders: Placeholders,
        gpu_resources: Mapping[str, str],
        resources: Mapping[str, str],
        milli_per_cpu: int,
        sharing: Sharing,
        clock: Clock,
    ) -> None:
        """Start without a list of Slurm's nodes.

        Args:
            gpu_resources: extended resource → GRES name.
            resources: the same, and those that devices of resource claims count as.
            milli_per_cpu: Kubernetes millicores per Slurm CPU.
        """
        self._slurm = slurm
        self._cluster = cluster
        self._placeholders = placeholders
        self._kube_nodes = mirror.kube_nodes
        self._clock = clock
        self._bound_on = mirror.bound.index(bound_to)
        self._ours_on = mirror.pods.index(taken_by)
        self.by_name = KubeNodes(mirror.kube_nodes)
        self._gpu_resources = gpu_resources
        self._resources = resources
        self._milli_per_cpu = milli_per_cpu
        self._sharing = sharing
        self._listing = asyncio.Lock()
        self._edits = 0
        """Number of times that a node was added, removed or edited in Kubernetes."""
        self._listed: Sequence[SlurmNodeFacts] | None = None
        """Slurm's nodes as of the last list; None before the first."""
        self._listed_edits = 0
        self._list_again_at, self._list_until = 0.0, 0.0
        """When a new list is due if nodes were edited, and in any case."""
        self._pool = candidates.Pool(cluster_feature=nodes.cluster_feature(cluster))
        self._paired_edits = 0
        self._pair_again_at = 0.0
        self._records: Mapping[SlurmNode, SlurmNodeFacts] = {}
        """Bridged nodes as of the last list."""
        self._on_edited: Callable[[], None] = lambda: None
        mirror.kube_nodes.subscribe(self._edited)

    def on_edit(self, on_edited: Callable[[], None]) -> None:
        """Set the callback for when a node is added, removed, edited, or registered in Slurm."""
        self._on_edited = on_edited

    async def pool(self) -> Pool:
        """Return all bridged nodes; list Slurm's nodes if the last list is too old or a node has changed.

        Raises:
            SlurmError: Slurm's nodes could not be read.
        """
        async with self._listing:  # one list for all concurrent submits
            now = self._clock.monotonic()
            is_edited = self._edits != self._listed_edits and now >= self._list_again_at
            if self._listed is None or is_edited or now > self._list_until:
                await self._list(now)
            elif self._edits != self._paired_edits and now >= self._pair_again_at:
                self._pair(self._listed)
            return self._pool

    async def _list(self, began: float) -> None:
        edits, before = self._edits, self._records.keys()
        self._listed = await slurm_nodes.listing(self._slurm)
        self._pair(self._listed)
        now, current = self._clock.monotonic(), self._pool.nodes.keys()
        is_doubtful = not current or not current >= before
        self._list_until = now + (_DOUBTFUL_POOL_LASTS_S if is_doubtful else _POOL_LASTS_S)
        self._list_again_at = now + _PAUSES * (now - began)
        self._listed_edits = edits

    def _pair(self, listed: Sequence[SlurmNodeFacts]) -> None:
        began = self._clock.monotonic()
        self._pool = candidates.pool(self._kube_nodes.values(), listed, self._cluster)
        self._records = {name: node.slurm for name, node in self._pool.nodes.items()}
        now = self._clock.monotonic()
        self._pair_again_at = now + min(_PAUSES * (now - began), _LONGEST_UNPAIRED_S)
        self._paired_edits = self._edits

    def gres(self, slurm_node: SlurmNode) -> str | None:
        """Return the GRES of a node as of the last list; None if it was not in it."""
        record = self._records.get(slurm_node)
        return record.gres if record else None

    async def list_first(self, stop: asyncio.Event) -> None:
        """List Slurm's nodes once: a placeholder from before may start before the first submit."""
        while self._listed is None and not stop.is_set():
            with contextlib.suppress(SlurmError):
                await self.ensure_listed()
            await pause(_FIRST_AGAIN_S, stop)

    async def ensure_listed(self) -> None:
        """List Slurm's nodes if no submit has done so yet: binding needs the list.

        Raises SlurmError if they could not be read.
        """
        if self._listed is None:
            await self.pool()

    def slurm_node(self, kube_node: KubeNode) -> SlurmNode | None:
        """Return the Slurm name of a Kubernetes node; None if there is no such node."""
        facts = self._kube_nodes.get(kube_node)
        return nodes.slurm_name(facts) if facts else None

    def check(
        self, pod: Pod, job: SlurmJob, kube_node: KubeNode, beside: Neighbours = NOBODY
    ) -> fit.FitResult:
        """Check whether the node can take the pod, beside others that are about to get it.

        It must fit by Kubernetes' own accounting; the kubelet's choice of devices and cores must not
        be able to collide with Slurm's; and nothing that Slurm gave its job may still be in use.
        """
        bound = self._bound_on.get(kube_node)
        ours = [other for other in self._ours_on.get(kube_node) if other.uid != pod.uid]
        outlived = {other.uid for other in ours if self._is_outlived(other)}
        busy = (
            Fit.OUTLIVED
            if any(other.uid in outlived and not other.is_deleting for other in ours)
            else Fit.TERMINATING
        )
        tenants = fit.tenants(bound, ours, outlived=outlived)
        together = fit.Tenant(demand=beside.demand, host_ports=beside.host_ports)
        facts = self._kube_nodes.get(kube_node)
        result = fit.check(pod, facts, (*tenants, together))
        if result.fit is Fit.TERMINATING:
            return fit.FitResult(busy, result.text)
        if result.fit is not Fit.FITS or facts is None:
            return result
        takes_turns = self._sharing.rule is HybridRule.ALTERNATE and nodes.is_hybrid(facts)
        if takes_turns and self._listed is None:
            return fit.FitResult(Fit.UNHELD, "Slurm's nodes have not been listed yet")
        gres = self.gres(nodes.slurm_name(facts))
        limits = KubeLimits(
            counted=self._gpu_resources,
            hybrid=self._sharing.rule,
            has_whole_node=takes_turns and hybrid.has_whole_nodes(job, self._records),
        )
        if unsafe := limits.why_unsafe(pod.demand, facts, gres):
            return fit.FitResult(Fit.MISFIT, unsafe)
        questions = self._sharing.questions
        asked_at = questions.asked_at if questions else None
        unheld = hybrid.why_unheld(
            facts, self._sharing.rule, asked_at=asked_at, started_at=job.started_at
        )
        if unheld:
            return fit.FitResult(Fit.UNHELD, unheld)
        present = [other for other in ours if not other.is_terminal]
        leaving = outlived | {other.uid for other in present if other.is_deleting}
        overlap = vacating.overlap(
            job,
            facts,
            leaving=[other for other in present if other.uid in leaving],
            staying=[other for other in present if other.uid not in leaving],
            foreign=bound,
            beside=beside,
            milli_per_cpu=self._milli_per_cpu,
        )
        return fit.FitResult(busy, overlap) if overlap else result

    def shortfall(self, pod: Pod, job: SlurmJob, slot: int) -> str:
        """Return in which resources Slurm granted a slot less than the pod takes; "" if in none."""
        return fit.shortfall(pod, job, slot, self._resources, self._milli_per_cpu)

    def _is_outlived(self, pod: Pod) -> bool:
        """Check whether the pod's placeholder has ended.

        If so, Slurm may give its resources to others, and the controllers will evict the pod.
        """
        is_active = pod.is_bound and not pod.is_terminal
        job = self._placeholders.job(pod.job_id) if is_active and pod.job_id else None
        return job is not None and job.identity.key == pod.workload and job.phase is JobPhase.ENDED

    def _edited(self, old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> None:
        if _relevant_facts(old) != _relevant_facts(new):
            self._edits += 1
            self._on_edited()


def _relevant_facts(node: KubeNodeFacts | None) -> tuple[object, ...] | None:
    """Return the fields of a node that the pool depends on; the heartbeat is none of them.

    The condition shows when a node has been registered in Slurm.
    """
    if node is None:
        return None
    condition = node.condition(names.SLURM_STATE_CONDITION)
    state = (condition.status, condition.reason) if condition else None
    return (node.labels, node.taints, node.allocatable, state)
