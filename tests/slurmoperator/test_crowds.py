"""A tenant with very many objects of slurm-operator's, beside one of somebody else."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from typing_extensions import override

from slurmoperator.daemons.partition_readings import PartitionReadings
from slurmoperator.nodesets.plan.look import Interest
from slurmoperator.nodesets.views import MOST_SLURMS, WorkerViews
from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, PLURAL
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube.errors import Unavailable
from slurmruntime.process.metrics import Metrics
from tests.make.apiserver import Manifest
from tests.make.processes import process
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders, WithCluster
from tests.slurmoperator.daemons.peers import AppliedTo, Leaders, part, secret
from tests.slurmoperator.nodesets.given import machine, on_nodes
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, node_set
from tests.virtual_time import VirtualClock, run

MANY = 200
UNINTERESTED = Interest(nodes=frozenset(), jobs=False)
SIGNING = secret("site-auth-jwt", jwt_key=b"k" * 64)


POD_OF_GPU: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "gpu-7",
        "uid": "uid-gpu-7",
        "labels": {"app.kubernetes.io/name": "slurmd"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"kind": "NodeSet", "uid": "uid-gpu", "controller": True}],
    },
    "spec": {"hostname": "x", "containers": [{"image": "sleep"}]},
    "status": {"phase": "Pending"},
}


class Watched(AppliedTo):
    """Remembers who is served."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.paths: list[str] = []

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        self.paths.append(path)
        return await super().request(method, path, **sent)


class WatchedClusters(Watched, WithCluster):
    """The same with SlurmClusters."""


def served_before(paths: list[str]) -> int:
    """How many objects of the tenant's are asked for before the first of somebody else's."""
    first = next(at for at, path in enumerate(paths) if "/namespaces/slurm/" in path)
    return len({path for path in paths[:first] if path.endswith("/status")})


@pytest.mark.attack(
    "create very many Tokens or RestApis, and change them, so that slurm-operator does not come to other tenants' objects",
    "namespaces have their turn one after the other",
)
def test_a_crowd_of_parts_holds_up_nobody_else() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api = api = Watched(clock, leaders.trouble)
        leaders.token_users = {"*": "*"}
        for number in range(MANY):
            api.put(_in_namespace("mallory", part("Token", f"t-{number}", secretRef=...)))
        for each in (SIGNING, part("Token", "theirs")):
            api.put(each)

        await leaders.lead(for_s=1)

        assert served_before(api.paths) <= 8

    run(main)


@pytest.mark.attack(
    "create very many SlurmClusters, so that other tenants' are not made",
    "namespaces have their turn one after the other",
)
def test_a_crowd_of_clusters_holds_up_nobody_else() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api = api = WatchedClusters(clock, leaders.trouble)
        for number in range(MANY):
            name = f"c-{number}"
            meta = {"name": name, "namespace": "mallory", "uid": f"uid-{name}", "generation": 1}
            body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": SIX_LINES}
            api._store(f"/apis/{API_VERSION}/namespaces/mallory/{PLURAL}/{name}", body)
        api.create_cluster(SIX_LINES)

        await leaders.lead(for_s=1)

        assert served_before(api.paths) <= 2

    run(main)


@pytest.mark.attack(
    "create NodeSets for as many Controllers as slurm-operator polls, and so have the workers of other tenants' Slurms neither drained nor replaced",
    "namespaces share the places fairly: one with few Slurms has all of them polled",
)
def test_a_crowd_of_slurms_takes_the_place_of_nobody_elses() -> None:
    async def main(clock: VirtualClock) -> None:
        @asynccontextmanager
        async def opens(_controller: str) -> AsyncIterator[object]:
            yield object()

        views = WorkerViews(
            opens,  # type: ignore[arg-type]  # nothing is asked of it
            clock=clock,
            wake=lambda _: None,
            set_aside=process(clock, Metrics("operator")).set_aside,
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(views.run(stop))
            for number in range(MOST_SLURMS + 1):
                views.follow(f"mallory/{number}", f"m-{number}", UNINTERESTED)
            await clock.sleep(10)
            views.follow("slurm/site", "theirs", UNINTERESTED)
            await clock.sleep(10)

            polled = [views.of(f"mallory/{number}") for number in range(MOST_SLURMS + 1)]
            assert views.of("slurm/site") is not None
            assert MOST_SLURMS - 1 == len(polled) - polled.count(None)
            stop.set()

    run(main)


@pytest.mark.attack(
    "change one's own NodeSet, or a pod that names another tenant's as its owner, again and again, so that slurm-operator plans that tenant's workers each time",
    "a change wakes the NodeSets of its own namespace only",
)
def test_what_a_tenant_changes_wakes_no_node_set_of_others() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes())
        operator.api.put(_in_namespace("mallory", node_set("mine", replicas=0)))
        operator.api.put(_in_namespace("mallory", POD_OF_GPU))
        await operator.lead(for_s=SETTLED_S)

        def change() -> None:
            operator.api.change("NodeSet", "mine", spec={"minReadySeconds": 1 + len(changes)})
            operator.api.change("Pod", "gpu-7", status={"message": str(len(changes))})
            changes.append(None)

        changes: list[None] = []
        looks: list[Counter[str]] = []
        for number_of_changes in (0, 100):
            then = {SETTLED_S + number: change for number in range(number_of_changes)}
            with capture_logs(processors=[merge_contextvars]) as log:
                await operator.lead(for_s=SETTLED_S + 110, then=then)
            done = (line["key"] for line in log if line["event"] == "reconcile.done")
            looks.append(Counter(done))

        calm, busy = looks
        assert 100 == len(changes)
        assert busy["uid-mine"] >= calm["uid-mine"] + 100
        assert busy["uid-gpu"] <= calm["uid-gpu"] + 2

    run(main)


@pytest.mark.attack(
    "have many Controllers whose Slurms answer nothing, so that other namespaces' partitions are never read, and so never removed",
    "of eight readings at once, a namespace has two",
)
def test_a_crowd_of_dumb_slurms_keeps_nobody_elses_from_being_read() -> None:
    async def main(clock: VirtualClock) -> None:
        asked: list[str] = []

        @asynccontextmanager
        async def opens(controller: str) -> AsyncIterator[Any]:
            asked.append(controller)
            await clock.sleep(120)
            raise Unavailable("GET", controller, message="no answer")
            yield

        stop, nothing = asyncio.Event(), frozenset[str]()
        readings = PartitionReadings(opens, clock=clock, wake=lambda _: None)
        async with asyncio.TaskGroup() as group:
            group.create_task(readings.run(stop))
            for number in range(MANY):
                name = f"c-{number}"
                readings.request(ObjectMetadata(name=name, namespace="mallory", uid=name), nothing)
            await clock.sleep(1)
            for number in range(6):
                name = f"site-{number}"
                readings.request(
                    ObjectMetadata(name=name, namespace=f"team-{number}", uid=name), nothing
                )
            await clock.sleep(1)
            stop.set()
        assert ["c-0", "c-1"] == [name.rpartition("/")[2] for name in asked[:2]]
        assert [f"team-{number}/site-{number}" for number in range(6)] == asked[2:]

    run(main)


def _in_namespace(namespace: str, made: Manifest) -> Manifest:
    made["metadata"]["namespace"] = namespace
    return made
