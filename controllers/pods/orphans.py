"""Collect orphans: placeholders of ours whose pods are gone for good.

A lease is not a fence, a finalizer can be stripped by hand, and a crash of slurmctld can undo a
cancel: what they leave behind is found here. Slurm is listed first, then each suspect is read
again, then the API server is asked for each pod it names.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import structlog

from bridge.domain.ids import ClusterId, PodUid
from bridge.domain.lifecycle import orphans
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import membership
from bridge.kube import errors as kube_errors
from bridge.kube import writes
from bridge.kube.cache import Cache
from bridge.kube.client import KubeClient
from bridge.process import liveness
from bridge.process.clock import Clock
from bridge.process.metrics import Metrics
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import SlurmError

_log = structlog.get_logger(__name__)


class Orphans:
    """The orphan collector of one term of leadership."""

    def __init__(
        self,
        *,
        kube: KubeClient,
        slurm: SlurmClient,
        cluster: ClusterId,
        pods: Cache[Pod],
        placeholders: Placeholders,
        interval_s: float,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """interval_s: between looks; an orphan is cancelled if it still is one at the next look."""
        self._kube = kube
        self._slurm = slurm
        self._cluster = cluster
        self._pods = pods
        self._placeholders = placeholders
        self._interval_s = interval_s
        self._clock = clock
        self._metrics = metrics
        self._last = orphans.Judgement()

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
            suspects=self._last.suspects,
            now=self._clock.now(),
            grace=timedelta(seconds=self._interval_s / 2),
        )
        for orphan in self._last.orphans:
            await self._cancel(orphan)

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
            await jobs.verified(self._slurm, job.sluid or job.id, job.identity.uid)
            for job in suspected
        ]
        return [job for job in read if job is not None]

    async def _gone(self, suspected: Iterable[SlurmJob]) -> set[PodUid]:
        """Check with the API server itself, not our cache, for the pods that these jobs name."""
        gone: set[PodUid] = set()
        for job in suspected:
            if job.identity.kind != membership.POD:  # named after its group, not a pod
                alive = await writes.pod_uids(self._kube, job.identity.namespace)
                gone.update(uid for uid in job.identity.pods if uid not in alive)
                continue
            try:
                pod = await writes.get_pod(self._kube, job.identity.namespace, job.identity.name)
            except kube_errors.NotFound:
                gone.update(job.identity.pods)
            else:
                gone.update(uid for uid in job.identity.pods if uid != pod.uid)
        return gone

    async def _cancel(self, orphan: Cancel) -> None:
        """Cancel by sluid, which names no other job; without one, wait until the job has been read."""
        if orphan.sluid is not None:
            await jobs.cancel(self._slurm, orphan.sluid)
            self._metrics.orphan_cancelled()
            _log.warning("orphan.cancelled", job_id=orphan.job_id)
