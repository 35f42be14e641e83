"""Who has an address of ours on the way, and no certificate for it: neither client sends it a word."""

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slurmclient import Tls
from slurmclient.errors import SlurmError
from slurmclient.watching import listing
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError
from slurmruntime.slurm.client import SlurmClient
from tests.attacks import attack
from tests.make.certificates import Authority

TOKEN = "a-token-that-nobody-else-may-see"  # noqa: S105  # of nobody

Ask = Callable[[str, Authority, Path], Awaitable[None]]
"""Asks one of the peers at a URL, trusting a CA, with files in a folder."""


class Impostor:
    """Speaks TLS as its context says, and hears what comes."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            self.heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.transport.abort()


@asynccontextmanager
async def impostor(context: ssl.SSLContext) -> AsyncIterator[Impostor]:
    one = Impostor()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0, ssl=context)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        await asyncio.sleep(0.05)  # what has been refused is closed


async def ask_slurmrestd(url: str, authority: Authority, folder: Path) -> None:
    token, ca = folder / "token", folder / "ca"
    token.write_text(TOKEN)
    ca.write_bytes(authority.certificate)
    tls = Tls(ca_file=str(ca))
    async with SlurmClient.open(url, token_file=token, tls=tls, request_timeout_s=5) as slurm:
        await listing.all_jobs(slurm)


async def ask_api_server(url: str, authority: Authority, folder: Path) -> None:
    ca = base64.b64encode(authority.certificate).decode()
    cluster = {"server": url, "certificate-authority-data": ca}
    config = folder / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    async with KubeClient.open(str(config), request_timeout_s=5, user_agent="test") as kube:
        await kube.request("GET", "/api/v1/pods")


def old_versions_only(context: ssl.SSLContext) -> None:
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1


BOTH = (ask_slurmrestd, ask_api_server)


@pytest.mark.parametrize(
    ("host", "named", "is_old", "asks"),
    [
        attack(
            "another host",
            "answer for slurmrestd or the API server with a certificate that the same CA has issued to another host",
            "the host's name is compared",
            "localhost",
            "elsewhere",
            False,
            BOTH,
        ),
        attack(
            "common name",
            "answer for the API server with a certificate that has its name as the common name, which many CAs do not check",
            "only alternative names count, as for Go's clients",
            "localhost",
            "localhost",
            False,
            (ask_api_server,),
        ),
        attack(
            "old TLS",
            "answer for slurmrestd or the API server in TLS 1.1",
            "1.2 is the least",
            "127.0.0.1",
            "a",
            True,
            BOTH,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_an_impostor_hears_nothing(
    tmp_path: Path, host: str, named: str, *, is_old: bool, asks: Iterable[Ask]
) -> None:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(named).write(tmp_path, "impostor"))
    if is_old:
        old_versions_only(context)
    for ask in asks:
        async with impostor(context) as one:
            with pytest.raises((SlurmError, KubeError)):
                await ask(f"https://{host}:{one.port}", authority, tmp_path)
        assert [] == one.heard


async def test_who_has_the_certificate_hears_the_token(tmp_path: Path) -> None:
    """The tests above would pass with clients that never ask."""
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("a").write(tmp_path, "true"))
    for ask in BOTH:
        async with impostor(context) as one:
            with contextlib.suppress(SlurmError, KubeError):
                await ask(f"https://127.0.0.1:{one.port}", authority, tmp_path)
        assert TOKEN.encode() in b"".join(one.heard)
