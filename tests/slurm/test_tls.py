"""slurmrestd behind a TLS front that asks for a client's certificate, as sites put nginx or Envoy before it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm.complete import ControllerHost, ControllerHosts, complete
from bridge.slurm.jobs import Ending
from sandbox.client import Sandbox
from slurmclient import Tls, UnusableTls
from slurmclient.errors import LostReply, SlurmError, Unavailable
from slurmclient.transport.tls import RELOAD_AFTER_S
from slurmclient.watching import listing
from slurmruntime.slurm.client import SlurmClient
from tests.make.certificates import Authority
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec


@asynccontextmanager
async def front(url: str, authority: Authority, folder: Path) -> AsyncIterator[str]:
    """TLS to here, plain to what has the URL; yields a URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("front").write(folder, "front"))
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    behind = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection(behind.hostname, behind.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(reader, outer))
            group.create_task(pass_on(inner, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


class Files:
    """What a Secret for slurmrestd holds."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self._folder = folder
        self.trust(authority)
        self.cert_file, self.key_file = authority.issue("bridge").write(folder, "bridge")

    @property
    def ca_file(self) -> str:
        return str(self._folder / "ca.crt")

    def trust(self, authority: Authority) -> None:
        Path(self.ca_file).write_bytes(authority.certificate)

    def tls(self, *, shows_certificate: bool = True) -> Tls:
        if not shows_certificate:
            return Tls(ca_file=self.ca_file)
        return Tls(ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)


async def ask(url: str, slurm: Sandbox, tls: Tls | None) -> tuple[int, int]:
    async with SlurmClient.open(url, token_file=slurm.token_file, tls=tls) as client:
        return (await client.dialect()).release_number


@pytest.fixture
def authority() -> Authority:
    return Authority()


async def test_both_sides_know_each_other(
    slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    files = Files(tmp_path, authority)
    async with front(slurm.slurmrestd_url, authority, tmp_path) as url:
        assert await ask(slurm.slurmrestd_url, slurm, None) == await ask(url, slurm, files.tls())


async def test_a_server_nobody_vouches_for_gets_no_token(
    slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    files = Files(tmp_path, authority)
    files.trust(Authority("another"))
    async with front(slurm.slurmrestd_url, authority, tmp_path) as url:
        for tls in (files.tls(), None):
            with pytest.raises(Unavailable, match="certificate verify failed"):
                await ask(url, slurm, tls)


async def test_a_server_that_does_not_know_us_is_an_outage(
    slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    files = Files(tmp_path, authority)
    async with front(slurm.slurmrestd_url, authority, tmp_path) as url:
        with pytest.raises((Unavailable, LostReply)):
            await ask(url, slurm, files.tls(shows_certificate=False))


async def test_renewed_files_are_used_without_a_restart(
    slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    files = Files(tmp_path, Authority("old"))
    async with (
        front(slurm.slurmrestd_url, authority, tmp_path) as url,
        SlurmClient.open(url, token_file=slurm.token_file, tls=files.tls()) as client,
    ):
        with pytest.raises(SlurmError):
            await client.dialect()
        files.trust(authority)
        authority.issue("bridge").write(tmp_path, "bridge")
        with pytest.raises(SlurmError):
            await client.dialect()

        assert (await client.dialect()).release_number >= (25, 5)


async def test_a_removed_ca_is_not_trusted_any_more(
    slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    now_s = 0.0
    files = Files(tmp_path, authority)
    tls = Tls(
        ca_file=files.ca_file,
        cert_file=files.cert_file,
        key_file=files.key_file,
        monotonic=lambda: now_s,
    )
    async with (
        front(slurm.slurmrestd_url, authority, tmp_path) as url,
        SlurmClient.open(url, token_file=slurm.token_file, tls=tls) as client,
    ):
        await listing.all_jobs(client)
        files.trust(Authority("new"))
        now_s += RELOAD_AFTER_S

        with pytest.raises(Unavailable, match="certificate verify failed"):
            await listing.all_jobs(client)


@pytest.mark.parametrize("broken", ["ca", "key", "nothing there"])
def test_files_that_make_no_sense_are_named(
    authority: Authority, tmp_path: Path, broken: str
) -> None:
    files = Files(tmp_path, authority)
    path = Path(files.ca_file if broken == "ca" else files.key_file)
    if broken == "nothing there":
        path.unlink()
    else:
        path.write_text("half a certif")

    with pytest.raises(UnusableTls, match=str(path)):
        files.tls()


async def test_how_a_job_ended_is_told_to_slurmctld_over_tls_too(
    client: SlurmClient, submit: Submit, slurm: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    """And to nobody else: the message carries our token."""
    files = Files(tmp_path, authority)
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    async with front(f"tcp://127.0.0.1:{slurm.slurmctld_port}", authority, tmp_path) as url:
        port = urlsplit(url).port or 0

        async def told(tls: Tls) -> Ending:
            hosts = ControllerHosts(ControllerHost(host="127.0.0.1", port=port, tls=tls))
            return await complete(client, hosts, running.id, Outcome(), sluid=running.sluid)

        (tmp_path / "system.crt").write_bytes(Authority("another").certificate)
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await told(Tls(ca_file=str(tmp_path / "system.crt")))
        assert Ending.ENDED is await told(files.tls())
    assert JobEnd.COMPLETED is (await in_phase(client, running.id, JobPhase.ENDED)).end
