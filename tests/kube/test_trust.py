"""The CA of the API server and our client certificate follow their files, without a restart."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Unavailable
from slurmruntime.kube.kubeconfig.credentials import Credentials
from tests.make.certificates import Authority
from tests.make.peers import serving

MINUTE_S = 60.0


async def api(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({})(scope, receive, send)


class Files:
    """A kubeconfig whose CA and client certificate are files, as kubeadm and sites write them."""

    def __init__(self, folder: Path, address: tuple[str, int], trusted: Authority) -> None:
        self._folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.rotate(trusted, trusted)
        cluster = {"server": f"https://127.0.0.1:{address[1]}", "certificate-authority": "ca.crt"}
        user = {"client-certificate": "client.crt", "client-key": "client.key"}
        context = {"cluster": "c", "user": "u"}
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": context}],
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": user}],
                }
            )
        )

    def rotate(self, trusted: Authority, issuer: Authority) -> None:
        (self._folder / "ca.crt").write_bytes(trusted.certificate)
        issuer.issue("client").write(self._folder, "client")


class Clock:
    """Monotonic seconds that a test puts forward."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def served(
    authority: Authority, folder: Path, *, clients_of: Authority
) -> AsyncIterator[tuple[str, int]]:
    """An API server with a certificate of one CA, for clients of another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("api").write(folder, "api"))
    context.load_verify_locations(cadata=clients_of.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    async with serving(api, tls=context) as address:
        yield address


@asynccontextmanager
async def opened(files: Files, clock: Clock) -> AsyncIterator[KubeClient]:
    credentials = await Credentials.load(str(files.kubeconfig), monotonic=clock)
    async with KubeClient.open(credentials, request_timeout_s=5, user_agent="test") as client:
        yield client


async def test_a_rotated_ca_and_client_certificate_are_used_within_a_minute(
    tmp_path: Path,
) -> None:
    old, new, clock = Authority("old"), Authority("new"), Clock()
    async with served(new, tmp_path, clients_of=new) as address:
        files = Files(tmp_path, address, old)
        async with opened(files, clock) as client:
            with pytest.raises(Unavailable, match="certificate verify failed"):
                await client.request("GET", "/version")
            files.rotate(new, new)
            clock.now_s += MINUTE_S

            assert b"{}" == await client.request("GET", "/version")


async def test_a_removed_ca_is_not_trusted_any_more(tmp_path: Path) -> None:
    old, new, clock = Authority("old"), Authority("new"), Clock()
    async with served(old, tmp_path, clients_of=old) as address:
        files = Files(tmp_path, address, old)
        async with opened(files, clock) as client:
            await client.request("GET", "/version")
            files.rotate(new, old)
            clock.now_s += MINUTE_S

            with pytest.raises(Unavailable, match="certificate verify failed"):
                await client.request("GET", "/version")


async def test_half_written_files_change_nothing(tmp_path: Path) -> None:
    authority, clock = Authority(), Clock()
    async with served(authority, tmp_path, clients_of=authority) as address:
        files = Files(tmp_path, address, authority)
        async with opened(files, clock) as client:
            (tmp_path / "ca.crt").write_text("half a certif")
            clock.now_s += MINUTE_S

            assert b"{}" == await client.request("GET", "/version")
