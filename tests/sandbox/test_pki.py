"""Certificates of the sandbox, and those that tests make, hold where they are verified strictly: from Python 3.13 on."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import pki
from slurmruntime.process.clock import SystemClock
from tests.make.certificates import Authority

HOST = "127.0.0.1"


def sandboxes() -> tuple[bytes, pki.Pair]:
    now = SystemClock().now()
    ca = pki.authority(now)
    return ca.certificate, pki.issue(ca, name="server", now=now)


def made_for_tests() -> tuple[bytes, pki.Pair]:
    ca = Authority()
    made = ca.issue("server")
    return ca.certificate, pki.Pair(certificate=made.certificate, key=made.key)


@pytest.mark.parametrize("make", [sandboxes, made_for_tests])
def test_a_strict_client_trusts_its_server(
    make: Callable[[], tuple[bytes, pki.Pair]], tmp_path: Path
) -> None:
    trusted, pair = make()
    file = tmp_path / "server.pem"
    file.write_bytes(pair.certificate + pair.key)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(file)
    client_side = ssl.create_default_context(cadata=trusted.decode())
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT

    shake_hands(client_side, server_side)


def shake_hands(client_side: ssl.SSLContext, server_side: ssl.SSLContext) -> None:
    """Let both sides talk in memory until the client has verified the server."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(back, there, server_hostname=HOST)
    server = server_side.wrap_bio(there, back, server_side=True)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.getpeercert()
