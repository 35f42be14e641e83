"""Endings: handles a pod from when it has its node until nothing of it is left in Slurm."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from bridge.domain.gang.decide import OpenCase
from bridge.domain.lifecycle import released
from bridge.domain.lifecycle import table as lifecycle
from bridge.domain.lifecycle.decision import Facts
from bridge.domain.lifecycle.table import Column, Row
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.binding import Bindings
from bridge.domain.observation.view import Past
from bridge.reconcile.informers import Mirror
from bridge.reconcile.nodes import KubeNodes, bound_to
from bridge.reconcile.placeholders import Placeholders
from controllers.pods.breaker import Breaker
from controllers.pods.evidence import EvidenceLookup
from controllers.pods.restoring import Restorer
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.values.ids import KubeNode, PodUid, SlurmNode, WorkloadKey

_UNHELD = {
    (row, column) for row in (Row.PLACED, Row.BOUND) for column in (Column.NONE, Column.WAITING)
}


class Endings:
    """The facts of pods that have their nodes."""

    def __init__(
        self,
        kube_nodes: KubeNodes,
        *,
        placeholders: Placeholders,
        breaker: Breaker,
        lookup: EvidenceLookup,
        restorer: Restorer,
        bindings: Bindings,
        clock: Clock,
        enqueue_node: Callable[[KubeNode], None],
    ) -> None:
        """enqueue_node: called with a node when Slurm turns out not to hold it for a pod, and whenever that changes."""
        self._kube_nodes = kube_nodes
        self._placeholders = placeholders
        self._bindings = bindings
        self._clock = clock
        self._breaker = breaker
        self._lookup = lookup
        self._restorer = restorer
        self._enqueue_node = enqueue_node
        self._unheld: dict[PodUid, Column] = {}
        self._released: set[PodUid] = set()
        """Pods whose placeholder was once seen without their node; it is being read again."""
        self._nodes: tuple[SlurmJob | None, frozenset[SlurmNode]] = (None, frozenset())
        """The last placeholder with its nodes, cached."""

    def past(self, _pod: Pod) -> Past:
        """Return that no submit is in flight: the extender was done with the pod when it removed the gate."""
        return Past.HANDED_OVER

    def gather(self, case: OpenCase, *, key: WorkloadKey, now: datetime) -> Facts:
        """Gather the node that the placeholder holds, the pod's own node, and the fate of a lost placeholder.

        Seats and neighbours are the extender's.
        """
        pod, view = case.pod, case.view
        running = [job for job in view.live if job.phase is JobPhase.RUNNING and job.nodes]
        own = pod.kube_node or pod.assigned_node
        row, column = lifecycle.cell(pod, view)
        self._note_hold_change(pod, row, column)
        if (row, column) in _UNHELD and column is Column.NONE:
            view = replace(view, evidence=self._lookup.finding(pod).evidence)
        else:
            self._lookup.forget(pod.uid)
        released_node = self._given_up(pod, running[0], key) if running else None
        return Facts(
            pod=pod,
            view=view,
            now=now,
            since=case.since,
            kube_node=self._held(running[0], own) if running else None,
            released=released_node,
            unbindable_since=self._unbindable_since(pod, now) if row is Row.PLACED else None,
            evictions_held=row is Row.BOUND and not view.live and self._breaker.holds(),
            node_is_gone=pod.kube_node is not None and self._kube_nodes.is_gone(pod.kube_node),
            refusal=self._restorer.refusal(pod),
        )

    def forget_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._lookup.forget(uid)
        self._unheld.pop(uid, None)
        self._released.discard(uid)
        self._bindings.forget(uid)

    def _held(self, job: SlurmJob, own: KubeNode | None) -> KubeNode | None:
        """Return the pod's own node if the placeholder holds it, else the first node it holds."""
        slurm_node = self._kube_nodes.slurm_node(own) if own is not None else None
        if slurm_node is not None:
            # Cached, because this is called for each member of a gang, which may have thousands of nodes.
            if self._nodes[0] is not job:
                self._nodes = (job, frozenset(job.nodes))
            if slurm_node in self._nodes[1]:
                return own
        return self._kube_nodes.behind(job.nodes[0])

    def _unbindable_since(self, pod: Pod, now: datetime) -> datetime | None:
        since = self._bindings.failing_since(pod, self._clock.monotonic())
        return None if since is None else now - timedelta(seconds=self._clock.monotonic() - since)

    def _given_up(self, pod: Pod, job: SlurmJob, key: WorkloadKey) -> SlurmNode | None:
        """Return the pod's node if its placeholder no longer has it; None when that is seen for the first time.

        Then the placeholder is read again; until then, the view counts as stale and nothing is done.
        """
        node = released.node_of(pod, job) if job.is_named(pod.job_id, pod.sluid) else None
        if node is None:
            self._released.discard(pod.uid)
            return None
        if pod.uid in self._released:
            return node
        self._released.add(pod.uid)
        self._placeholders.changed(job.id)
        self._placeholders.wrote(key)
        return None

    def _note_hold_change(self, pod: Pod, row: Row, column: Column) -> None:
        before = self._unheld.pop(pod.uid, None)
        now = column if (row, column) in _UNHELD else None
        if now is not None:
            self._unheld[pod.uid] = now
        node = pod.kube_node or pod.assigned_node
        if before is not now and node is not None:
            self._enqueue_node(node)


def watch_bindings(mirror: Mirror, bindings: Bindings, clock: Clock) -> None:
    """Record each of our pods that gets bound."""

    def changed(old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and new.is_bound and not old.is_bound:
            bindings.bound(clock.monotonic())

    mirror.pods.subscribe(changed)


def wake_with_nodes(mirror: Mirror, wake: Callable[[PodUid], None]) -> None:
    """Queue the pods of a node when it is declared gone; the pods themselves may not change any more."""
    by_node = mirror.pods.index(bound_to)

    def changed(old: KubeNodeFacts | None, new: KubeNodeFacts | None) -> None:
        if old is not None and (new is None or old.taints != new.taints):
            for pod in by_node.get(old.name):
                wake(pod.uid)

    mirror.kube_nodes.subscribe(changed)
