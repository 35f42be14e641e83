"""Answers that make no sense: they are errors, and never taken for absence."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slurmclient import Client, Malformed, Model, NotFound
from slurmclient.calls import answers
from slurmclient.fake import FakeSlurm
from slurmclient.wire.reading import Answer


class Row(Model, frozen=True):
    job_id: int
    name: str


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurm]:
    async with FakeSlurm(nodes=1) as running:
        yield running


@pytest.fixture
async def client(fake: FakeSlurm) -> AsyncIterator[Client]:
    async with Client(fake.url, token="any", attempts=1) as opened:  # noqa: S106  # of a fake
        yield opened


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([{"job_id": 7}], (Malformed, "cannot decode '7': .*name"), id="a field lacks"),
        pytest.param([5], (Malformed, "cannot decode '7': Expected `object`"), id="no object"),
        pytest.param([], (NotFound, "there is no '7'"), id="nothing"),
        pytest.param(None, (NotFound, "there is no '7'"), id="null"),
    ],
)
async def test_an_object_that_cannot_be_decoded_is_not_taken_for_a_missing_one(
    fake: FakeSlurm,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    jobs: Any,
    expected: tuple[type[Exception], str],
) -> None:
    monkeypatch.setattr(fake, "slurm_get_job", lambda _: {"jobs": jobs})
    error, words = expected
    with pytest.raises(error, match=words):
        await client.jobs.get(7, as_=Row)


async def test_statistics_that_are_not_there_are_not_zeros(
    fake: FakeSlurm, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "slurm_get_diag", lambda _: {})
    with pytest.raises(Malformed, match="cannot decode 'statistics'"):
        await client.diag()


def test_bytes_that_are_not_utf_8_do_not_hide_the_answer_to_a_change() -> None:
    body = b'{"job_id": 7, "warnings": [{"description": "a\xffb"}]}'
    assert 7 == answers.parse("slurm_post_job_submit", body, Answer).job_id
    with pytest.raises(Malformed, match="in a response that starts '<html>"):
        answers.parse("slurm_post_job_submit", b"<html>", Answer)
