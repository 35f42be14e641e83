"""A reflector against a real API server, and whatever comes between the two."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from bridge.domain.model.pods import Pod
from bridge.domain.oddities import UNHEARD, About, Oddities
from bridge.domain.oddities import Kind as Called
from bridge.kube import decode, patches, writes
from bridge.kube.cache import Cache
from bridge.kube.client import KubeClient
from bridge.kube.watch import Reflector, Timing
from sandbox.client import Sandbox
from sandbox.options import Options
from tests import backups
from tests.kube.answers import answering
from tests.kube.bad_network import BadNetwork, bad_network
from tests.kube.conftest import Calls, CreatePod
from tests.kube.manifests import Manifest, container, pod
from tests.servers import running_sandbox, until

HASTY = Timing(first_pause=timedelta(milliseconds=10), longest_pause=timedelta(milliseconds=100))


@asynccontextmanager
async def reflecting(
    client: KubeClient, namespace: str, timing: Timing = HASTY, set_aside: Oddities = UNHEARD
) -> AsyncIterator[tuple[Cache[Pod], Reflector[Pod]]]:
    """A running reflector of the pods in one namespace."""
    cache = Cache(decode.PODS)
    selector = f"metadata.namespace={namespace}"
    reflector = Reflector(
        client, cache, field_selector=selector, timing=timing, set_aside=set_aside
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(reflector.run(stop))
        await asyncio.wait_for(cache.synced.wait(), 20)
        try:
            yield cache, reflector
        finally:
            stop.set()


@pytest.fixture
async def proxied(
    control_plane: Sandbox, tmp_path: Path
) -> AsyncIterator[tuple[BadNetwork, KubeClient]]:
    async with (
        bad_network(control_plane.kubeconfig, tmp_path) as (network, kubeconfig),
        KubeClient.open(
            str(kubeconfig), request_timeout_s=2, user_agent="slurm-bridge-tests/1"
        ) as client,
    ):
        yield network, client


def names_in(cache: Cache[Pod]) -> set[str]:
    return {pod.name for pod in cache.values()}


async def test_a_list_of_several_pages_is_complete(
    client: KubeClient, namespace: str, create_pod: CreatePod
) -> None:
    created = [create_pod(pod(f"pod-{number}")) for number in range(7)]

    async with reflecting(client, namespace, replace(HASTY, page_size=3)) as (cache, _):
        assert {p.uid: p for p in created} == {p.uid: p for p in cache.values()}


async def test_changes_come_in_order_and_none_is_missing(
    client: KubeClient, namespace: str, create_pod: CreatePod
) -> None:
    changes: list[tuple[Pod | None, Pod | None]] = []
    async with reflecting(client, namespace) as (cache, _):
        cache.subscribe(lambda old, new: changes.append((old, new)))
        created = create_pod(pod("a"))
        released = await writes.patch_pod(client, created, patches.release(created))
        await writes.delete_pod(client, namespace=namespace, name="a", uid=created.uid, grace_s=0)
        await until(lambda: changes and changes[-1][1] is None, 30)

    assert [(None, created), (created, released)] == changes[:2]
    assert [new for _, new in changes[:-1]] == [old for old, _ in changes[1:]]
    assert 0 == len(cache)


async def test_a_pod_of_more_than_a_megabyte_is_no_trouble(
    client: KubeClient, namespace: str, create_pod: CreatePod
) -> None:
    async with reflecting(client, namespace) as (cache, _):
        create_pod(pod("big", containers=[container(args=["x" * 1_200_000])]))
        create_pod(pod("after"))

        await until(lambda: names_in(cache) == {"big", "after"}, 10)


async def test_a_watch_that_the_server_ends_goes_on_where_it_was(
    client: KubeClient, calls: Calls, namespace: str, create_pod: CreatePod
) -> None:
    async with reflecting(client, namespace, replace(HASTY, watch_s=1)) as (cache, _):
        for number in range(1, 4):
            create_pod(pod(f"pod-{number}"))
            await until(lambda: calls.count(("WATCH pods", "ok")) > number, 20)  # noqa: B023  # at once
        assert {"pod-1", "pod-2", "pod-3"} == names_in(cache)

    assert 1 == calls.count(("LIST pods", "ok"))


async def test_bookmarks_move_the_version_on(client: KubeClient, create_pod: CreatePod) -> None:
    """Without them a quiet watch would fall behind what the API server remembers; one comes before it hangs up."""
    async with reflecting(client, "nowhere", replace(HASTY, watch_s=4)) as (_, reflector):
        listed = reflector._version
        create_pod(pod("elsewhere"))

        await until(lambda: reflector._version != listed, 60)


async def test_a_silent_connection_is_given_up(
    proxied: tuple[BadNetwork, KubeClient], namespace: str, create_pod: CreatePod
) -> None:
    network, client = proxied
    timing = replace(HASTY, idle_timeout_s=0.5)
    async with reflecting(client, namespace, timing) as (cache, reflector):
        network.stall()
        before = network.connections
        create_pod(pod("a"))
        await until(lambda: network.connections > before, 30)
        assert 0 == len(cache)
        await until(lambda: reflector.check() is not None, 10)
        assert "nothing heard for" in (reflector.check() or "")

        network.flow()

        await until(lambda: names_in(cache) == {"a"}, 10)
        assert reflector.check() is None


async def test_what_happens_while_the_connection_is_broken_is_not_missed(
    proxied: tuple[BadNetwork, KubeClient],
    control_plane: Sandbox,
    namespace: str,
    create_pod: CreatePod,
) -> None:
    network, client = proxied
    create_pod(pod("a", finalizers=()))
    with capture_logs() as logs:
        async with reflecting(client, namespace) as (cache, _):
            network.refuse()
            create_pod(pod("b"))
            delete(control_plane, namespace, "a")
            network.flow()

            await until(lambda: names_in(cache) == {"b"}, 10)

    assert 1 == [entry["event"] for entry in logs].count("reflector.listed")


async def test_after_410_a_new_list_tells_what_is_gone(
    proxied: tuple[BadNetwork, KubeClient],
    control_plane: Sandbox,
    namespace: str,
    create_pod: CreatePod,
) -> None:
    """The API server's memory of changes begins anew when it starts: a version from before is too old."""
    network, client = proxied
    create_pod(pod("a", finalizers=()))
    create_pod(pod("b"))
    gone: list[str] = []
    with capture_logs() as logs:
        async with reflecting(client, namespace) as (cache, _):
            cache.subscribe(lambda old, new: gone.append(old.name) if old and not new else None)
            network.refuse()
            delete(control_plane, namespace, "a")
            create_pod(pod("c"))
            control_plane.restart("apiserver", signal="KILL")
            network.flow()

            await until(lambda: names_in(cache) == {"b", "c"}, 20)

    assert ["a"] == gone
    assert 2 == [entry["event"] for entry in logs].count("reflector.listed")
    assert any("410 Expired" in entry.get("error", "") for entry in logs)


async def test_an_api_server_that_dies_is_followed_again(
    client: KubeClient, control_plane: Sandbox, namespace: str, create_pod: CreatePod
) -> None:
    async with reflecting(client, namespace) as (cache, reflector):
        create_pod(pod("before"))
        control_plane.restart("apiserver", signal="KILL")
        create_pod(pod("after"))

        await until(lambda: names_in(cache) == {"before", "after"}, 20)
        assert reflector.check() is None


async def test_not_listed_yet_is_not_ready(
    proxied: tuple[BadNetwork, KubeClient], namespace: str
) -> None:
    network, client = proxied
    network.refuse()
    cache = Cache(decode.PODS)
    reflector = Reflector(client, cache, timing=HASTY)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(reflector.run(stop))
        await until(lambda: "no answer" in (reflector.check() or ""), 10)
        assert not cache.synced.is_set()
        network.flow()
        await until(cache.synced.is_set, 60)
        assert reflector.check() is None
        stop.set()


async def test_rights_that_come_later_are_noticed(
    control_plane: Sandbox, namespace: str, create_pod: CreatePod
) -> None:
    create_pod(pod("a"))
    kubeconfig = control_plane.user_kubeconfig("watcher")
    async with KubeClient.open(
        str(kubeconfig), request_timeout_s=5, user_agent="slurm-bridge-tests/1"
    ) as client:
        cache = Cache(decode.PODS)
        selector = f"metadata.namespace={namespace}"
        reflector = Reflector(client, cache, field_selector=selector, timing=HASTY)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run(stop))
            await until(lambda: "403 Forbidden" in (reflector.check() or ""), 10)
            command = ("create", "clusterrolebinding", "watcher")
            control_plane.kubectl(*command, "--clusterrole=view", "--user=watcher")
            await until(lambda: names_in(cache) == {"a"}, 20)
            stop.set()


async def test_bound_pods_and_nodes_are_reflected_too(
    client: KubeClient, namespace: str, create_pod: CreatePod
) -> None:
    create_pod(pod("unbound"))
    create_pod(pod("bound", gates=(), finalizers=(), nodeName="plain-0"))
    bound, nodes = Cache(decode.BOUND_PODS), Cache(decode.NODES)
    on_node = bound.index(lambda pod: [pod.kube_node])
    stop = asyncio.Event()
    selector = f"spec.nodeName!=,metadata.namespace={namespace}"
    async with asyncio.TaskGroup() as group:
        group.create_task(Reflector(client, bound, field_selector=selector).run(stop))
        group.create_task(Reflector(client, nodes).run(stop))
        await asyncio.wait_for(bound.synced.wait(), 10)
        await asyncio.wait_for(nodes.synced.wait(), 10)
        stop.set()

    assert ["bound"] == [pod.name for pod in on_node.get("plain-0")]
    assert nodes.get("node-0") is not None


def delete(control_plane: Sandbox, namespace: str, name: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    control_plane.admin.delete(path, gracePeriodSeconds=0)


def as_stored(name: str, version: str, **metadata: object) -> Manifest:
    manifest = pod(name)
    manifest["metadata"] |= {
        "namespace": "ns",
        "uid": f"uid-of-{name}",
        "resourceVersion": version,
        "creationTimestamp": "2026-01-01T12:00:00Z",
        **metadata,
    }
    return manifest


def event(kind: str, thing: Manifest) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


class OddServer:
    """Lists what it is told to, and sends what it is told to in each watch before it hangs up."""

    def __init__(self, lists: list[list[Manifest]], watches: list[list[bytes]]) -> None:
        self._lists, self._watches = lists, watches
        self.asked: list[str] = []
        """`LIST`, or the version a watch was to begin at."""

    async def pods(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") == "1":  # asks only for the version
            return web.json_response({"metadata": {"resourceVersion": "12"}, "items": []})
        if "watch" not in request.query:
            self.asked.append("LIST")
            items = self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": items})
        self.asked.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        for line in self._watches.pop(0) if self._watches else []:
            await response.write(line)
        return response


@asynccontextmanager
async def reflecting_odd(
    server: OddServer, set_aside: Oddities = UNHEARD
) -> AsyncIterator[Cache[Pod]]:
    async with (
        answering({"/api/v1/pods": server.pods}) as client,
        reflecting(client, "ns", set_aside=set_aside) as (cache, _),
    ):
        yield cache


async def test_one_unreadable_object_stops_nobody() -> None:
    """It stays as it was last understood; the log names it."""
    odd = as_stored("odd", "2", labels=["no map"])
    server = OddServer(
        lists=[[as_stored("odd", "1"), as_stored("b", "1")], [odd, as_stored("c", "1")]],
        watches=[
            [event("MODIFIED", odd), event("MODIFIED", as_stored("b", "3"))],
            [event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})],
        ],
    )
    with capture_logs() as logs:
        async with reflecting_odd(server) as cache:
            await until(lambda: names_in(cache) == {"odd", "c"}, 10)

    assert ["LIST", "10", "3", "LIST"] == server.asked[:4]
    complaints = [e["error"] for e in logs if e["event"] == "reflector.object_unreadable"]
    assert 2 == len(complaints)
    assert all("Pod ns/odd" in text and "$.metadata.labels" in text for text in complaints)


class Aside:
    """Writes down what is set aside."""

    def __init__(self) -> None:
        self.now: dict[str, About | None] = {}
        self.said: list[str] = []

    def tell(self, kind: Called, name: str, reason: str, *, about: About | None = None) -> None:
        self.said.append(f"{kind} {name}: {reason}")
        self.now[name] = about

    def crashed(
        self, kind: Called, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        raise NotImplementedError

    def settled(self, kind: Called, name: str) -> None:
        del self.now[name]


async def test_an_unreadable_object_is_set_aside_until_it_can_be_read() -> None:
    """Or is gone; and one that has not even a name is skipped, and the rest of its list read."""
    odd = as_stored("odd", "1", labels=["no map"])
    expired = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    server = OddServer(
        lists=[[{"kind": "Pod"}, odd, as_stored("b", "1")], [as_stored("odd", "3")]],
        watches=[
            [
                event("ADDED", as_stored("late", "11", labels=["no map"])),
                event("DELETED", as_stored("b", "12", labels=["no map"])),
            ],
            [expired],
        ],
    )
    aside = Aside()
    async with reflecting_odd(server, aside) as cache:
        assert {"b"} == names_in(cache)
        await until(lambda: names_in(cache) == {"odd"}, 10)
        await until(lambda: set(aside.now) == {"without a name"}, 10)

    assert "pod ns/odd: " in aside.said[1]
    assert "$.metadata.labels" in aside.said[1]
    assert any(said.startswith("pod ns/late: ") for said in aside.said)  # until the next list


async def test_an_event_can_be_told_of_an_unreadable_object() -> None:
    server = OddServer(lists=[[as_stored("odd", "1", labels=["no map"])]], watches=[])
    aside = Aside()
    async with reflecting_odd(server, aside):
        told = aside.now["ns/odd"]

    assert About(kind="Pod", namespace="ns", name="odd", uid="uid-of-odd") == told


async def test_a_version_of_an_unreadable_object_is_not_asked_for_again() -> None:
    odd = as_stored("odd", "11", labels=["no map"])
    server = OddServer(lists=[[]], watches=[[event("ADDED", odd)]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "11"] == server.asked[:3]


@pytest.mark.parametrize(
    "last_words",
    [
        pytest.param(b"<html>\n", id="no event"),
        pytest.param(event("RENAMED", as_stored("a", "11")), id="an unknown event"),
        pytest.param(event("ADDED", {"metadata": 1}), id="no object"),
        pytest.param(event("BOOKMARK", {}), id="no version"),
        pytest.param(event("ERROR", {"kind": "Status", "code": 400}), id="a refusal"),
    ],
)
async def test_a_watch_that_makes_no_sense_is_followed_by_a_list(last_words: bytes) -> None:
    server = OddServer(lists=[[]], watches=[[last_words]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "LIST"] == server.asked[:3]


async def test_a_server_error_is_no_reason_to_list_again() -> None:
    busy = {"kind": "Status", "code": 500, "reason": "InternalError"}
    first = event("ADDED", as_stored("a", "11"))
    server = OddServer(lists=[[]], watches=[[first, event("ERROR", busy)]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "11"] == server.asked[:3]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="hangs up"),
        pytest.param([event("ERROR", {"kind": "Status", "code": 403})], id="refuses"),
    ],
)
async def test_a_server_that_lists_but_does_not_let_us_watch_is_not_asked_in_a_circle(
    words: list[bytes],
) -> None:
    server = OddServer(lists=[[]], watches=[words] * 100)
    with capture_logs() as logs:
        async with reflecting_odd(server):
            await until(lambda: server.asked.count("10") > 5, 10)

    pauses = [e["retry_in_s"] for e in logs if e["event"] == "reflector.interrupted"]
    assert 3 * pauses[0] < pauses[-1] <= HASTY.longest_pause.total_seconds()


async def test_after_a_restore_of_etcd_what_is_undone_is_forgotten(tmp_path: Path) -> None:
    """A watch from the version it had would say nothing, of the pods that are there again neither."""
    with running_sandbox(Options(slurm=False, bridge=False, nodes=0)) as sandbox:
        pods = "/api/v1/namespaces/default/pods"
        await until(
            lambda: sandbox.admin.get("/api/v1/namespaces/default/serviceaccounts")["items"], 60
        )
        sandbox.admin.create(pods, pod("stays"))
        sandbox.admin.create(pods, pod("comes-back", finalizers=()))
        await asyncio.to_thread(backups.keep_kubernetes, sandbox, tmp_path / "etcd")
        async with (
            KubeClient.open(
                str(sandbox.kubeconfig), request_timeout_s=5, user_agent="slurm-bridge-tests/1"
            ) as client,
            reflecting(client, "default") as (cache, _),
        ):
            sandbox.admin.delete(f"{pods}/comes-back", gracePeriodSeconds=0)
            for number in range(
                200
            ):  # what the restored API server does by itself must not reach our version
                sandbox.admin.create(pods, pod(f"is-undone-{number}"))
            await until(lambda: len(cache) == 201, 60)

            await asyncio.to_thread(backups.put_back_kubernetes, sandbox, tmp_path / "etcd")

            await until(lambda: names_in(cache) == {"stays", "comes-back"}, 60)
