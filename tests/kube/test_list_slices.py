"""A list is decoded in slices, between which others have their turn."""

import asyncio
import json
import threading

import msgspec
import pytest

from slurmruntime.kube import resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import Change, Json, ObjectVersion, ResourceKind
from slurmruntime.kube.watch import Reflector
from slurmruntime.model.objects import KubeObject


def large(number: int, padding: int) -> msgspec.Raw:
    metadata = {
        "name": f"n{number}",
        "uid": f"u{number}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"a": "x" * padding},
    }
    return msgspec.Raw(json.dumps({"metadata": metadata}).encode())


@pytest.mark.parametrize(
    ("objects", "padding", "most"),
    [
        pytest.param(500, 0, 51, id="small ones by their number"),
        pytest.param(60, 150_000, 2, id="large ones by their bytes"),
    ],
)
async def test_others_have_their_turn_while_a_page_is_decoded(
    objects: int, padding: int, most: int
) -> None:
    decoded_at_once = [0]

    def read(body: Json) -> KubeObject:
        decoded_at_once[-1] += 1
        return resource.kube_object(body)

    async def others() -> None:
        while True:
            await asyncio.sleep(0)
            decoded_at_once.append(0)

    kind = ResourceKind(path="/p", read=read, identify=lambda o: ObjectVersion(o.uid, "1", o.uid))
    reflector = Reflector(KubeClient.__new__(KubeClient), Cache(kind))
    items = [large(number, padding) for number in range(objects)]
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(others())
        await reflector._take(items, set())
        beside.cancel()

    assert objects == sum(decoded_at_once)
    assert max(decoded_at_once) <= most


async def test_others_have_their_turn_while_one_object_of_a_megabyte_is_decoded() -> None:
    others_had_it = threading.Event()
    waited: list[bool] = []

    def read(body: Json) -> KubeObject:
        waited.append(others_had_it.wait(20))
        return resource.kube_object(body)

    cache = Cache(
        ResourceKind(path="/p", read=read, identify=lambda o: ObjectVersion(o.uid, "1", o.uid))
    )
    reflector = Reflector(KubeClient.__new__(KubeClient), cache)
    asyncio.get_running_loop().call_later(0.01, others_had_it.set)

    await reflector._apply(Change.ADDED, large(1, 1_000_000))

    assert [True] == waited
    assert cache.get("u1") is not None
