"""Gathers what is known of one node: what is watched, Slurm's list, and the last reading of jobs.

Nothing is decided here, and Slurm is asked only for the jobs that name a node which leaves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.table import Column
from bridge.domain.model import demand
from bridge.domain.model.claims import inventory, profiles
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ResourceSlice
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import hold as node_hold
from bridge.domain.nodes import named, parking
from bridge.domain.nodes.decision import Companion, NodeFacts, NodeRefusal
from bridge.domain.nodes.hold import Backing, Hold
from bridge.domain.observation import lingering
from bridge.domain.observation.node_book import NodeBook, Unknown
from bridge.domain.observation.view import Evidence
from bridge.reconcile.informers import Mirror
from bridge.reconcile.nodes import KubeNodes, bound_to, taken_by
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.snapshot import Snapshot
from controllers.pods.breaker import Breaker
from controllers.pods.evidence import EvidenceLookup
from controllers.pods.restoring import Restorer
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import KubeNode, SlurmNode

_WATCHES_LAG_S = 2.0
"""How much later than we do the extender may see that a node leaves; until then it submits jobs
that name the node.
"""


class Slices:
    """The devices that drivers publish, by node."""

    def __init__(self, slices: Cache[ResourceSlice], device_profiles: Profiles) -> None:
        self._slices = slices
        self._on = slices.index(lambda slice_: [slice_.node] if slice_.node else [])
        self._profiles = device_profiles

    def counted(self, node: KubeNodeFacts) -> KubeNodeFacts:
        """Add a node's devices to its allocatable resources, under their profiles' names."""
        if not self._profiles:
            return node
        present = inventory.of_node(self._on.get(node.name), self._profiles)
        counts = {
            profiles.COUNTED + gres: count for gres, count in inventory.counts(present).items()
        }
        extended = {**node.allocatable.extended, **counts}
        return replace(node, allocatable=replace(node.allocatable, extended=extended))

    def on_change(self, callback: Callable[[KubeNode], None]) -> None:
        """Call back with a node whenever its slices change."""

        def changed(old: ResourceSlice | None, new: ResourceSlice | None) -> None:
            for slice_ in (old, new):
                if slice_ is not None and slice_.node:
                    callback(KubeNode(slice_.node))

        self._slices.subscribe(changed)


class Holdings:
    """Which nodes Slurm holds for the pods there, and which pods it holds nothing for.

    A hold keeps other jobs off while placeholders are restored, and while pods run without one.
    """

    def __init__(
        self,
        pods: Cache[Pod],
        placeholders: Placeholders,
        *,
        breaker: Breaker,
        lookup: EvidenceLookup,
        restorer: Restorer,
    ) -> None:
        self._on = pods.index(taken_by)
        self._placeholders = placeholders
        self._breaker = breaker
        self._lookup = lookup
        self._restorer = restorer

    def hold(self, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None) -> Hold:
        """Return whether Slurm holds a node for its pods.

        A node that is not in Slurm is not held, regardless of our last reading of jobs.
        """
        pods = self._on.get(kube_node.name) if kube_node else []
        is_in_slurm = slurm_node is not None
        return node_hold.of_node([self._backing(pod, is_in_slurm=is_in_slurm) for pod in pods])

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
        return node_hold.of_node([self._backing(pod, is_in_slurm=True)]) is Hold.UNDECIDED

    def _backing(self, pod: Pod, *, is_in_slurm: bool) -> Backing:
        row, column = lifecycle.cell(pod, self._placeholders.view(pod, pod.workload))
        evidence = Evidence.PENDING
        if not is_in_slurm:
            column = Column.NONE
        elif column is Column.NONE:
            evidence = self._lookup.finding(pod).evidence
        return Backing(
            pod=pod, cell=(row, column), evidence=evidence, refusal=self._restorer.refusal(pod)
        )


class Companions:
    """Which nodes are released together, and which of them releases all.

    The groups are computed once per reading of Slurm; only the first node of a group looks at all
    members.
    """

    def __init__(
        self,
        *,
        pods: Cache[Pod],
        kube_nodes: KubeNodes,
        book: NodeBook,
        placeholders: Placeholders,
        holdings: Holdings,
    ) -> None:
        self._members = pods.index(lambda pod: [] if pod.is_terminal else [pod.workload])
        self._kube_nodes = kube_nodes
        self._book = book
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

    def _hold(self, name: SlurmNode, slurm_node: SlurmNodeFacts | None) -> Hold:
        return self._holdings.hold(self._kube_nodes.facts(name), slurm_node)

    def _listed(self, name: SlurmNode) -> SlurmNodeFacts | None:
        listed = self._book.get(name)
        return None if isinstance(listed, Unknown) else listed

    def _group(self, name: SlurmNode) -> tuple[SlurmNode, ...]:
        if self._grouped is not self._placeholders.snapshot:
            self._grouped = self._placeholders.snapshot
            self._groups = parking.groups(self._shared())
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


class NodeGatherer:
    """Gathers the facts of one node at a time."""

    def __init__(
        self,
        mirror: Mirror,
        slices: Slices,
        *,
        placeholders: Placeholders,
        holdings: Holdings,
        slurm: SlurmClient,
        book: NodeBook,
        clock: Clock,
    ) -> None:
        """slurm: where jobs are read that name a node which leaves."""
        self._kube_nodes = KubeNodes(mirror.kube_nodes)
        self._slices = slices
        self._ours_on = mirror.pods.index(bound_to)
        self._tenants_of = mirror.pods.index(taken_by)
        self._daemons_on = mirror.bound.index(  # a DaemonSet's pod is never ours
            lambda pod: [pod.kube_node] if pod.is_of_the_node else []
        )
        self._placeholders = placeholders
        self._holdings = holdings
        self._companions = Companions(
            pods=mirror.pods,
            kube_nodes=self._kube_nodes,
            book=book,
            placeholders=placeholders,
            holdings=holdings,
        )
        self._slurm = slurm
        self._book = book
        self._clock = clock
        self._leaving_since: dict[SlurmNode, float] = {}
        self._idle_since: dict[SlurmNode, float] = {}
        """Since when we have seen no job there; monotonic."""
        self._gone: frozenset[SlurmNode] = frozenset()
        """Nodes that waiting placeholders name, but that are not in Slurm's last list."""

    async def gather(
        self,
        name: SlurmNode,
        slurm_node: SlurmNodeFacts | None,
        *,
        is_confirmed: bool,
        refusal: NodeRefusal | None,
        retry: timedelta | None,
    ) -> NodeFacts:
        """Return what is known of a node now.

        Args:
            slurm_node: its record in Slurm; None if there is none.
            is_confirmed: the record was read for this, and does not come from the list.
            refusal: the last one by Slurm, if it still counts.
            retry: how long it does.

        Raises:
            SlurmError: a job that names the node could not be read.
        """
        kube_node = self._kube_nodes.facts(name)
        daemons = self._daemons_on.get(kube_node.name) if kube_node else []
        tenants = self._tenants_of.get(kube_node.name) if kube_node else []
        ours = self._ours_on.get(kube_node.name) if kube_node else []
        unsettled = [pod for pod in ours if pod.has_our_finalizer]
        alive = [pod for pod in ours if not pod.is_terminal]
        hold = self._holdings.hold(kube_node, slurm_node)
        leader = self._companions.leader(name) if hold is Hold.RESTORING else name
        leads = hold is Hold.RESTORING and leader == name
        reason_at = slurm_node.reason_at if slurm_node is not None else None
        return NodeFacts(
            name=name,
            kube_node=self._slices.counted(kube_node) if kube_node else None,
            slurm_node=slurm_node,
            is_confirmed=is_confirmed,
            rivals=tuple(self._kube_nodes.rivals(name)),
            daemons=demand.total([pod.demand for pod in daemons if not pod.is_terminal]),
            is_given_up=bool(alive) and all(pod.is_deleting for pod in alive),
            is_crashed=bool(unsettled) and all(map(outcome.lost_with_node, unsettled)),
            named_by=await self._named_by(name, kube_node, slurm_node),
            hold=hold,
            has_tenants=any(map(lingering.may_run, tenants)),
            idle_for=self._idle_for(name, slurm_node),
            leader=leader if leader != name else None,
            companions=self._companions.of(name) if leads else (),
            refusal=refusal,
            retry=retry,
            reason_age=None if reason_at is None else self._clock.now() - reason_at,
        )

    def _idle_for(self, name: SlurmNode, slurm_node: SlurmNodeFacts | None) -> timedelta:
        if slurm_node is None or slurm_node.is_busy:
            self._idle_since.pop(name, None)
            return timedelta()
        now = self._clock.monotonic()
        return timedelta(seconds=now - self._idle_since.setdefault(name, now))

    def missing(self) -> frozenset[SlurmNode]:
        """Return the nodes that waiting placeholders name and Slurm's last list lacks."""
        snapshot = self._placeholders.snapshot
        mentioned = named.by_waiting(snapshot.jobs.values()) if snapshot else ()
        self._gone = frozenset(name for name in mentioned if self._book.get(name) is None)
        return self._gone

    async def _named_by(
        self, name: SlurmNode, kube_node: KubeNodeFacts | None, slurm_node: SlurmNodeFacts | None
    ) -> tuple[SlurmJob, ...] | None:
        is_leaving = name in self._gone if slurm_node is None else not nodes.is_wanted(kube_node)
        if not is_leaving:
            self._leaving_since.pop(name, None)
            return ()
        since = self._leaving_since.setdefault(name, self._clock.monotonic())
        return await self._placeholders_naming(name, since + _WATCHES_LAG_S)

    async def _placeholders_naming(
        self, slurm_node: SlurmNode, since: float
    ) -> tuple[SlurmJob, ...] | None:
        """Find live placeholders, waiting ones first, and no more than are rewritten at once.

        Those in the last reading are read again, because their node lists may have been rewritten.

        Return None if Slurm has not been read completely since that moment of the monotonic clock;
        jobs submitted later do not name the node.

        Raises:
            SlurmError: a job could not be read.
        """
        snapshot = self._placeholders.whole_snapshot(since=since)
        if snapshot is None:
            return None
        listed = [job for job in snapshot.jobs.values() if _names(job, slurm_node)]
        listed.sort(key=lambda job: job.phase is not JobPhase.WAITING)
        confirmed: list[SlurmJob] = []
        for job in listed[: named.MOST_AT_ONCE]:
            fresh = await jobs.verified(self._slurm, job.id, job.identity.key)
            if fresh and _names(fresh, slurm_node):
                confirmed.append(fresh)
            else:
                self._placeholders.changed(job.id)
        return tuple(confirmed) if confirmed or len(listed) <= named.MOST_AT_ONCE else None


def _names(job: SlurmJob, slurm_node: SlurmNode) -> bool:
    is_named = slurm_node in job.required_nodes or slurm_node in job.excluded_nodes
    return is_named and job.phase is not JobPhase.ENDED
