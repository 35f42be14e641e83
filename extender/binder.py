"""Binding, by the extender's leader itself, of the pods that ask for no kube-scheduler.

Every pod with the binder's name that has been assigned a node is looked at until it is bound or
gone (`bridge.domain.admission.binder` decides). What keeps one from being bound is said on the pod as
kube-scheduler would say it, so the rules for pods that cannot be bound apply unchanged.
"""

import asyncio
import random
from datetime import timedelta
from typing import assert_never

from bridge.domain.admission import binder
from bridge.domain.admission.binder import Abstain, Await, Bind, Bound, Say
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.pods import Pod
from bridge.escrow.shares import LastLook, no_look
from bridge.kube import patches, writes
from bridge.reconcile.placeholders import Placeholders
from extender.claims.known import KnownClaims
from extender.nodes import Bridged
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import AlreadyBound, Forbidden, NotFound, Rejected
from slurmruntime.leading import worker
from slurmruntime.leading.worker import Aside
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid
from slurmruntime.values.oddities import About, Oddities

_LOOK_AGAIN = timedelta(seconds=1)
"""News of Slurm and of nodes causes no event of the pod."""

_TRY_AGAIN = timedelta(seconds=5)
"""kube-scheduler's longest back-off in our profile."""


class Binder:
    """Binds during one term of leadership; created when it begins, dropped when it ends."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        pods: Cache[Pod],
        bridged: Bridged,
        placeholders: Placeholders,
        claims: KnownClaims | None,
        scheduler_name: str,
        clock: Clock,
        metrics: Metrics,
        set_aside: Oddities,
        rng: random.Random,
        last_look: LastLook = no_look,
    ) -> None:
        """claims: None without device profiles; scheduler_name: the one that the pods carry which are bound here; last_look: says whether a pod's job has ended meanwhile."""
        self._kube = kube
        self._pods = pods
        self._bridged = bridged
        self._placeholders = placeholders
        self._claims = claims
        self._scheduler_name = scheduler_name
        self._clock = clock
        self._metrics = metrics
        self._last_look = last_look
        self._set_aside = set_aside
        self._queue: WorkQueue[PodUid] = WorkQueue(rng=rng)
        self._queue.serve_by(self._namespace)

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Bind pods until told to stop."""
        self._pods.subscribe(self._changed)
        if self._claims is not None:
            self._claims.subscribe(self._given)
        await worker.run(
            self._queue,
            self.reconcile,
            name="bindings",
            count=workers,
            stop=stop,
            metrics=self._metrics,
            aside=Aside(self._set_aside, "pod", self._about),
        )

    async def reconcile(self, uid: PodUid) -> timedelta | None:
        """Look at one pod; return the delay until the next look if no event comes first.

        Raises:
            KubeError, SlurmError: try again after a back-off.
        """
        pod = self._pods.get(uid)
        if pod is None or not self._is_mine(pod):
            return None
        await self._bridged.know_devices()
        decision = binder.decide(self._gather(self._pods.get(uid) or pod))
        match decision:
            case Bind(kube_node):
                return await self._bind(pod, kube_node)
            case Say(message):
                return await self._say(pod, names.UNSCHEDULABLE, message)
            case Await():
                return _LOOK_AGAIN
            case Abstain():
                return None
            case unreachable:
                assert_never(unreachable)

    def _gather(self, pod: Pod) -> Bound:
        """What was read of Slurm too long ago is not known any more."""
        is_known = self._placeholders.health() is None
        job = self._placeholders.job(pod.job_id) if pod.job_id and is_known else None
        node = pod.assigned_node
        return Bound(
            pod=pod,
            job=job,
            slurm_node=self._bridged.slurm_node(node) if node else None,
            fit=self._bridged.check(pod, job, node) if job and node else None,
            claims=self._claims.of(pod) if self._claims else None,
        )

    async def _bind(self, pod: Pod, kube_node: KubeNode) -> timedelta | None:
        """Create the Binding; say so if the API server will not have it, or its job has ended."""
        if too_late := await self._last_look(pod, kube_node):
            return await self._say(pod, names.UNSCHEDULABLE, too_late)
        try:
            await writes.bind(
                self._kube,
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                kube_node=kube_node,
            )
        except (Forbidden, Rejected) as error:
            return await self._say(pod, names.SCHEDULER_ERROR, error.message)
        except (AlreadyBound, NotFound):
            return None  # the watch is about to say so
        self._metrics.pods.bound(pod.waiting_time(self._clock.now()).total_seconds())
        return None

    async def _say(self, pod: Pod, reason: str, message: str) -> timedelta:
        """Say why it is not bound, unless that stands there already."""
        said = pod.condition(names.POD_SCHEDULED)
        if said is None or (said.status, said.reason, said.message) != ("False", reason, message):
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

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        del old
        if new is not None and self._is_mine(new):
            self._queue.add(new.uid)

    def _given(self, _old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Look at the pod of a claim again: it may have been seen before its claim."""
        for uid in new.reserved_for if new is not None else ():
            self._changed(None, self._pods.get(uid))

    def _is_mine(self, pod: Pod) -> bool:
        """Check whether it waits for its Binding; the decision looks closer."""
        return (
            pod.scheduler_name == self._scheduler_name
            and not pod.is_gated
            and not pod.is_bound
            and not pod.is_deleting
            and pod.assigned_node is not None
        )

    def _namespace(self, uid: PodUid) -> str:
        pod = self._pods.get(uid)
        return pod.namespace if pod else ""

    def _about(self, uid: PodUid) -> About | None:
        pod = self._pods.get(uid)
        return pod.about if pod else None
