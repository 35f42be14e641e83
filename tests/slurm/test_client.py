"""The client against the real slurmrestd: versions, token, deadlines, garbage, metrics."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bridge.slurm import jobs, nodes
from sandbox.client import Sandbox
from slurmclient.api.operation import parser as named
from slurmclient.errors import (
    Declined,
    LostReply,
    Malformed,
    SlurmError,
    TooOld,
    Unauthorized,
    Unavailable,
)
from slurmclient.watching import listing
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.slurm.client import VERSIONS, SlurmClient
from slurmruntime.values.ids import SlurmNode
from tests import faults
from tests.faults import Proxy
from tests.slurm.placeholders import spec

PARSERS = tuple(map(named, VERSIONS))
NO_PATH = faults.answers(404, "Unable to find requested URL endpoint.", content_type="text/plain")
EXPIRED = datetime(2020, 1, 1, tzinfo=UTC)


async def test_the_newest_version_of_the_api_is_spoken(client: SlurmClient) -> None:
    dialect = await client.dialect()

    assert VERSIONS[0] == dialect.version
    assert (26, 5) <= dialect.release_number


@pytest.mark.parametrize("parser", PARSERS)
async def test_every_version_we_speak_works_from_submit_to_cancel(
    slurm: Sandbox, parser: str
) -> None:
    async with Proxy.to(slurm.slurmrestd_url) as proxy:
        for newer in PARSERS[: PARSERS.index(parser)]:
            proxy.inject(NO_PATH, "GET", f"/slurm/{newer}/ping")
        async with SlurmClient.open(proxy.url, token_file=slurm.token_file) as client:
            job_id = await jobs.submit(client, spec(hold=True))
            job = await jobs.job(client, job_id)
            ending = await jobs.cancel(client, job_id, sluid=job.sluid)

    assert jobs.Ending.ENDED is ending
    assert proxy.requests[-1].startswith(f"DELETE /slurm/{parser}/")


async def test_a_server_too_old_or_too_new_is_told_with_what_it_offers(slurm: Sandbox) -> None:
    async with Proxy.to(slurm.slurmrestd_url) as proxy:
        proxy.inject(NO_PATH, "GET", "/ping", times=len(PARSERS))
        async with SlurmClient.open(proxy.url, token_file=slurm.token_file) as client:
            with pytest.raises(TooOld) as error:
                await listing.all_jobs(client)

    assert "offers v0.0.42, v0.0.43, v0.0.44, v0.0.45" in str(error.value)
    assert "needs Slurm 25.05 or newer" in str(error.value)


async def test_a_slurmrestd_replaced_by_an_older_one_is_spoken_to_in_its_version(
    slurm: Sandbox,
) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file) as client,
    ):
        await listing.all_jobs(client)
        proxy.inject(NO_PATH, path="/v0.0.45/", times=2)
        await listing.all_jobs(client)

    assert proxy.requests[-1].startswith("GET /slurm/v0.0.44/jobs/state")


async def test_creating_nodes_with_data_parser_43_is_refused_in_words(slurm: Sandbox) -> None:
    async with Proxy.to(slurm.slurmrestd_url) as proxy:
        proxy.inject(NO_PATH, "GET", "/v0.0.45/", times=9)
        proxy.inject(NO_PATH, "GET", "/v0.0.44/", times=9)
        async with SlurmClient.open(proxy.url, token_file=slurm.token_file) as client:
            node = SlurmNodeSpec(name=SlurmNode("n"), address="::1", cpus=1, memory_mib=1)
            with pytest.raises(TooOld, match=r"has no POST /slurm/v0\.0\.43/new/node/: a newer"):
                await nodes.create(client, node)


async def test_slurm_may_be_down_when_we_start(slurm: Sandbox, unused_url: str) -> None:
    async with SlurmClient.open(unused_url, token_file=slurm.token_file) as client:
        with pytest.raises(Unavailable, match="cannot reach slurmrestd at") as error:
            await jobs.submit(client, spec())

    assert not isinstance(error.value, LostReply)


async def test_a_wrong_url_is_unavailability_that_names_it(slurm: Sandbox) -> None:
    with pytest.raises(Unavailable, match="slurmrestd:6820"):
        async with SlurmClient.open("slurmrestd:6820", token_file=slurm.token_file):
            pass


@pytest.fixture
def unused_url() -> str:
    return "http://127.0.0.1:9"  # discard: nobody listens there any more


async def test_an_expired_token_is_unauthorized(slurm: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(slurm.token(now=EXPIRED))
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        with pytest.raises(Unauthorized) as error:
            await listing.all_jobs(client)

    assert (511, 1007) == (error.value.status, error.value.error_number)


async def test_a_renewed_token_file_is_read_by_the_next_call(
    slurm: Sandbox, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(slurm.token(now=EXPIRED))
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        with pytest.raises(Unauthorized):
            await listing.all_jobs(client)
        file.write_text(slurm.token() + "\n")
        await listing.all_jobs(client)


async def test_a_token_file_that_looks_unchanged_is_read_again_when_slurm_refuses(
    slurm: Sandbox, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    expired, good = slurm.token(now=EXPIRED), slurm.token()
    file.write_text(expired)
    before = file.stat()
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        await client.token.token()
        assert len(expired) == len(good)
        file.write_text(good)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        await listing.all_jobs(client)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot read"), (b"", "is empty"), (b"\xff\xfe", "cannot read")],
    ids=["missing", "empty", "binary"],
)
async def test_a_token_file_that_holds_none_is_unauthorized_and_named(
    slurm: Sandbox, tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        with pytest.raises(Unauthorized) as error:
            await listing.all_jobs(client)

    assert words in str(error.value)
    assert str(file) in str(error.value)


async def test_no_error_shows_the_token(slurm: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(expired := slurm.token(now=EXPIRED))
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        with pytest.raises(Unauthorized) as error:
            await listing.all_jobs(client)

    assert expired not in repr(error.value)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(faults.LOST_REPLY, LostReply, id="lost reply"),
        pytest.param(faults.LOST_REQUEST, LostReply, id="lost request, which looks the same"),
        pytest.param(faults.TRUNCATED, LostReply, id="answer cut off"),
        pytest.param(faults.slow(5), LostReply, id="too slow"),
        pytest.param(
            faults.answers(502, "<html>", content_type="text/html"), LostReply, id="proxy"
        ),
        pytest.param(faults.answers(500, "Unspecified error"), LostReply, id="slurmrestd's text"),
        pytest.param(faults.answers(401, "Authentication failure"), Unauthorized, id="401"),
        pytest.param(faults.answers(200, "<html>"), Malformed, id="no JSON"),
        pytest.param(faults.answers(200, "\xff{}"), Malformed, id="no UTF-8"),
        pytest.param(faults.answers(200, '{"jobs":{}}'), Malformed, id="wrong type"),
        pytest.param(faults.answers(200, "{}"), Malformed, id="no jobs"),
        pytest.param(faults.answers(302, ""), Malformed, id="redirect"),
        pytest.param(
            faults.answers(200, '{"jobs":[],"errors":[{"error_number":9,"error":"x"}]}'),
            Declined,
            id="success with errors",
        ),
    ],
)
async def test_whatever_comes_back_is_one_of_our_errors(
    slurm: Sandbox, fault: faults.Fault, expected: type[SlurmError]
) -> None:
    calls: list[tuple[str, str]] = []
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            proxy.url,
            token_file=slurm.token_file,
            request_timeout_s=0.5,
            on_call=lambda operation, _, outcome: calls.append((operation, outcome)),
        ) as client,
    ):
        await client.dialect()
        # Twice: aiohttp itself repeats a GET whose kept connection turns out to be dead.
        proxy.inject(fault, "GET", "/jobs/state", times=2)
        with pytest.raises(SlurmError) as error:
            await listing.all_jobs(client)

    assert expected is type(error.value)
    if expected is not Malformed or fault.answer is None:
        assert [("job.states", expected.outcome)] == calls


async def test_metrics_hear_of_every_call(slurm: Sandbox) -> None:
    calls: list[tuple[str, float, str]] = []
    async with SlurmClient.open(
        slurm.slurmrestd_url, token_file=slurm.token_file, on_call=lambda *call: calls.append(call)
    ) as client:
        await listing.all_jobs(client)
        with pytest.raises(SlurmError):
            await nodes.node(client, SlurmNode("nobody"))

    assert [("job.states", "ok"), ("node.get", "rejected")] == [
        (call[0], call[2]) for call in calls
    ]
    assert all(0 < seconds < 5 for _, seconds, _ in calls)


async def test_a_cancelled_call_is_counted_as_cancelled(slurm: Sandbox) -> None:
    calls: list[str] = []
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            proxy.url,
            token_file=slurm.token_file,
            on_call=lambda _, __, outcome: calls.append(outcome),
        ) as client,
    ):
        proxy.inject(faults.slow(30), "GET", "/jobs/state")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await listing.all_jobs(client)

    assert ["cancelled"] == calls


async def test_waiting_for_a_connection_is_not_the_servers_delay(slurm: Sandbox) -> None:
    """Six calls of 0.2 s over two connections take 0.6 s; each has 0.5 s."""
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            proxy.url, token_file=slurm.token_file, connections=2, request_timeout_s=0.5
        ) as client,
    ):
        await client.dialect()
        proxy.inject(faults.slow(0.2), "GET", "/jobs/state", times=6)
        await asyncio.gather(*(listing.all_jobs(client) for _ in range(6)))

    assert 6 == proxy.count("GET", "/jobs/state")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.LOST_REPLY, id="lost"),
        pytest.param(faults.slow(5), id="slow"),
        pytest.param(faults.answers(200, "<html>"), id="not slurmrestd"),
        pytest.param(faults.answers(502, ""), id="proxy"),
    ],
)
async def test_a_submit_that_never_got_beyond_the_version_is_not_a_lost_one(
    slurm: Sandbox, fault: faults.Fault
) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(proxy.url, token_file=slurm.token_file, request_timeout_s=0.5) as client,
    ):
        proxy.inject(fault, "GET", "/ping", times=2)
        with pytest.raises(Unavailable) as error:
            await jobs.submit(client, spec())

    assert Unavailable is type(error.value)
    assert 0 == proxy.count("POST", "/")


async def test_a_restarted_slurmrestd_is_spoken_to_without_an_error(slurm: Sandbox) -> None:
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=slurm.token_file) as client:
        await listing.all_jobs(client)
        slurm.restart("slurmrestd")
        await listing.all_jobs(client)
