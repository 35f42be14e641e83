"""Reserves in Slurm what pods without a job use of its nodes (`bridge.domain.nodes.fillers`).

Checks are cheap, because all facts are in memory; Slurm gets requests only for changes.
"""

import asyncio
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

import structlog

from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model import demand
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import BoundPod, Pod
from bridge.domain.nodes import fillers
from bridge.domain.nodes.decision import NodeSettings
from bridge.domain.nodes.fillers import Fill
from bridge.domain.observation.node_book import NodeBook, Unknown
from bridge.reconcile.nodes import KubeNodes, bound_to
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from bridge.slurm.snapshot import Snapshot
from controllers.nodes.gathering import Holdings
from slurmclient.errors import LostReply, SlurmError
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.process import liveness
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import backoff
from slurmruntime.values.ids import SlurmNode, WorkloadKey

_log = structlog.get_logger(__name__)

_INTERVAL_S = 1.0
_REFUSED_FIRST = timedelta(seconds=2)
_REFUSED_CAP = timedelta(minutes=5)
"""Delays after refusals for one node; someone has to change something in Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """Everything that the fillers of one node depend on."""

    kube_node: KubeNodeFacts
    slurm_node: SlurmNodeFacts
    others: tuple[BoundPod | Pod, ...]
    held: tuple[SlurmJob, ...]

    def is_same_as(self, before: "_Observation | None") -> bool:
        """Check for identical objects; comparing their contents would cost as much as a decision."""
        return (
            before is not None
            and self.kube_node is before.kube_node
            and self.slurm_node is before.slurm_node
            and len(self.others) == len(before.others)
            and all(map(operator.is_, self.others, before.others))
            and len(self.held) == len(before.held)
            and all(map(operator.is_, self.held, before.held))
        )


class Fillers:
    """Maintains fillers during one term of leadership."""

    def __init__(
        self,
        *,
        slurm: SlurmClient,
        kube_nodes: Cache[KubeNodeFacts],
        bound: Cache[BoundPod],
        holdings: Holdings,
        placeholders: Placeholders,
        book: NodeBook,
        settings: NodeSettings,
        clock: Clock,
    ) -> None:
        """placeholders: the leader's view of Slurm's jobs, fillers included."""
        self._slurm = slurm
        self._cache = kube_nodes
        self._kube_nodes = KubeNodes(kube_nodes)
        self._others_on = bound.index(bound_to)
        self._holdings = holdings
        self._placeholders = placeholders
        self._book = book
        self._settings = settings
        self._clock = clock
        self._known_from: dict[WorkloadKey, float] = {}
        """Per node: readings that began before this time are ignored."""
        self._settled: dict[WorkloadKey, _Observation] = {}
        """Per node: the facts of the last check with nothing to do; the same facts need no check."""
        self._refused: dict[WorkloadKey, tuple[int, float]] = {}
        """Per node: number of consecutive refusals by Slurm, and the time of the next attempt."""

    async def run(self, stop: asyncio.Event) -> None:
        """Check the fillers repeatedly until `stop` is set."""
        await liveness.run("fillers", self._check_repeatedly(), stop)

    async def _check_repeatedly(self) -> None:
        while True:
            liveness.turned(_INTERVAL_S)
            await self._clock.sleep(_INTERVAL_S)
            snapshot = self._placeholders.whole_snapshot()
            if snapshot is None:
                continue
            try:
                await self._check_all(snapshot)
            except SlurmError as error:
                _log.warning("fillers.interrupted", error=str(error))

    async def _check_all(self, snapshot: Snapshot) -> None:
        shared: set[WorkloadKey] = set()
        for kube_node in self._cache.values():
            if nodes.is_wanted(kube_node):
                shared.add(key := fillers.key(kube_node))
                with self._attempt(key) as is_due:
                    if is_due:
                        await self._check_node(kube_node, snapshot)
        for key in self._settled.keys() - shared:
            del self._settled[key]
        live_fillers = [job for job in snapshot.jobs.values() if _is_live_filler(job)]
        for job in live_fillers:
            if (key := job.identity.key) not in shared:
                with self._attempt(key) as is_due:
                    if is_due:
                        await self._cancel(key, Cancel(job_id=job.id, sluid=job.sluid))
        for key in self._refused.keys() - shared - {job.identity.key for job in live_fillers}:
            del self._refused[key]

    @contextmanager
    def _attempt(self, key: WorkloadKey) -> Iterator[bool]:
        """Yield whether a node is due; a refusal for one node must not delay the others."""
        times, until_s = self._refused.get(key, (0, 0.0))
        try:
            yield self._clock.monotonic() >= until_s
        except SlurmError as error:
            if error.transient:
                raise
            wait = backoff.delay(times + 1, first=_REFUSED_FIRST, cap=_REFUSED_CAP)
            again_s = wait.total_seconds()
            self._refused[key] = times + 1, self._clock.monotonic() + again_s
            _log.warning("filler.refused", node=key, error=str(error), again_s=again_s)

    async def _check_node(self, kube_node: KubeNodeFacts, snapshot: Snapshot) -> None:
        name, key = nodes.slurm_name(kube_node), fillers.key(kube_node)
        slurm_node = self._book.get(name)
        if snapshot.began_monotonic <= self._known_from.get(key, 0.0):
            return
        if slurm_node is None or isinstance(slurm_node, Unknown):
            return
        if slurm_node.is_external is nodes.is_hybrid(kube_node) or nodes.is_parked(slurm_node):
            return  # it is about to change
        cluster = self._settings.publishing.cluster
        mark = nodes.cluster_feature(cluster)
        if mark not in slurm_node.features or self._kube_nodes.behind(name) != kube_node.name:
            return
        observation = _Observation(
            kube_node=kube_node,
            slurm_node=slurm_node,
            others=(*self._others_on.get(kube_node.name), *self._holdings.unbacked(kube_node.name)),
            held=tuple(filter(_is_live_filler, snapshot.by_key.get(key, ()))),
        )
        if observation.is_same_as(self._settled.pop(key, None)):
            self._settled[key] = observation
            return
        others = (pod.demand for pod in observation.others if not pod.is_terminal)
        target = fillers.wanted(
            kube_node,
            demand.total(others),
            slurm_node,
            self._settings.publishing,
            self._settings.policy.hybrid,
        )
        actions = fillers.decide(target, fillers.offered(slurm_node), observation.held)
        if not actions:
            self._settled[key] = observation
            self._refused.pop(key, None)
        for action in actions:
            match action:
                case Cancel():
                    await self._cancel(key, action)
                case Fill(share=share):
                    spec = fillers.spec(kube_node, slurm_node, share, cluster)
                    await self._submit(key, spec, slurm_node.name)
                case unreachable:
                    assert_never(unreachable)

    async def _cancel(self, key: WorkloadKey, action: Cancel) -> None:
        try:
            await jobs.cancel_named(self._slurm, action.job_id, action.sluid, key)
            _log.info("filler.cancelled", job_id=action.job_id)
        finally:
            self._known_from[key] = self._clock.monotonic()

    async def _submit(self, key: WorkloadKey, spec: PlaceholderSpec, slurm_node: SlurmNode) -> None:
        quiet_s = 0.0
        try:
            job_id = await jobs.submit(self._slurm, spec)
            _log.info(
                "filler.submitted",
                job_id=job_id,
                slurm_node=slurm_node,
                cpus=spec.cpus_per_task,
                memory_mib=spec.memory_mib_per_node,
                gres=spec.gres_per_node,
            )
        except LostReply:
            quiet_s = self._placeholders.pace.quiet_s  # it may still be accepted
            raise
        finally:
            self._known_from[key] = self._clock.monotonic() + quiet_s


def _is_live_filler(job: SlurmJob) -> bool:
    return job.identity.kind == fillers.KIND and job.phase is not JobPhase.ENDED
