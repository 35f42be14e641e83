"""SlurmClusters on a real API server: what is made of them, what is left to others, and how they go."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from bridge.reconcile.set_aside import SetAside
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmoperator.clusters.loop import ClusterLoop
from slurmoperator.clusters.slurm_cluster import SLURM_CLUSTERS, WatchedCluster
from slurmoperator.daemons.part import PARTS, WatchedPart
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.objects.definitions import definition
from slurmoperator.objects.kinds import SLURM_CLUSTER
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, PLURAL
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from tests.make import processes
from tests.servers import wait_until
from tests.slurmoperator.examples import BY_NAME, path
from tests.slurmoperator.served import DEADLINE_S, DEFINITIONS, WRITES, answers

SIX_LINES: dict[str, Any] = {"nodes": [{"name": "cpu", "replicas": 2}], "login": {}}
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


def where(namespace: str, name: str = "") -> str:
    found = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"
    return f"{found}/{name}" if name else found


def body(namespace: str, spec: dict[str, Any], name: str = "slurm") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def whole(served: Sandbox) -> Iterator[Sandbox]:
    """The API server, with SlurmClusters besides the six kinds."""
    admin, name = served.admin, SLURM_CLUSTER.definition_name
    wait_until(lambda: not answers(admin, f"{DEFINITIONS}/{name}"), DEADLINE_S, sandbox=served)
    admin.create(DEFINITIONS, definition(SLURM_CLUSTER))
    wait_until(lambda: answers(admin, where("default")), DEADLINE_S, sandbox=served)
    yield served
    admin.delete(f"{DEFINITIONS}/{name}")
    wait_until(lambda: not answers(admin, f"{DEFINITIONS}/{name}"), DEADLINE_S, sandbox=served)


class World:
    """The loop, and caches that are as new as its next look."""

    def __init__(self, client: KubeClient, admin: Api, namespace: str, calls: list[str]) -> None:
        self.admin = admin
        self.namespace = namespace
        self._calls = calls
        clock, metrics = SystemClock(), Metrics("test")
        set_aside = SetAside(metrics, clock)
        self._clusters: Cache[WatchedCluster] = Cache(SLURM_CLUSTERS, set_aside)
        self._parts: dict[str, Cache[WatchedPart]] = {
            kind: Cache(watched, set_aside) for kind, watched in PARTS.items()
        }
        self._node_sets: Cache[WatchedNodeSet] = Cache(NODE_SETS, set_aside)
        self._loop = ClusterLoop(
            kube=client,
            clusters=self._clusters,
            parts=self._parts,
            node_sets=self._node_sets,
            served=NamespaceScope(),
            process=processes.process(clock, metrics, set_aside),
        )

    async def look(self) -> list[str]:
        """Look at the cluster, and return the writes that this took, but for those of its status and Events."""
        caches: dict[str, Cache[Any]] = {**self._parts, "NodeSet": self._node_sets}
        for kind, cache in caches.items():
            self._fill(cache, path(BY_NAME[kind], self.namespace))
        self._fill(self._clusters, where(self.namespace))
        self._calls.clear()
        for found in self._clusters.values():  # none once the garbage collector was faster
            await self._loop.reconcile(found.metadata.uid)
        reports = ("status", "events")
        writes = [call for call in self._calls if call.startswith(WRITES)]
        return [write for write in writes if not any(report in write for report in reports)]

    def _fill(self, cache: Cache[Any], listed: str) -> None:
        found = [
            cache.kind.read(msgspec.json.encode(item)) for item in self.admin.get(listed)["items"]
        ]
        for each in found:
            cache.put_listed(each)
        cache.retain({cache.kind.identify(each).key for each in found})

    def told(self, condition: str) -> tuple[str, str, str]:
        status = self.admin.get(where(self.namespace, "slurm"))["status"]
        found = next(each for each in status["conditions"] if each["type"] == condition)
        return found["status"], found["reason"], found.get("message", "")

    def part(self, kind: str, name: str) -> Any:
        return self.admin.get(path(BY_NAME[kind], self.namespace, name))

    def has(self, kind: str, name: str) -> bool:
        return answers(self.admin, path(BY_NAME[kind], self.namespace, name))

    def change(self, change: dict[str, Any]) -> None:
        self.admin.patch(where(self.namespace, "slurm"), change)


@asynccontextmanager
async def world(served: Sandbox, namespace: str, spec: dict[str, Any]) -> AsyncIterator[World]:
    served.admin.create(where(namespace), body(namespace, spec))
    calls: list[str] = []
    async with KubeClient.open(
        str(served.kubeconfig),
        request_timeout_s=10,
        user_agent="slurm-bridge-operator/1",
        on_call=lambda operation, *_: calls.append(operation),
    ) as client:
        found = World(client, served.admin, namespace, calls)
        try:
            yield found
        finally:
            if answers(served.admin, where(namespace, "slurm")):
                found.change({"metadata": {"finalizers": None}})


async def test_six_lines_are_made_once_and_a_second_look_writes_nothing(
    whole: Sandbox, namespace: str
) -> None:
    async with world(whole, namespace, SIX_LINES) as cluster:
        first = await cluster.look()
        assert [
            "PATCH slurmclusters",
            "PATCH secrets",
            "PATCH controllers",
            "PATCH restapis",
            "PATCH nodesets",
            "PATCH loginsets",
        ] == first
        assert [] == await cluster.look()
        assert ("True", "Accepted", "") == cluster.told("Accepted")
        status, reason, message = cluster.told("Ready")
        assert ("False", "NotReady") == (status, reason)
        assert message.startswith("Controller slurm: slurm-operator has not reported its state yet")
        cluster.admin.patch(
            f"{path(BY_NAME['NodeSet'], namespace, 'slurm-worker-cpu')}/status",
            {"status": {"desired": 2, "readyReplicas": 1}},
        )
        await cluster.look()
        found = cluster.admin.get(where(namespace, "slurm"))["status"]
        assert (2, 1) == (found["workers"], found["readyWorkers"])


async def test_a_field_that_somebody_else_has_set_is_theirs_until_it_is_handed_over(
    whole: Sandbox, namespace: str
) -> None:
    async with world(whole, namespace, SIX_LINES) as cluster:
        await cluster.look()
        whole.kubectl("scale", "nodeset/slurm-worker-cpu", "--replicas=5", "--namespace", namespace)
        for replicas in (2, 3):
            cluster.change({"spec": {"nodes": [{"name": "cpu", "replicas": replicas}]}})
            await cluster.look()
            assert [] == await cluster.look()
            assert 5 == cluster.part("NodeSet", "slurm-worker-cpu")["spec"]["replicas"]
        status, reason, message = cluster.told("Accepted")
        assert ("True", "FieldsOfOthers") == (status, reason)
        assert (
            "NodeSet slurm-worker-cpu: another manager owns spec.replicas, which is left as it is"
            == message
        )
        cluster.change({"spec": {"config": {"MinJobAge": 600}}})
        await cluster.look()
        assert "MinJobAge=600" in cluster.part("Controller", "slurm")["spec"]["extraConf"]

        cluster.change({"metadata": {"annotations": {TAKE_OVER_ANNOTATION: "true"}}})
        await cluster.look()
        assert 3 == cluster.part("NodeSet", "slurm-worker-cpu")["spec"]["replicas"]
        assert ("True", "Accepted", "") == cluster.told("Accepted")


async def test_what_somebody_adds_stays(whole: Sandbox, namespace: str) -> None:
    async with world(whole, namespace, SIX_LINES) as cluster:
        await cluster.look()
        added = {"spec": {"inplaceReconfigure": True}, "metadata": {"labels": {"team": "a"}}}
        cluster.admin.patch(path(BY_NAME["Controller"], namespace, "slurm"), added)
        cluster.change({"spec": {"config": {"MinJobAge": 600}}})
        await cluster.look()

        found = cluster.part("Controller", "slurm")
        assert found["spec"]["inplaceReconfigure"]
        assert "a" == found["metadata"]["labels"]["team"]
        assert ("True", "Accepted", "") == cluster.told("Accepted")


async def test_what_it_no_longer_names_goes_and_nothing_else(
    whole: Sandbox, namespace: str
) -> None:
    two = [*SIX_LINES["nodes"], {"name": "gpu", "gres": "gpu:1"}]
    async with world(whole, namespace, {**SIX_LINES, "nodes": two}) as cluster:
        await cluster.look()
        mine = {**cluster.part("NodeSet", "slurm-worker-gpu"), "status": {}}
        mine["metadata"] = {"name": "mine", "namespace": namespace}
        cluster.admin.create(path(BY_NAME["NodeSet"], namespace), mine)
        cluster.change({"spec": {"nodes": SIX_LINES["nodes"], "login": None}})

        assert ["PATCH controllers", "DELETE loginsets", "DELETE nodesets", "DELETE secrets"] == (
            await cluster.look()
        )
        assert not cluster.has("LoginSet", "slurm-login")
        assert not cluster.has("NodeSet", "slurm-worker-gpu")
        assert cluster.has("NodeSet", "mine")
        assert cluster.has("NodeSet", "slurm-worker-cpu")


async def test_an_object_that_somebody_else_made_is_left_alone(
    whole: Sandbox, namespace: str
) -> None:
    theirs = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "RestApi"}
    metadata = {"name": "slurm", "namespace": namespace}
    spec = {"controllerRef": {"name": "other"}, "replicas": 7}
    whole.admin.create(
        path(BY_NAME["RestApi"], namespace), {**theirs, "metadata": metadata, "spec": spec}
    )
    async with world(whole, namespace, SIX_LINES) as cluster:
        await cluster.look()

        status, reason, message = cluster.told("Accepted")
        assert ("False", "NotOurs") == (status, reason)
        assert f"RestApi {namespace}/slurm exists already and was not created by us" in message
        assert 7 == cluster.part("RestApi", "slurm")["spec"]["replicas"]


async def test_a_deleted_cluster_waits_for_its_workers_and_then_all_else_goes(
    whole: Sandbox, namespace: str
) -> None:
    async with world(whole, namespace, SIX_LINES) as cluster:
        await cluster.look()
        node_set = path(BY_NAME["NodeSet"], namespace, "slurm-worker-cpu")
        held = {"metadata": {"finalizers": ["slurm-bridge.dev/workers"]}}
        cluster.admin.patch(node_set, held)
        cluster.admin.delete(where(namespace, "slurm"))

        assert ["DELETE nodesets"] == await cluster.look()
        assert [] == await cluster.look()
        status, reason, message = cluster.told("Ready")
        assert ("False", "Deleting") == (status, reason)
        assert "waiting for the jobs on the workers of NodeSet slurm-worker-cpu" in message
        assert cluster.has("Controller", "slurm")

        cluster.admin.patch(node_set, {"metadata": {"finalizers": None}})
        await cluster.look()
        assert not answers(cluster.admin, where(namespace, "slurm"))
        kinds = ("Controller", "RestApi")  # by the garbage collector
        wait_until(
            lambda: not any(cluster.has(kind, "slurm") for kind in kinds),
            DEADLINE_S,
            sandbox=whole,
        )


async def test_an_orphaning_deletion_leaves_all_parts(whole: Sandbox, namespace: str) -> None:
    async with world(whole, namespace, SIX_LINES) as cluster:
        await cluster.look()
        whole.kubectl(
            *("delete", "slurmcluster/slurm", "--cascade=orphan", "--wait=false"),
            *("--namespace", namespace),
        )
        async with asyncio.timeout(DEADLINE_S):
            while answers(cluster.admin, where(namespace, "slurm")):
                assert "DELETE nodesets" not in await cluster.look()
        for kind, name in (("NodeSet", "slurm-worker-cpu"), ("Controller", "slurm")):
            found = cluster.part(kind, name)["metadata"]
            assert "deletionTimestamp" not in found
            assert not found.get("ownerReferences")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodes": [{"name": "all"}]}, "all is reserved for all nodes"),
        ({"nodes": [{"name": "a", "partitions": ["b"]}]}, "listed in spec.partitions"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "spec.nodes[1]: Duplicate"),
        ({"nodes": [{"name": "A"}]}, "spec.nodes[0].name"),
        ({"nodes": [{"name": "a" * 38}]}, "expected a name"),
        ({"nodes": [{"name": "a", "replicas": 70_000}]}, "spec.nodes[0].replicas"),
        ({"partitions": [{"name": "Default"}]}, "DEFAULT is reserved"),
        (
            {"partitions": [{"name": "a", "default": True}, {"name": "b", "default": True}]},
            "one default partition",
        ),
        ({"partitions": [{"name": "a", "config": {"Nodes": "ALL"}}]}, "no field of their own"),
        ({"partitions": [{"name": "a", "maxTime": "soon"}]}, "spec.partitions[0].maxTime"),
        ({"config": {"PartitionName": "a"}}, "spec.config"),
        ({"config": {"Min Job": "a"}}, "spec.config"),
        ({"config": {"MinJobAge": "1\nNodeName=a"}}, "spec.config.MinJobAge"),
        ({"configFiles": {"slurm.conf": ""}}, "spec.configFiles"),
        ({"accounting": {}}, "either external or storage"),
        ({"image": "slurmctld:1"}, "spec.image"),
        ({"version": "1"}, "spec.version"),
        ({"image": "{daemon}:{version}"}, "spec.version"),
        ({"state": {"size": "large"}}, "spec.state.size"),
        ({"tokens": [{"name": "a", "lifetime": "an hour"}]}, "spec.tokens[0].lifetime"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"node": []}, 'unknown field "spec.node"'),
    ],
)
def test_what_cannot_work_is_refused_with_its_path(
    whole: Sandbox, namespace: str, spec: dict[str, Any], said: str
) -> None:
    name = "s" * 20 if said == "expected a name" else "slurm"
    with pytest.raises(ApiError) as refused:
        whole.admin.request("POST", where(namespace), body(namespace, spec, name), params=STRICT)

    assert said.replace("expected a name", "expected shorter node names") in refused.value.message


def test_the_state_of_a_cluster_stays_where_it_is(whole: Sandbox, namespace: str) -> None:
    whole.admin.create(where(namespace), body(namespace, {}))
    with pytest.raises(ApiError, match="without its state"):
        whole.admin.patch(where(namespace, "slurm"), {"spec": {"state": {"persistent": False}}})
    whole.admin.delete(where(namespace, "slurm"))
