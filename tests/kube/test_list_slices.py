"""A list is decoded in slices, between which others have their turn."""

import asyncio
import json

import msgspec
import pytest

from slurmruntime.kube import resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import Json, ObjectIdentity, ResourceKind
from slurmruntime.kube.watch import Reflector
from slurmruntime.model.objects import KubeObject


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

    kind = ResourceKind(path="/p", read=read, identify=lambda o: ObjectIdentity(o.uid, "1", o.uid))
    reflector = Reflector(KubeClient.__new__(KubeClient), Cache(kind))
    items = [
        msgspec.Raw(
            json.dumps(
                {
                    "metadata": {
                        "name": f"n{number}",
                        "uid": f"u{number}",
                        "resourceVersion": "1",
                        "creationTimestamp": "2026-01-01T00:00:00Z",
                        "annotations": {"a": "x" * padding},
                    }
                }
            ).encode()
        )
        for number in range(objects)
    ]
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(others())
        await reflector._take(items, set())
        beside.cancel()

    assert objects == sum(decoded_at_once)
    assert max(decoded_at_once) <= most
