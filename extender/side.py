"""Placement: how the elected leader gets nodes for gated pods.

It is responsible for a pod from its creation until the patch that removes our gate, or its
deletion.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bridge.domain.gang.decide import OpenCase
from bridge.domain.lifecycle.actions import Cause
from bridge.domain.lifecycle.decision import Facts
from bridge.domain.lifecycle.rules import waiting
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.binding import BindFailures
from bridge.domain.observation.view import Past
from bridge.domain.workloads import claims, membership
from bridge.domain.workloads.membership import Membership
from bridge.reconcile.placeholders import Placeholders
from extender.nodes import BridgedNodes
from extender.owners import Owners
from extender.submitting import Submitter
from slurmruntime.leading.lease import Accession
from slurmruntime.model.objects import KubeObject
from slurmruntime.process.clock import Clock
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, WorkloadKey, alone_key

_HANDOVER = timedelta(seconds=2)
"""A pod created up to this long after we began to lead may have been handled by our predecessor:
clocks differ, and watches lag.
"""


class Workloads:
    """Which workloads gated pods belong to, by their owners; who may join one, by policy."""

    def __init__(self, owners: Owners, submitter: Submitter, placeholders: Placeholders) -> None:
        self._owners = owners
        self._submitter = submitter
        self._placeholders = placeholders

    def membership(self, pod: Pod) -> Membership | None:
        """Return the workload of a gated pod if it can be determined without reading owners."""
        if claims.needs_owners(pod) or claims.is_declared(pod):
            return None
        return claims.of(pod, ())

    async def resolve(self, pod: Pod) -> Membership:
        """Resolve the workload of a gated pod; a pod with a placeholder of its own keeps it."""
        if any(
            job.phase is not JobPhase.ENDED for job in self._placeholders.of(alone_key(pod.uid))
        ):
            return membership.alone(pod)
        return await self._owners.membership(pod)

    async def declared(self, member: Membership) -> KubeObject | None:
        """Read the object that declares the size of the group."""
        return await self._owners.declared(member)

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        """Check with the policy whether a pod may join a placeholder that was submitted without it."""
        return await self._submitter.admits(pod, job)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a workload that has been placed or is gone."""
        self._submitter.forget(key)


class Placement:
    """The facts of pods that wait for a node."""

    def __init__(
        self,
        *,
        bridged: BridgedNodes,
        submitter: Submitter,
        placeholders: Placeholders,
        accession: Accession,
        clock: Clock,
        wake: Callable[[PodUid], None],
        on_freed: Callable[[], None] | None = None,
    ) -> None:
        """on_freed: called whenever a pod has ended."""
        self._bridged = bridged
        self._submitter = submitter
        self._placeholders = placeholders
        self._accession = accession
        self._leads_since = clock.now().astimezone(UTC)
        self._unbindable = BindFailures()
        self._clock = clock
        self._on_freed = on_freed
        self._wake = wake
        self._await_nodes: set[PodUid] = set()
        """Pods that might start once nodes change."""
        self._nodes_edited_at: datetime | None = None
        bridged.on_edit(self._nodes_edited)

    def past(self, pod: Pod) -> Past:
        """Return whether a predecessor may have a submit for this pod in flight."""
        if pod.created_at > self._leads_since + _HANDOVER:
            return Past.NOTHING
        is_orderly = self._accession is Accession.ORDERLY
        return Past.HANDED_OVER if is_orderly else Past.IN_FLIGHT

    def gather(self, case: OpenCase, *, key: WorkloadKey, now: datetime) -> Facts:
        """Gather whether the pod fits on the node that Slurm chose, if any, and whether Slurm granted enough."""
        pod, view, seat = case.pod, case.view, case.seat
        running = [job for job in view.live if job.phase is JobPhase.RUNNING and job.nodes]
        slurm_node = seat.node if seat else running[0].nodes[0] if running else None
        kube_node = self._bridged.by_name.behind(slurm_node) if slurm_node else None
        answer = self._bridged.check(pod, running[0], kube_node, case.beside) if kube_node else None
        facts = Facts(
            pod=pod,
            view=view,
            now=now,
            since=case.since,
            kube_node=kube_node,
            fit=answer.fit if answer else None,
            fit_text=answer.text if answer else "",
            shortfall=self._bridged.shortfall(pod, running[0], seat.slot if seat else 0)
            if running
            else "",
            refusal=self._submitter.refusal(key),
            bind_failures=self._unbindable.lately(pod.owner.uid, now) if pod.owner else (),
            nodes_changed_at=self._nodes_edited_at,
        )
        if waiting.awaits_nodes(facts):
            self._await_nodes.add(pod.uid)
        else:
            self._await_nodes.discard(pod.uid)
        return facts

    def forget_pod(self, uid: PodUid) -> None:
        """Forget a pod that has been placed or is gone."""
        self._await_nodes.discard(uid)

    def _nodes_edited(self) -> None:
        self._nodes_edited_at = self._placeholders.now()
        for uid in self._await_nodes:
            self._wake(uid)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Retry after an edit; note that a pod ended (jobs may start) or could not be bound."""
        if old and new and _request_annotations(old) != _request_annotations(new):
            self._submitter.retry(new.uid)
        if old and old.is_bound and not old.is_terminal and (new is None or new.is_terminal):
            self._placeholders.stir()
            if self._on_freed is not None:
                self._on_freed()
        if new and _is_unbound(new) and not (old and _is_unbound(old)):
            self._note_unbound(new)

    def _note_unbound(self, pod: Pod) -> None:
        """Remember, for the next pods of its controller, that it could not be bound to that node."""
        node = self._bridged.slurm_node(pod.assigned_node) if pod.assigned_node else None
        if pod.owner and node:
            self._unbindable.note(pod.owner.uid, node, self._clock.now())


def _is_unbound(pod: Pod) -> bool:
    condition = pod.condition(names.DISRUPTION_TARGET)
    return condition is not None and condition.reason == Cause.NOT_BOUND.value


def _request_annotations(pod: Pod) -> dict[str, str]:
    return {
        name: value
        for name, value in pod.annotations.items()
        if name.startswith(names.REQUEST_PREFIX)
    }
