"""An API server with a SlurmCluster, and a leader that may die: in virtual time. What is made of it is ready at once."""

import asyncio
import copy
from typing import Any

import msgspec

from slurmoperator.clusters.loop import ClusterLoop
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTERS
from slurmoperator.daemons.part import PARTS
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, PLURAL
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.process.metrics import Metrics
from tests.make import processes
from tests.make.apiserver import Manifest
from tests.make.trouble import Trouble
from tests.slurmoperator.daemons.peers import SETTLED_S, AppliedTo
from tests.virtual_time import VirtualClock

WHERE = f"/apis/{API_VERSION}/namespaces/slurm/{PLURAL}/slurm"
SIX_LINES: dict[str, Any] = {
    "nodes": [{"name": "cpu", "replicas": 2}],
    "login": {"replicas": 1},
}


class WithCluster(AppliedTo):
    """Has one SlurmCluster."""

    def create_cluster(self, spec: dict[str, Any]) -> None:
        """Take it in as a user wrote it."""
        meta = {"name": "slurm", "namespace": "slurm", "uid": "uid-slurm", "generation": 1}
        self._store(
            WHERE, {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}
        )

    def tell_all(self) -> None:
        """Do the work of the other controllers: hold NodeSets, and tell everything that it is ready."""
        for where, each in list(self.objects.items()):
            if each["kind"] not in ("NodeSet", *PARTS):
                continue
            told = copy.deepcopy(each)
            if each["kind"] == "NodeSet" and "deletionTimestamp" not in each["metadata"]:
                told["metadata"]["finalizers"] = ["slurm-bridge.dev/workers"]
            generation = each["metadata"]["generation"]
            told["status"] = {
                "conditions": [_is_true(kind, generation) for kind in ("Accepted", "Ready")]
            }
            if told != each:
                self._store(where, told)

    def cluster(self) -> Manifest:
        """The SlurmCluster as it is now."""
        return self.objects[WHERE]

    def told(self, wanted: str) -> tuple[str, str, str]:
        """Status, reason and message of one of its conditions."""
        return self.condition(KIND, wanted, "slurm")


def _is_true(kind: str, generation: int) -> Manifest:
    return {
        "type": kind,
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": generation,
    }


class ClusterLeaders:
    """One leader after another over the same API server."""

    def __init__(self, clock: VirtualClock, trouble: Trouble | None = None) -> None:
        self.clock = clock
        self.trouble = trouble or Trouble()
        self.api = WithCluster(clock, self.trouble)
        self.metrics = Metrics("operator")
        self.served = NamespaceScope()

    async def lead(self, *, for_s: float = SETTLED_S) -> None:
        """One term of leadership."""
        watched: dict[str, Any] = {**PARTS, "NodeSet": NODE_SETS, KIND: SLURM_CLUSTERS}
        caches: dict[str, Cache[Any]] = {kind: Cache(each) for kind, each in watched.items()}
        self.api._caches = tuple(caches.values())
        for kind, cache in caches.items():
            for found in self.api.of(kind).values():
                cache.put_listed(cache.kind.read(msgspec.json.encode(found)))
        loop = ClusterLoop(
            kube=self.api,  # type: ignore[arg-type]  # all it calls
            clusters=caches[KIND],
            parts={kind: caches[kind] for kind in PARTS},
            node_sets=caches["NodeSet"],
            served=self.served,
            process=processes.process(self.clock, self.metrics),
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop))
            end_s = self.clock.monotonic() + for_s
            while self.clock.monotonic() < end_s:
                await self.clock.sleep(1)
                self.api.tell_all()
            stop.set()
