"""Binds, by the extender's leader itself, the pods that do not use kube-scheduler.

Every pod with the binder's scheduler name that has been assigned a node is reconciled until it is bound
or gone (`bridge.domain.admission.binder` decides). The reason why a pod cannot be bound is written on the
pod as kube-scheduler would write it, so the rules for pods that cannot be bound apply unchanged.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import assert_never

from typing_extensions import override

from bridge.domain.admission import binder
from bridge.domain.admission.binder import Abstain, Await, Bind, BindingFacts, Report
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.pods import Pod
from bridge.escrow.shares import LastCheck
from bridge.kube import patches, writes
from bridge.reconcile.loop import WORKERS
from bridge.reconcile.placeholders import Placeholders
from extender.claims.known import KnownClaims
from extender.nodes import BridgedNodes
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import AlreadyBound, Forbidden, NotFound, Rejected
from slurmruntime.leading.controller import Controller, Keys, Process, Watch
from slurmruntime.values import names
from slurmruntime.values.faults import published
from slurmruntime.values.ids import KubeNode, PodUid
from slurmruntime.values.oddities import About

_LOOK_AGAIN = timedelta(seconds=1)
"""Changes in Slurm and of nodes cause no event for the pod."""

_TRY_AGAIN = timedelta(seconds=5)
"""kube-scheduler's longest back-off in our profile."""


class Binder(Keys[PodUid]):
    """Binds during one term of leadership; created when it begins, dropped when it ends."""

    kind = "pod"

    def __init__(
        self,
        kube: KubeClient,
        pods: Cache[Pod],
        *,
        bridged: BridgedNodes,
        placeholders: Placeholders,
        claims: KnownClaims | None,
        last_check: LastCheck | None,
        scheduler_name: str,
        process: Process,
    ) -> None:
        """scheduler_name: the scheduler of the pods to bind."""
        self._kube = kube
        self._pods = pods
        self._bridged = bridged
        self._placeholders = placeholders
        self._claims = claims
        self._scheduler_name = scheduler_name
        self._clock = process.clock
        self._metrics = process.metrics
        self._last_check = last_check
        watches = [Watch(pods, self._waiting)]
        if claims is not None:
            watches.append(Watch(claims.all, self._reserving))
        self._controller = Controller(
            "bindings", self.reconcile, watches, process=process, keys=self
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Bind pods until `stop` is set."""
        await self._controller.run(stop, workers=WORKERS)

    async def reconcile(self, uid: PodUid) -> timedelta | None:
        """Reconcile one pod; return the delay until the next time if no event comes first.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        pod = self._pods.get(uid)
        if pod is None or not self._is_ours(pod):
            return None
        await self._bridged.ensure_listed()
        decision = binder.decide(self._gather(self._pods.get(uid) or pod))
        match decision:
            case Bind(kube_node):
                return await self._bind(pod, kube_node)
            case Report(message):
                return await self._report(pod, names.UNSCHEDULABLE, message)
            case Await():
                return _LOOK_AGAIN
            case Abstain():
                return None
            case unreachable:
                assert_never(unreachable)

    def _gather(self, pod: Pod) -> BindingFacts:
        """Gather the facts for a decision; the job is unknown if the last reading of Slurm is too old."""
        is_known = self._placeholders.health() is None
        job = self._placeholders.job(pod.job_id) if pod.job_id and is_known else None
        node = pod.assigned_node
        return BindingFacts(
            pod=pod,
            job=job,
            slurm_node=self._bridged.slurm_node(node) if node else None,
            fit=self._bridged.check(pod, job, node) if job and node else None,
            claims=self._claims.of(pod) if self._claims else None,
        )

    async def _bind(self, pod: Pod, kube_node: KubeNode) -> timedelta | None:
        """Create the Binding; report it on the pod if the API server refuses, or if the job has ended."""
        if self._last_check and (too_late := await self._last_check(pod, kube_node)):
            return await self._report(pod, names.UNSCHEDULABLE, too_late)
        try:
            await writes.bind(
                self._kube, namespace=pod.namespace, name=pod.name, uid=pod.uid, kube_node=kube_node
            )
        except (Forbidden, Rejected) as error:
            return await self._report(pod, names.SCHEDULER_ERROR, error.message)
        except (AlreadyBound, NotFound):
            return None  # the watch is about to show it
        self._metrics.pods.bound(pod.waiting_time(self._clock.now()).total_seconds())
        return None

    async def _report(self, pod: Pod, reason: str, message: str) -> timedelta:
        """Write on the pod why it is not bound, unless it says so already."""
        message = published(message)
        current = pod.condition(names.POD_SCHEDULED)
        if current is None or (current.status, current.reason, current.message) != (
            "False",
            reason,
            message,
        ):
            condition = patches.pod_condition(
                pod,
                names.POD_SCHEDULED,
                holds=False,
                reason=reason,
                message=message,
                now=self._clock.now(),
            )
            written = await writes.patch_pod_status(self._kube, pod, condition)
            self._pods.observe(written, base=pod.resource_version)
        return _TRY_AGAIN

    def _waiting(self, _old: Pod | None, new: Pod | None) -> Iterator[PodUid]:
        if new is not None and self._is_ours(new):
            yield new.uid

    def _reserving(self, _old: ResourceClaim | None, new: ResourceClaim | None) -> Iterator[PodUid]:
        for uid in new.reserved_for if new is not None else ():
            yield from self._waiting(None, self._pods.get(uid))

    def _is_ours(self, pod: Pod) -> bool:
        """Check whether the pod waits for our Binding; the decision checks the details."""
        return (
            pod.scheduler_name == self._scheduler_name
            and not pod.is_gated
            and not pod.is_bound
            and not pod.is_deleting
            and pod.assigned_node is not None
        )

    @override
    def lane(self, uid: PodUid, /) -> str:
        pod = self._pods.get(uid)
        return pod.namespace if pod else ""

    @override
    def about(self, uid: PodUid, /) -> About | None:
        pod = self._pods.get(uid)
        return pod.about if pod else None
