"""Operations at a real slurmrestd, through a proxy that injects faults."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sandbox.client import Sandbox
from slurmclient import (
    Client,
    Forbidden,
    JwtKey,
    LostReply,
    NotFound,
    Tls,
    TokenFile,
    TooOld,
    Unauthorized,
    Unavailable,
)
from tests import faults
from tests.client.conftest import Submit
from tests.faults import Proxy
from tests.make.certificates import Authority

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
async def proxy(slurm_accounting: Sandbox) -> AsyncIterator[Proxy]:
    async with Proxy.to(slurm_accounting.slurmrestd_url) as opened:
        yield opened


@pytest.fixture
async def through(proxy: Proxy, slurm_accounting: Sandbox) -> AsyncIterator[Client]:
    async with Client(proxy.url, token=TokenFile(slurm_accounting.token_file)) as opened:
        yield opened


@asynccontextmanager
async def unix_socket_to(url: str, path: Path) -> AsyncIterator[None]:
    """Serve a unix socket that forwards to slurmrestd."""
    behind = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection(behind.hostname, behind.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(reader, outer))
            group.create_task(pass_on(inner, writer))

    async with await asyncio.start_unix_server(serve, path):
        yield


async def test_the_newest_common_version_is_spoken(client: Client) -> None:
    dialect = await client.dialect()
    assert (45, "sandbox") == (dialect.version, dialect.cluster)


@pytest.mark.parametrize("api", ["v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"])
async def test_a_pinned_version_reads_the_same(
    slurm_accounting: Sandbox, submit: Submit, api: str
) -> None:
    job = await submit(name="pinned")
    async with Client(
        slurm_accounting.slurmrestd_url, token=slurm_accounting.token(), api=api
    ) as old:
        assert "pinned" == (await old.jobs.get(job.job_id)).name
        assert job.job_id in {one.job_id for one in await old.jobs.list()}
        assert () == (await old.jobs.list()).odd
        assert () == (await old.nodes.list()).odd
        assert () == (await old.partitions.list()).odd


async def test_what_a_version_lacks_is_refused_before_anything_is_sent(
    proxy: Proxy, slurm_accounting: Sandbox
) -> None:
    async with Client(proxy.url, token=slurm_accounting.token(), api="v0.0.42") as old:
        with pytest.raises(
            TooOld, match=r"has no GET /slurm/v0\.0\.42/conf: a newer Slurm is needed \(v0\.0\.45"
        ):
            await old.conf()
    assert ["GET /slurm/v0.0.42/ping/"] == list(proxy.requests)


async def test_a_version_that_is_gone_is_negotiated_again(proxy: Proxy, through: Client) -> None:
    await through.ping()
    unknown = faults.answers(404, "Unable find requested URL. ", content_type="text/plain")
    proxy.inject(unknown, "GET", "/slurm/v0.0.45/", times=2)
    assert await through.nodes.list()
    assert "GET /slurm/v0.0.44/nodes/" == proxy.requests[-1]


async def test_an_unknown_parameter_error_names_the_known_ones(client: Client) -> None:
    with pytest.raises(TypeError, match=r"no parameter 'user'; it has update_time, flags"):
        await client.jobs.list(user="alice")


async def test_a_refusal_is_read_although_slurmrestd_sends_it_twice(client: Client) -> None:
    for _ in range(3):
        with pytest.raises(NotFound) as raised:
            await client.jobs.get(99999)
        assert (404, 2017) == (raised.value.status, raised.value.error_number)


async def test_a_read_is_repeated_and_a_change_is_not(proxy: Proxy, through: Client) -> None:
    await through.ping()
    proxy.inject(faults.LOST_REPLY, "GET", "/nodes/")
    assert await through.nodes.list()
    assert 2 == proxy.count("GET", "/nodes/")
    proxy.inject(faults.LOST_REQUEST, "GET", "/reconfigure")
    with pytest.raises(LostReply):
        await through.reconfigure()
    proxy.inject(faults.LOST_REQUEST, "POST", "/node/")
    with pytest.raises(LostReply):
        await through.nodes.update("node-0", comment="lost")
    assert (1, 1) == (proxy.count("GET", "/reconfigure"), proxy.count("POST", "/node/"))


async def test_a_read_gives_up_after_its_attempts(proxy: Proxy, through: Client) -> None:
    await through.ping()
    proxy.inject(faults.LOST_REPLY, "GET", "/nodes/", times=9)
    with pytest.raises(LostReply, match="closed the connection"):
        await through.nodes.list()
    assert 3 == proxy.count("GET", "/nodes/")


async def test_half_an_answer_is_no_answer(proxy: Proxy, slurm_accounting: Sandbox) -> None:
    async with Client(proxy.url, token=slurm_accounting.token(), attempts=1) as once:
        await once.ping()
        proxy.inject(faults.TRUNCATED, "GET", "/nodes/")
        with pytest.raises(LostReply):
            await once.nodes.list()
        proxy.inject(faults.TRUNCATED, "GET", "/nodes/")
        with pytest.raises(LostReply):
            _ = [one async for one in once.nodes.iter()]


async def test_an_answer_that_takes_too_long_is_lost(
    proxy: Proxy, slurm_accounting: Sandbox
) -> None:
    token = slurm_accounting.token()
    async with Client(proxy.url, token=token, timeout_s=2, attempts=1) as hurried:
        await hurried.ping()
        proxy.inject(faults.slow(9), "GET", "/nodes/")
        with pytest.raises(LostReply, match=r"no response .* within 2 s"):
            await hurried.nodes.list()


async def test_the_next_server_is_asked_where_one_cannot_be_reached(
    slurm_accounting: Sandbox,
) -> None:
    urls = (NOBODY, slurm_accounting.slurmrestd_url)
    async with Client(urls, token=slurm_accounting.token()) as either:
        assert await either.nodes.list()
        await either.nodes.update("node-0", comment="changed through the second")
    async with Client(NOBODY, attempts=1) as nobody:
        with pytest.raises(
            Unavailable, match=r"cannot reach slurmrestd at http://127\.0\.0\.1:1"
        ) as raised:
            await nobody.nodes.list()
        assert not isinstance(raised.value, LostReply)


async def test_a_token_that_was_renewed_meanwhile_gets_a_second_try(
    slurm_accounting: Sandbox, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("stale.stale.stale")
    source = TokenFile(file)
    await source.token()
    async with Client(slurm_accounting.slurmrestd_url, token=source) as renewed:
        with pytest.raises(Unauthorized):
            await renewed.nodes.list()
        file.write_text(slurm_accounting.token())
        assert await renewed.nodes.list()


async def test_a_key_mints_tokens_that_slurm_takes(slurm_accounting: Sandbox) -> None:
    key = JwtKey(slurm_accounting.instance.slurm / "jwt.key", user="alice")
    async with Client(slurm_accounting.slurmrestd_url, token=key) as alice:
        assert await alice.nodes.list()
        with pytest.raises(Forbidden) as raised:
            await alice.nodes.drain("node-0", "not hers")
        assert 2010 == raised.value.error_number


async def test_a_wrong_token_and_none_are_unauthorized(slurm_accounting: Sandbox) -> None:
    wrong = JwtKey(b"another cluster's key, 32 bytes..")
    for token in (wrong, "garbage", None):
        async with Client(slurm_accounting.slurmrestd_url, token=token) as stranger:
            with pytest.raises(Unauthorized):
                await stranger.nodes.list()


async def test_every_call_is_reported(slurm_accounting: Sandbox) -> None:
    heard: list[tuple[str, str]] = []
    async with Client(
        slurm_accounting.slurmrestd_url,
        token=slurm_accounting.token(),
        on_call=lambda operation, _, outcome: heard.append((operation, outcome)),
    ) as reported:
        await reported.nodes.list()
        with pytest.raises(NotFound):
            await reported.jobs.get(99999)
    assert [("slurm_get_nodes", "ok"), ("slurm_get_job", "not_found")] == heard


async def test_over_a_unix_socket_and_over_tls_it_is_the_same(
    slurm_accounting: Sandbox, tmp_path: Path
) -> None:
    authority = Authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.issue("127.0.0.1").write(tmp_path, "server"))
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    async with (
        unix_socket_to(slurm_accounting.slurmrestd_url, tmp_path / "socket"),
        Proxy.to(slurm_accounting.slurmrestd_url, tls=server) as front,
    ):
        trust = Tls(ca_file=str(tmp_path / "ca.crt"))
        for url, tls in (
            (f"unix://{tmp_path / 'socket'}", None),
            (f"https://127.0.0.1:{front.port}", trust),
        ):
            async with Client(url, token=slurm_accounting.token(), tls=tls) as opened:
                assert await opened.nodes.list()
                with pytest.raises(NotFound):
                    await opened.jobs.get(99999)
        async with Client(f"https://127.0.0.1:{front.port}", attempts=1) as mistrust:
            with pytest.raises(Unavailable, match="cannot reach"):
                await mistrust.nodes.list()


async def test_raw_operations_take_and_give_json(client: Client) -> None:
    answer = await client.raw.slurm_post_node("node-0", {"comment": "raw"})
    assert [] == answer["errors"]
    node = await client.raw.slurm_get_node("node-0")
    assert "raw" == node["nodes"][0]["comment"]


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with Client"):
        await Client(NOBODY).ping()


async def test_an_invalid_url_says_what_is_expected() -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        async with Client("slurmrestd:6820"):
            pass
    with pytest.raises(ValueError, match=r"api: expected auto or one of v0\.0\.45"):
        Client(NOBODY, api="v0.0.41")
