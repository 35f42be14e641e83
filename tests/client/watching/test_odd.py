"""Objects that cannot be decoded: each costs itself, is told, and is never taken for one that is gone."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slurmclient import Added, Client, Model, Modified
from slurmclient.fake import FakeSlurm
from slurmclient.watching.job_picture import JobPicture
from slurmclient.watching.picture_by_name import PictureByName
from tests.client.looking import ticks

NODES: Any = {
    "lists": "slurm_get_nodes",
    "gets": "slurm_get_node",
    "key": "nodes",
    "parameter": "node_name",
}


class Named(Model, frozen=True):
    job_id: int
    name: str


class NodeRow(Model, frozen=True):
    name: str
    cpus: int


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurm]:
    async with FakeSlurm(nodes=2) as running:
        yield running


@pytest.fixture
async def client(fake: FakeSlurm) -> AsyncIterator[Client]:
    async with Client(fake.url, token="any", attempts=1) as opened:  # noqa: S106  # of a fake
        yield opened


def shown(*jobs: object) -> dict[str, object]:
    return {"jobs": list(jobs)}


async def test_a_stream_counts_what_it_leaves_out_and_says_so(
    fake: FakeSlurm,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = shown(
        {"job_id": 1, "name": "a"}, {"job_id": 2}, {"name": "b"}, {"job_id": 4, "name": "d"}
    )
    monkeypatch.setattr(fake, "slurm_get_jobs", lambda _: jobs)
    stream = client.jobs.iter(as_=Named)

    assert [1, 4] == [one.job_id async for one in stream]

    assert (2, [1, 2]) == (stream.left_out, [odd.index for odd in stream.odd])
    (record,) = caplog.records
    assert ("slurmclient", logging.WARNING) == (record.name, record.levelno)
    assert "slurm_get_jobs: 2 objects are left out; the first is number 1" in record.getMessage()


@pytest.mark.parametrize("lacks", [{"name"}, {"name", "job_id"}], ids=["name", "name and id"])
async def test_a_job_that_cannot_be_decoded_any_more_is_not_gone(
    fake: FakeSlurm,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lacks: set[str],
) -> None:
    job = await client.jobs.submit(name="a", hold=True)
    await client.jobs.submit(name="b", hold=True)
    picture = JobPicture(client.speaker, Named, ticks(), resync_s=0)
    assert [Added, Added] == [type(event) for event in await picture.poll()]
    first, second = (await client.raw.slurm_get_jobs())["jobs"]
    odd = {name: value for name, value in first.items() if name not in lacks}

    with monkeypatch.context() as patched:
        patched.setattr(fake, "slurm_get_jobs", lambda _: shown(odd, {**second, "name": "c"}))
        patched.setattr(fake, "slurm_get_job", lambda _: shown(odd))
        events = [
            *await picture.poll(),
            *await picture.poll_one(str(job.job_id)),
            *await picture.poll(),
        ]

    (changed,) = events
    assert isinstance(changed, Modified)
    assert ("b", "c") == (changed.old.name, changed.new.name)
    assert "a" == picture.objects[str(job.job_id)].name
    assert ["" if "job_id" in lacks else str(job.job_id)] == list(picture.odd)
    assert 1 == len(caplog.records), "it is said once"

    await picture.poll()
    assert {} == picture.odd


async def test_a_node_that_cannot_be_decoded_any_more_is_not_gone(
    fake: FakeSlurm, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = PictureByName(client.speaker, NodeRow, ticks(), **NODES)
    assert 2 == len(await picture.poll())

    for odd, key in (({"name": "node-0"}, "node-0"), (7, "")):
        with monkeypatch.context() as patched:
            nodes = [odd, {"name": "node-1", "cpus": 1}]
            patched.setattr(fake, "slurm_get_nodes", lambda _, nodes=nodes: {"nodes": nodes})
            await picture.poll()
        assert {"node-0", "node-1"} == picture.objects.keys()
        assert key in picture.odd
