"""The reconcile loop over the control plane's objects: gather, decide, act, report."""

import asyncio
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars
from typing_extensions import override

from slurmoperator.daemons import conditions, leaving, planning
from slurmoperator.daemons.acting import KeySource, PartActing
from slurmoperator.daemons.gathering import PartGathering, PartSources
from slurmoperator.daemons.key_rings import KeyRings
from slurmoperator.daemons.part import (
    PART_KINDS,
    ControlPeers,
    PartCaches,
    PartObject,
    WatchedPart,
)
from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.daemons.rest_tls import RestCertificates
from slurmoperator.daemons.situation import PartOutcome, PartPlan
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.nodeset import WatchedNodeSet
from slurmoperator.rendering.site import ELSEWHERE, ControlSite, NamespaceScope
from slurmoperator.reports import StatusReports
from slurmruntime.crd.metadata import controllers
from slurmruntime.kube import errors as kube_errors
from slurmruntime.leading.controller import Controller, Keys, Process, Watch

_log = structlog.get_logger(__name__)

_SETTLED: Final = timedelta(seconds=60)
"""How often the objects that it refers to are read again while it is ready."""
_WAITING: Final = timedelta(seconds=5)
_SHORTEST: Final = timedelta(seconds=1)
"""Between two reconciles of an object without an event."""


class ControlLoop(Keys[str]):
    """Reconciles the control plane's objects during one term of leadership."""

    def __init__(
        self,
        peers: ControlPeers,
        caches: PartCaches,
        site: ControlSite,
        *,
        keys: KeySource,
        served: NamespaceScope,
        tokens: TokenPolicy,
        process: Process,
    ) -> None:
        """Prepare the loop. Objects outside the served namespaces only get a condition that says so."""
        self._kube = kube = peers.kube
        self._reports = StatusReports(kube, process)
        self._parts = caches.parts
        self._workload_caches = caches.workloads
        self._node_sets = caches.node_sets
        self._controller = Controller(
            "control plane",
            self.reconcile,
            [
                *(Watch(cache, self._changed) for cache in caches.parts.values()),
                *(Watch(cache, partial(controllers, self._find)) for cache in caches.workloads),
                Watch(caches.node_sets, self._changed),
            ],
            process=process,
            keys=self,
        )
        self._queue = self._controller.queue
        self._clock = process.clock
        self._partitions = PartitionReadings(peers.slurms, clock=self._clock, wake=self._queue.add)
        sources = PartSources(
            key_rings=KeyRings(
                kube=kube,
                parts=caches.parts,
                node_sets=caches.node_sets,
                random_bytes=keys.random_bytes,
            ),
            certificates=RestCertificates(kube, site, self._clock),
            partitions=self._partitions,
            policy=tokens,
        )
        self._gathering = PartGathering(kube, caches, sources, self._clock)
        self._acting = PartActing(peers, caches, sources, keys=keys, wake=self._wake)
        self._served = served

    async def run(self, stop: asyncio.Event, *, workers: int) -> None:
        """Reconcile objects until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._partitions.run(stop))
            await self._controller.run(stop, workers=workers)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one object; return the delay until the next time if no event comes first.

        Raises:
            PeerError: try again after a back-off.
        """
        watched = self._find(key)
        if watched is None:
            return None
        bind_contextvars(object=f"{watched.kind} {watched.metadata.full_name}")
        try:
            return await self._reconcile(watched)
        except kube_errors.NotFound:
            _log.debug("part.gone_already")
            return None

    async def _reconcile(self, watched: WatchedPart) -> timedelta | None:
        waits = ""
        if watched.metadata.deletion_timestamp is not None:
            waits = await leaving.release(self._kube, watched)
            if not waits:
                return None  # Kubernetes deletes what it owns
        elsewhere = self._served.fault(watched.metadata.namespace)
        part = watched.parsed
        if elsewhere or part is None:
            refused = PartPlan(refused=elsewhere or watched.fault)
            reason = ELSEWHERE if elsewhere else "BadInput"
            await self._report(refused, PartOutcome(watched=watched, refused_reason=reason), waits)
            return _SETTLED if waits else None
        return await self._look(watched, part, waits)

    async def _look(self, watched: WatchedPart, part: PartObject, waits: str) -> timedelta:
        facts = await self._gathering.gather(part)
        # On a thread: 64 KiB of a user's extraConf may take a quarter of a second, and every other object has to go on.
        plan = await asyncio.to_thread(planning.plan, facts)
        self._acting.note(part, plan)
        outcome = PartOutcome(watched=watched)
        if not plan.is_blocked:
            outcome = await self._acting.act(watched, part, plan)
        await self._report(plan, outcome, waits)
        if outcome.failure is not None:
            raise outcome.failure
        return _delay(plan, outcome)

    async def _report(self, plan: PartPlan, outcome: PartOutcome, waits: str) -> None:
        watched = outcome.watched
        after = conditions.status(
            watched.status,
            plan,
            outcome,
            waits=waits,
            generation=watched.metadata.generation,
            now=self._clock.now(),
        )
        cache = self._parts[watched.kind]
        await self._reports.write(PART_KINDS[watched.kind], cache, watched, after)

    # -- events -----------------------------------------------------------------------------------

    def _find(self, key: str) -> WatchedPart | None:
        return next(filter(None, (cache.get(key) for cache in self._parts.values())), None)

    def _changed(
        self, old: WatchedPart | WatchedNodeSet | None, new: WatchedPart | WatchedNodeSet | None
    ) -> Iterable[str]:
        """Return all objects in the namespace of a change: they depend on each other. Tokens are excluded, as there may be many."""
        if old is not None and new is not None and old.asked == new.asked:
            return ()
        versions = [version for version in (old, new) if version is not None]
        if any(version.kind == "Token" for version in versions):
            return [token.metadata.uid for token in versions]
        return self._in_namespaces({version.metadata.namespace for version in versions})

    @override
    def lane(self, key: str, /) -> str:
        watched = self._find(key)
        return watched.metadata.namespace if watched else ""

    def _wake(self, namespace: str) -> None:
        for uid in self._in_namespaces({namespace}):
            self._queue.add(uid)

    def _in_namespaces(self, namespaces: AbstractSet[str]) -> Iterator[str]:
        for kind, cache in self._parts.items():
            for part in cache.values() if kind != "Token" else ():
                if part.metadata.namespace in namespaces:
                    yield part.metadata.uid


def _delay(plan: PartPlan, outcome: PartOutcome) -> timedelta:
    is_settled = outcome.workloads is not None and all(
        workload.is_ready for workload in outcome.workloads
    )
    is_accepted = not plan.refused and not outcome.refused
    delay = _SETTLED if is_settled and is_accepted else _WAITING
    return delay if plan.due is None else min(delay, max(plan.due, _SHORTEST))
