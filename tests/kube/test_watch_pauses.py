"""How long a reflector waits before it asks again, in virtual time."""

import asyncio
from typing import Any, cast

from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import TooManyRequests
from slurmruntime.kube.node_objects import NODES
from slurmruntime.kube.watch import Reflector
from tests import virtual_time
from tests.virtual_time import VirtualClock


class Busy:
    """An API server behind a proxy that asks for a day's patience."""

    def __init__(self, clock: VirtualClock) -> None:
        self.asked_at: list[float] = []
        self._clock = clock

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.asked_at.append(self._clock.monotonic())
        raise TooManyRequests(method, path, status=429, retry_after_s=86_400.0)


def test_retry_after_is_obeyed_for_five_minutes_at_most() -> None:
    pauses: list[float] = []

    async def main(clock: VirtualClock) -> None:
        busy, stop = Busy(clock), asyncio.Event()
        reflector = Reflector(
            cast("KubeClient", busy), Cache(NODES), jitter=lambda: 0.0, on_turn=pauses.append
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run(stop))
            await clock.sleep(901)
            stop.set()
        assert [0.0, 300.0, 600.0, 900.0] == busy.asked_at

    virtual_time.run(main)
    assert {300.0} == set(pauses), "it says for how long it will be silent"
