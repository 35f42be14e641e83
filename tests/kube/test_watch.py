"""A reflector against a real API server, and whatever comes between the two."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.domain.model.pods import Pod
from bridge.kube import decode, patches, writes
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.kube import node_objects
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.watch import Reflector
from tests import backups
from tests.kube.bad_network import BadNetwork, bad_network
from tests.kube.conftest import Calls, CreatePod
from tests.kube.manifests import container, pod
from tests.kube.reflecting import HASTY, names_in, reflecting
from tests.servers import running_sandbox, until


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
    bound, nodes = Cache(decode.BOUND_PODS), Cache(node_objects.NODES)
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
