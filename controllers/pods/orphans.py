"""Collect orphans: placeholders of ours whose pods are gone for good.

A lease is not a fence, a finalizer can be stripped by hand, and a crash of slurmctld can undo a
cancel: what they leave behind is found here. Slurm is listed first, then each suspect is read
again, then the API server is asked for each pod it names. What is more than may be cancelled without
an operator's word is held; the word is an annotation on slurm-bridge's own namespace.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable
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
from slurmruntime.kube import errors as kube_errors
from slurmruntime.kube import lists, objects
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import SlurmError
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey

_REMEMBERED = 100_000
"""How many pods that are gone are remembered as seen; older ones are forgotten."""

_HOUR_S = 3600.0

_log = structlog.get_logger(__name__)


class Orphans:
    """The orphan collector of one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        cluster: ClusterId,
        namespace: str,
        pods: Cache[Pod],
        placeholders: Placeholders,
        interval_s: float,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """Start with nothing seen.

        Args:
            kube: the API server.
            slurm: slurmrestd.
            cluster: only its placeholders are looked at.
            namespace: slurm-bridge's own, which carries the operator's word.
            pods: ours.
            placeholders: the view of Slurm.
            interval_s: between looks; an orphan is cancelled if it still is one at the next look.
            clock: the time.
            metrics: where they are counted.
        """
        self._kube = kube
        self._slurm = slurm
        self._cluster = cluster
        self._namespace = namespace
        self._pods = pods
        self._placeholders = placeholders
        self._interval_s = interval_s
        self._clock = clock
        self._metrics = metrics
        self._last = orphans.Judgement()
        self._departed: OrderedDict[PodUid, None] = OrderedDict()
        """Pods that this process has seen, and that are gone."""
        self._strange: deque[float] = deque()
        """When orphans whose pods were never seen were cancelled, monotonic."""
        self._held = ""
        pods.subscribe(self._changed)

    def health(self) -> str | None:
        """Return why orphans are not cancelled; None if they are."""
        return self._held or None

    async def run(self, stop: asyncio.Event) -> None:
        """Collect orphans repeatedly until told to stop."""
        await liveness.run("orphans", self._look_forever(), stop)

    async def _look_forever(self) -> None:
        liveness.turned(rests_s=None)
        await self._pods.synced.wait()
        while True:
            liveness.turned(self._interval_s)
            await self._clock.sleep(self._interval_s)
            try:
                await self.look()
            except (SlurmError, kube_errors.KubeError) as error:
                _log.warning("orphans.interrupted", error=str(error))

    async def look(self) -> None:
        """Compare the two systems once.

        Raises:
            KubeError, SlurmError: the comparison was not finished; the next one starts over.
        """
        snapshot = self._placeholders.snapshot
        if snapshot is None:
            return
        suspected = self._candidates(
            await self._read_anew(self._candidates(snapshot.jobs.values()))
        )
        self._last = orphans.judge(
            suspected,
            gone=await self._gone(suspected),
            seen=self._departed.keys(),
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

    async def _hold(self, found: Iterable[SlurmJob]) -> None:
        """Find out whether an operator's word is needed, and whether it was given.

        Raises:
            KubeError: it is needed, and could not be read.
        """
        while self._strange and self._clock.monotonic() - self._strange[0] > _HOUR_S:
            self._strange.popleft()
        live = sum(
            job.phase is not JobPhase.ENDED and job.identity.cluster == self._cluster
            for job in found
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
        word = namespace.annotations.get(names.CANCEL_ORPHANS_UNTIL_ANNOTATION)
        try:
            return word is not None and self._clock.now() < breaker.evict_until(word)
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
        """Remember each pod that is gone."""
        if old is not None and new is None:
            self._departed[old.uid] = None
            if len(self._departed) > _REMEMBERED:
                self._departed.popitem(last=False)

    def _candidates(self, found: Iterable[SlurmJob]) -> tuple[SlurmJob, ...]:
        return orphans.candidates(
            found,
            cluster=self._cluster,
            known={pod.uid for pod in self._pods.values()},
            held={pod.job_id for pod in self._pods.values() if pod.job_id is not None},
        )

    async def _read_anew(self, suspected: Iterable[SlurmJob]) -> list[SlurmJob]:
        """Read the suspects again.

        A waiting gang's job may name other pods by now, which the list of states does not show.
        """
        read = [
            await jobs.verified(self._slurm, job.id, job.identity.key, sluid=job.sluid)
            for job in suspected
        ]
        return [job for job in read if job is not None]

    async def _gone(self, suspected: Iterable[SlurmJob]) -> set[PodUid]:
        """Check with the API server itself, not our cache, for the pods that these jobs name."""
        gone: set[PodUid] = set()
        for job in suspected:
            if job.identity.kind != membership.POD:  # named after its group, not a pod
                alive = await lists.pod_uids(self._kube, job.identity.namespace)
                gone.update(uid for uid in job.identity.pods if uid not in alive)
                continue
            try:
                pod = await decode.get_pod(self._kube, job.identity.namespace, job.identity.name)
            except kube_errors.NotFound:
                gone.update(job.identity.pods)
            else:
                gone.update(uid for uid in job.identity.pods if uid != pod.uid)
        return gone

    async def _cancel(self, orphan: Cancel, key: WorkloadKey) -> None:
        await jobs.cancel_named(self._slurm, orphan.job_id, orphan.sluid, key)
        self._metrics.placeholders.orphan_cancelled()
        _log.warning("orphan.cancelled", job_id=orphan.job_id)
