"""Which of several servers a request goes to."""

import asyncio
import gc

import pytest

from slurmclient import Client, Malformed, Unavailable
from slurmclient.fake import DOWN, LOST_REPLY, FakeSlurm


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


async def test_after_an_answer_that_slurm_is_down_the_next_server_is_preferred() -> None:
    async with (
        FakeSlurm(nodes=2) as first,
        FakeSlurm(nodes=3) as second,
        Client((first.url, second.url), token="any", attempts=1) as slurm,  # noqa: S106  # of a fake
    ):
        await slurm.dialect()
        first.fail_next("slurm_get_nodes", DOWN)
        with pytest.raises(Unavailable):
            await slurm.nodes.list()
        assert 3 == len(await slurm.nodes.list())


async def test_all_addresses_are_named_if_no_server_can_be_reached() -> None:
    urls = ("http://127.0.0.1:9", "http://user:secret@127.0.0.1:7")
    async with Client(urls, attempts=1) as nobody:
        with pytest.raises(Unavailable) as raised:
            await nobody.ping()
    assert "http://127.0.0.1:9" in raised.value.words
    assert "http://127.0.0.1:7" in raised.value.words
    assert "secret" not in raised.value.words


async def test_an_answer_that_is_too_long_is_not_taken_into_memory() -> None:
    async with (
        FakeSlurm(nodes=50) as fake,
        Client(fake.url, token="any", most_bytes=4000) as slurm,  # noqa: S106  # of a fake
    ):
        assert "node-0" == (await slurm.nodes.get("node-0")).name
        with pytest.raises(Malformed, match="at most 4000 bytes"):
            await slurm.nodes.list()
        assert 50 == len([one async for one in slurm.nodes.iter()])


@pytest.mark.parametrize("url", ["http://[::1", "http://h:port", "http://", "h:6820"])
async def test_an_invalid_url_says_what_is_expected(url: str) -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        async with Client(url):
            pass


async def test_an_invalid_url_among_several_leaves_nothing_open() -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        async with Client(("http://127.0.0.1:1", "nonsense")):
            pass
    gc.collect()  # an open pool would complain here, and warnings are errors
