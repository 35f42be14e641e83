"""Which of several servers a request goes to."""

import asyncio
import gc

import pytest

from slurmclient import Client
from slurmclient.fake import LOST_REPLY, FakeSlurm


async def test_calls_in_parallel_all_find_the_server_that_is_left() -> None:
    async with FakeSlurm(nodes=3) as left:
        gone = FakeSlurm(nodes=2)
        await gone.__aenter__()
        async with Client((gone.url, left.url), token="any", attempts=1) as slurm:  # noqa: S106  # of a fake
            assert 2 == len(await slurm.nodes.list())
            await gone.__aexit__()
            found = await asyncio.gather(*(slurm.nodes.list() for _ in range(8)))
            assert [3] * 8 == [len(nodes) for nodes in found]


async def test_after_lost_replies_the_next_server_is_preferred() -> None:
    async with (
        FakeSlurm(nodes=2) as first,
        FakeSlurm(nodes=3) as second,
        Client((first.url, second.url), token="any", attempts=2) as slurm,  # noqa: S106  # of a fake
    ):
        await slurm.dialect()
        first.fail_next("slurm_get_nodes", LOST_REPLY, times=4)
        found = await asyncio.gather(*(slurm.nodes.list() for _ in range(4)))
        assert [3] * 4 == [len(nodes) for nodes in found]


async def test_an_invalid_url_among_several_leaves_nothing_open() -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        async with Client(("http://127.0.0.1:1", "nonsense")):
            pass
    gc.collect()  # an open pool would complain here, and warnings are errors
