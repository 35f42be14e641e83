"""A client that sees what goes over the wire: raw sockets, one thread away from the server's loop."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from cryptography import x509
from starlette.types import ASGIApp

from slurmruntime.process import serve

T = TypeVar("T")

TIMEOUT_S = 10.0

_DATA_SEGMENTS_IN = 152
"""Offset of `tcpi_data_segs_in` in `struct tcp_info`, linux/tcp.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """One HTTP/1.1 connection; every call blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def ask(self, method: str = "GET", path: str = "/", body: bytes = b"") -> Answer:
        self.send(method, path, body)
        return self.answer()

    def send(self, method: str, path: str, body: bytes) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sock.sendall(head.encode() + body)

    def answer(self) -> Answer:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        while len(body) < int(headers["content-length"]):
            body += self._receive()
        return Answer(status=int(status.split()[1]), headers=headers, body=body)

    def is_closed(self) -> bool:
        """Wait for the other side to close."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def segments_in(self) -> int:
        """TCP segments with data received so far."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        (count,) = struct.unpack_from("I", info, _DATA_SEGMENTS_IN)
        return int(count)

    def common_name(self) -> str:
        """Of the certificate the server shows."""
        assert isinstance(self.sock, ssl.SSLSocket)
        certificate = self.sock.getpeercert(binary_form=True)
        assert certificate is not None
        return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()

    def _receive(self) -> bytes:
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionResetError("closed before the answer was complete")
        return data


@contextmanager
def connection(
    address: tuple[str, int], *, tls: ssl.SSLContext | None = None
) -> Iterator[Connection]:
    with socket.create_connection(address, timeout=TIMEOUT_S) as plain:
        if tls is None:
            yield Connection(plain)
            return
        with tls.wrap_socket(plain, server_hostname=address[0]) as wrapped:
            yield Connection(wrapped)


async def talk(
    address: tuple[str, int],
    conversation: Callable[[Connection], T],
    *,
    tls: ssl.SSLContext | None = None,
) -> T:
    """Have a conversation on a connection of its own, the handshake included, beside the running loop."""

    def speak() -> T:
        with connection(address, tls=tls) as peer:
            return conversation(peer)

    return await asyncio.to_thread(speak)


@asynccontextmanager
async def serving(
    app: ASGIApp,
    *,
    tls: ssl.SSLContext | None = None,
    grace_s: int = 10,
    within_s: float = TIMEOUT_S,
    most_connections: int = serve.MOST_CONNECTIONS,
    limits_bodies: bool = True,
) -> AsyncIterator[tuple[str, int]]:
    """A server of ours on a free port, until the block ends; yields its address."""
    stop = asyncio.Event()
    sock = serve.bind("127.0.0.1:0")
    address: tuple[str, int] = sock.getsockname()
    sock.listen()  # who connects before the server's first turn waits for it
    async with asyncio.timeout(within_s), asyncio.TaskGroup() as group:
        group.create_task(
            serve.serve(
                app,
                sock,
                stop=stop,
                tls=tls,
                grace_s=grace_s,
                most_connections=most_connections,
                limits_bodies=limits_bodies,
            )
        )
        yield address
        stop.set()
