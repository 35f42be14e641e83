"""What slurmrestd answers to a request that is bent or lost on its way, and what we make of it."""

from typing import Any

import pytest

from bridge.domain.model.jobs import SlurmJob
from bridge.slurm import encode, jobs
from sandbox.client import Sandbox
from slurmclient.errors import Declined, LostReply, Malformed
from slurmclient.watching import listing
from slurmclient.wire.reading import Answer
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId
from tests import faults
from tests.faults import Proxy
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import identity, spec


def bend(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """Let submissions have fields that our encoder would never write."""
    honest = encode.submission

    def bent(document: Any) -> dict[str, object]:
        body: dict[str, Any] = honest(document)
        body["job"].update(fields)
        return body

    monkeypatch.setattr(encode, "submission", bent)


async def test_an_unknown_flag_is_http_500_and_the_job_is_submitted_all_the_same(
    client: SlurmClient, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, flags=["EXTERNAL_JOB", "NOT_A_FLAG"])

    job = await jobs.job(client, await submit(spec(hold=True)))

    assert isinstance(job, SlurmJob)


async def test_a_wrong_type_is_http_200_without_a_job_id(
    client: SlurmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, minimum_nodes="abc")

    with pytest.raises(Declined, match="got OpenAPI type=string"):
        await jobs.submit(client, spec())


async def test_an_unknown_field_is_ignored_with_a_warning(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, not_a_field=1)

    assert await submit(spec(hold=True))


async def test_a_script_is_refused_for_an_external_job(
    client: SlurmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch, script="#!/bin/sh\n")

    with pytest.raises(Declined) as error:
        await jobs.submit(client, spec())

    assert 500 == error.value.status
    assert error.value.error_number in (2189, 2019)  # before 26.05, as it lacks an environment


async def test_a_body_that_is_no_object_is_refused(client: SlurmClient) -> None:
    bodies: list[object] = [[], {}]
    for body in bodies:
        with pytest.raises(Declined):
            await client.call("job.submit", "slurm_post_job_submit", body=body, answer=Answer)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.LOST_REPLY, id="dropped connection"),
        pytest.param(faults.TRUNCATED, id="cut off"),
        pytest.param(faults.slow(30), id="timeout"),
    ],
)
async def test_a_submit_whose_reply_got_lost_says_so_and_is_found_by_identity(
    slurm: Sandbox, client: SlurmClient, fault: faults.Fault
) -> None:
    whose = identity()
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            proxy.url, token_file=slurm.token_file, request_timeout_s=1
        ) as behind_proxy,
    ):
        proxy.inject(fault, "POST", "/job/submit")
        with pytest.raises(LostReply):
            await jobs.submit(behind_proxy, spec(whose, hold=True))
    assert 1 == proxy.count("POST", "/job/submit")

    newest = JobId(max((await listing.all_jobs(client)).states))
    job = await jobs.job(client, newest)
    assert isinstance(job, SlurmJob)
    assert whose == job.identity
    await jobs.cancel(client, newest)


async def test_a_submit_answered_with_garbage_may_have_been_accepted(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, "<html>"), "POST", "/job/submit")
        with pytest.raises(LostReply):
            await jobs.submit(client, spec())


@pytest.mark.parametrize("jobs_json", ["[]", "null", '[{"job_id":8,"job_state":["RUNNING"]}]'])
async def test_an_answer_without_the_job_is_no_evidence_that_it_is_gone(
    slurm: Sandbox, jobs_json: str
) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, f'{{"jobs":{jobs_json}}}'), "GET", "/job/7")
        with pytest.raises(Malformed, match="does not contain job 7"):
            await jobs.job(client, JobId(7))


async def test_a_number_of_the_wrong_kind_is_malformed(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, '{"jobs":[{"job_id":"7"}]}'), "GET", "/job/7")
        with pytest.raises(Malformed, match=r"job\.get: job 7: job_id: Expected `int`"):
            await jobs.job(client, JobId(7))


async def test_a_bomb_instead_of_states_is_malformed(slurm: Sandbox) -> None:
    bomb = "[" * 100_000 + "]" * 100_000
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        proxy.inject(faults.answers(200, f'{{"jobs":[{{"x":{bomb}}}]}}'), "GET", "/jobs/state/")
        with pytest.raises(Malformed, match=r"job\.states"):
            await listing.all_jobs(client)
