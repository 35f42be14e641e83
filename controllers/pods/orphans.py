"""Collects orphans: placeholders of ours whose pods are gone for good.

A lease is not a fence, a finalizer can be stripped by hand, and a crash of slurmctld can undo a
cancel: what they leave behind is found here. Slurm is listed first, then each suspect is read
again, then the API server is asked for each pod that it names. If there are more orphans than may be
cancelled without an operator's permission, all are held back; the permission is an annotation on
slurm-bridge's own namespace.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from datetime import timedelta

import structlog

from bridge.domain.lifecycle import breaker, orphans
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import membership
from bridge.kube import decode
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from slurmclient.errors import SlurmError
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube import lists, objects
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.leading.controller import Process
from slurmruntime.process import liveness
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey

_REMEMBERED = 100_000
"""How many deleted pods are remembered; older ones are forgotten."""

_HOUR_S = 3600.0

_log = structlog.get_logger(__name__)


class Orphans:
    """The orphan collector of one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        pods: Cache[Pod],
        placeholders: Placeholders,
        cluster: ClusterId,
        namespace: str,
        interval_s: float,
        process: Process,
    ) -> None:
        """Start without suspects.

        Args:
            cluster: only its placeholders are considered.
            namespace: slurm-bridge's own, which carries the operator's permission.
            interval_s: between checks; an orphan is cancelled if it still is one at the next check.
        """
        self._kube = kube
        self._slurm = slurm
        self._cluster = cluster
        self._namespace = namespace
        self._pods = pods
        self._placeholders = placeholders
        self._interval_s = interval_s
        self._clock = process.clock
        self._metrics = process.metrics
        self._last = orphans.Judgement()
        self._deleted: OrderedDict[PodUid, None] = OrderedDict()
        """Pods that this process has seen and that are gone now."""
        self._strange: deque[float] = deque()
        """Monotonic times at which orphans were cancelled whose pods this process never saw."""
        self._held = ""
        pods.subscribe(self._changed)

    def health(self) -> str | None:
        """Return why orphans are not cancelled; None if they are."""
        return self._held or None

    async def run(self, stop: asyncio.Event) -> None:
        """Collect orphans repeatedly until `stop` is set."""
        await liveness.run("orphans", self._collect_repeatedly(), stop)

    async def _collect_repeatedly(self) -> None:
        liveness.turned(rests_s=None)
        await self._pods.synced.wait()
        while True:
            liveness.turned(self._interval_s)
            await self._clock.sleep(self._interval_s)
            try:
                await self.collect()
            except (SlurmError, kube_errors.KubeError) as error:
                _log.warning("orphans.interrupted", error=str(error))

    async def collect(self) -> None:
        """Compare the two systems once.

        Raises:
            KubeError, SlurmError: the comparison was not finished; the next one starts over.
        """
        snapshot = self._placeholders.snapshot
        if snapshot is None:
            return
        suspected = self._candidates(await self._reread(self._candidates(snapshot.jobs.values())))
        self._last = orphans.judge(
            suspected,
            gone=await self._gone(suspected),
            seen=self._deleted.keys(),
            suspects=self._last.suspects,
            now=self._clock.now(),
            grace=timedelta(seconds=self._interval_s / 2),
        )
        await self._hold(snapshot.jobs.values())
        if self._held:
            return
        keys = {job.id: job.identity.key for job in suspected}
        for orphan in self._last.orphans:
            await self._cancel(orphan, keys[orphan.job_id])
        for orphan in self._last.strange:
            self._strange.append(self._clock.monotonic())
            await self._cancel(orphan, keys[orphan.job_id])

    async def _hold(self, placeholders: Iterable[SlurmJob]) -> None:
        """Read an operator's permission if it is needed; raise KubeError if that fails."""
        while self._strange and self._clock.monotonic() - self._strange[0] > _HOUR_S:
            self._strange.popleft()
        live = sum(
            job.phase is not JobPhase.ENDED and job.identity.cluster == self._cluster
            for job in placeholders
        )
        why = orphans.why_held(self._last, live=live, strange_lately=len(self._strange))
        before, self._held = self._held, why and f"{why}; {self._advice()}"
        held = len(self._last.orphans) + self._last.strange_suspects if why else 0
        self._metrics.placeholders.orphans_held_back(held)
        if not why:
            return
        if not before:
            _log.error("orphans.held_back", what=why, advice=self._advice())
        if await self._is_allowed():
            self._held = ""
            self._metrics.placeholders.orphans_held_back(0)

    async def _is_allowed(self) -> bool:
        namespace = await objects.get_namespace(self._kube, self._namespace)
        permission = namespace.annotations.get(names.CANCEL_ORPHANS_UNTIL_ANNOTATION)
        try:
            return permission is not None and self._clock.now() < breaker.evict_until(permission)
        except ValueError as error:
            _log.warning("orphans.word_unreadable", error=str(error))
            return False

    def _advice(self) -> str:
        until = self._clock.now() + timedelta(minutes=10)
        return (
            "none is cancelled; find out whether another Kubernetes cluster uses this cluster's id; "
            f"to cancel them: kubectl annotate --overwrite namespace {self._namespace} "
            f"{names.CANCEL_ORPHANS_UNTIL_ANNOTATION}={until:%Y-%m-%dT%H:%M:%SZ}"
        )

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is None:
            self._deleted[old.uid] = None
            if len(self._deleted) > _REMEMBERED:
                self._deleted.popitem(last=False)

    def _candidates(self, placeholders: Iterable[SlurmJob]) -> tuple[SlurmJob, ...]:
        return orphans.candidates(
            placeholders,
            cluster=self._cluster,
            known={pod.uid for pod in self._pods.values()},
            held={pod.job_id for pod in self._pods.values() if pod.job_id is not None},
        )

    async def _reread(self, suspected: Iterable[SlurmJob]) -> list[SlurmJob]:
        """Read the suspects again: the job of a gang that waits may name other pods by now."""
        read = [
            await jobs.verified(self._slurm, job.id, job.identity.key, sluid=job.sluid)
            for job in suspected
        ]
        return [job for job in read if job is not None]

    async def _gone(self, suspected: Iterable[SlurmJob]) -> set[PodUid]:
        """Ask the API server, not our cache, which of the pods that these jobs name are gone."""
        gone: set[PodUid] = set()
        for whose in (job.identity for job in suspected):
            alive: Collection[PodUid] = ()
            if whose.kind != membership.POD:  # named after its group, not after a pod
                alive = await lists.pod_uids(self._kube, whose.namespace)
            else:
                with contextlib.suppress(kube_errors.NotFound):
                    alive = ((await decode.get_pod(self._kube, whose.namespace, whose.name)).uid,)
            gone.update(uid for uid in whose.pods if uid not in alive)
        return gone

    async def _cancel(self, orphan: Cancel, key: WorkloadKey) -> None:
        await jobs.cancel_named(self._slurm, orphan.job_id, orphan.sluid, key)
        self._metrics.placeholders.orphan_cancelled()
        _log.warning("orphan.cancelled", job_id=orphan.job_id)
