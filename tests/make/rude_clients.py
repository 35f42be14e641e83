"""Clients that connect and do not behave: they take nothing, send without an end, or break off in the middle."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

SMALL_BUFFER = 4096
TIMEOUT_S = 10.0
CHUNKED = (
    b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
WITHOUT_END = {
    "trailers": (b"0\r\n", b"X-A: " + b"b" * 100_000 + b"\r\n"),
    "one trailer": (b"0\r\nX-A: ", b"b" * 100_000),
    "chunks": (b"", b"1\r\nx\r\n" * 16_000),
    "extension": (b"1;", b"a" * 100_000),
}
"""What may follow `CHUNKED`, and belongs to no body: how it begins, and what is sent again and again."""


def address_of(url: str) -> tuple[str, int]:
    """Host and port."""
    where = urlsplit(url)
    return where.hostname or "", where.port or 0


@contextmanager
def deaf(address: tuple[str, int]) -> Iterator[socket.socket]:
    """A connection whose own end takes next to nothing."""
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        plain.settimeout(TIMEOUT_S)
        plain.connect(address)
        yield plain


@contextmanager
def stubborn(url: str, trusting: ssl.SSLContext) -> Iterator[socket.socket]:
    """The same, by TLS if the URL says so."""
    with deaf(address_of(url)) as plain:
        if url.startswith("http:"):
            yield plain
            return
        with trusting.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped:
            yield wrapped


@contextmanager
def connected(url: str, trusting: ssl.SSLContext) -> Iterator[socket.socket]:
    """An ordinary connection with TLS, for whoever is rude later."""
    with (
        socket.create_connection(address_of(url), timeout=30) as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        yield connection


def taken_bytes(peer: socket.socket, piece: bytes, most: int) -> int:
    """Send a piece again and again until the other side closes or takes no more; return how much it took."""
    taken = 0
    with contextlib.suppress(OSError):
        while taken < most:
            peer.sendall(piece)
            taken += len(piece)
    return taken


def head(length: int) -> bytes:
    """Of a review whose body has so many bytes."""
    return (
        f"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()
