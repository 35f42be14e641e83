"""An elected leader, wired as its program wires it, among peers in memory and in virtual time."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from typing_extensions import override

from bridge.reconcile.completion import Completer
from bridge.reconcile.informers import Mirror
from bridge.reconcile.program import Program, Tempo
from bridge.reconcile.set_aside import SetAside
from bridge.settings.schema import Settings
from bridge.slurm.respond import Responder
from controllers.__main__ import control
from slurmclient import Tls
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.lease import Accession
from slurmruntime.process.events import Reporter
from slurmruntime.process.health import Health
from slurmruntime.process.liveness import Liveness
from slurmruntime.process.metrics import Metrics
from tests.make.apiserver import ApiServer, Manifest
from tests.make.manifests import CLUSTER, told
from tests.make.slurm import Job, Slurm
from tests.make.slurm_nodes import Node
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

NAMESPACE = "slurm-bridge-system"

LISTED_AFTER_S = 1.0
"""Later than the watch has told of what was there at the beginning."""


Body = Callable[[Program, Mirror, asyncio.Event, Accession], Awaitable[None]]
"""What the program does while it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outset:
    """What both systems have when the leader begins."""

    objects: Sequence[Manifest] = ()
    jobs: Sequence[Job] = ()
    nodes: Sequence[Node] = ()
    partitions: Sequence[str] = ()
    next_job_id: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By section."""
    body: Body = control


class _Peers(Program):
    """A program whose outcomes go to the same Slurm."""

    __slots__ = ()

    @property
    @override
    def completer(self) -> Completer:
        return self.slurm  # type: ignore[return-value]  # the peer is both

    @property
    @override
    def responder(self) -> Responder:
        return self.slurm  # type: ignore[return-value]  # and this


class Leader:
    """One term."""

    def __init__(self, outset: Outset, trouble: Trouble, clock: VirtualClock) -> None:
        metrics = Metrics("controllers")
        set_aside = SetAside(metrics, clock)
        self._clock = clock
        self._body = outset.body
        self._mirror = Mirror(set_aside)
        caches: tuple[Cache[Any], ...] = (
            self._mirror.pods,
            self._mirror.kube_nodes,
            self._mirror.bound,
            self._mirror.slices,
            self._mirror.claims,
            self._mirror.classes,
        )
        self.trouble = trouble
        self.set_aside = set_aside
        self.health = Health()
        self.api = ApiServer(clock, trouble, *caches)
        self.slurm = Slurm(
            trouble,
            outset.jobs,
            outset.nodes,
            partitions=outset.partitions,
            next_id=outset.next_job_id,
        )
        self._program = _Peers(
            name="controllers",
            settings=Settings.model_validate(
                {
                    "cluster_id": CLUSTER,
                    "kubernetes": {"namespace": NAMESPACE},
                    **outset.settings,
                }
            ),
            kube=self.api,  # type: ignore[arg-type]  # all that is called
            lease_kube=self.api,  # type: ignore[arg-type]
            slurm=self.slurm,  # type: ignore[arg-type]
            slurm_tls=Tls(),
            cluster=CLUSTER,
            metrics=metrics,
            health=self.health,
            liveness=Liveness(clock.monotonic, bound_s=timedelta(days=1).total_seconds()),
            clock=clock,
            rng=random.Random(1),  # noqa: S311  # jitter
            reporter=Reporter(controller="test", instance="test"),
            set_aside=set_aside,
            tempo=Tempo(orphans_s=4),
        )
        for manifest in outset.objects:
            self.api.create(manifest)
        for cache in caches:
            asyncio.get_running_loop().call_later(LISTED_AFTER_S, cache.synced.set)

    async def lead(self, *, for_s: float) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lead(stop))
            await self._clock.sleep(for_s)
            stop.set()

    async def _lead(self, stop: asyncio.Event) -> None:
        await self._body(self._program, self._mirror, stop, Accession.SEIZED)

    def outcome(self) -> str:
        """Tell how it ended: all of both systems but versions, moments and sentences."""
        jobs = {
            job.id: (job.state, job.nodes, list(job.required), list(job.excluded), job.comment)
            for job in self.slurm.jobs.values()
        }
        nodes = {node.name: node.wired(alloc_cpus=0) for node in self.slurm.nodes.by_name.values()}
        found = {"objects": self.api.objects, "jobs": jobs, "nodes": nodes}
        return json.dumps(told(found), indent=1, sort_keys=True)
