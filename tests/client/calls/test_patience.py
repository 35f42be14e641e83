"""A list that slurmrestd takes long to make: `iter` may wait longer for it than the client does for the rest."""

import asyncio

import pytest
from aiohttp import web
from typing_extensions import override

from slurmclient import Client, LostReply
from slurmclient.fake.server import FakeSlurm

_DEADLINE_S = 1.0
_LONGER_S = 2 * _DEADLINE_S


class Slow(FakeSlurm):
    """A fake Slurm that needs longer for a list of jobs than the client's deadline."""

    @override
    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/jobs/"):
            await asyncio.sleep(_LONGER_S)
        return await super()._serve(request)


async def test_a_stream_has_a_deadline_of_its_own() -> None:
    async with (
        Slow() as slow,
        Client(slow.url, token="any", timeout_s=_DEADLINE_S) as slurm,  # noqa: S106  # of a fake
    ):
        job = await slurm.jobs.submit(name="one", hold=True)
        with pytest.raises(LostReply, match=f"within {_DEADLINE_S:g} s"):
            _ = [one async for one in slurm.jobs.iter()]
        patient = slurm.jobs.iter(timeout_s=10 * _LONGER_S)
        assert [job.job_id] == [one.job_id async for one in patient]


async def test_a_client_knows_whose_calls_its_are() -> None:
    async with FakeSlurm() as fake, Client(fake.url, token="any") as slurm:  # noqa: S106  # see above
        assert ("", "alice") == (await slurm.user(), await slurm.as_user("alice").user())
