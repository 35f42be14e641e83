"""A reflector that runs while a test looks at its cache."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from bridge.domain.model.pods import Pod
from bridge.kube import decode
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.watch import Reflector, Timing
from slurmruntime.values.oddities import UNHEARD, Oddities

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


def names_in(cache: Cache[Pod]) -> set[str]:
    return {pod.name for pod in cache.values()}
