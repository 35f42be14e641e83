"""A real TCP proxy between our code and a server, that breaks what it is told to break.

async with Proxy.to(slurm.slurmrestd_url) as proxy:
    proxy.inject(LOST_REPLY, "POST", "/job/submit")
    ... the server gets the request, the client never gets the answer ...
    assert proxy.requests[-1] == "POST /slurm/v0.0.45/job/submit"

Speaks HTTP/1.1 with Content-Length, as slurmrestd does, and with `framing=slurm_message` slurmctld's own protocol.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Self
from urllib.parse import urlsplit

Framing = Callable[[asyncio.StreamReader], Awaitable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What becomes of a request that is not simply passed on."""

    reaches_server: bool
    answer: bytes | None = None
    """Sent in place of the server's; None: the server's own."""
    cut_at: int | None = None
    """Only so many bytes of the answer, then the connection closes."""
    delay_s: float = 0
    """Before the answer."""


LOST_REPLY = Fault(reaches_server=True, cut_at=0)
LOST_REQUEST = Fault(reaches_server=False, answer=b"", cut_at=0)
TRUNCATED = Fault(reaches_server=True, cut_at=200)


def answers(status: int, body: str, *, content_type: str = "application/json") -> Fault:
    """The server never hears of it; the client gets this."""
    content = body.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return Fault(reaches_server=False, answer=head.encode() + content)


def slow(seconds: float) -> Fault:
    """The server does it; the answer takes its time."""
    return Fault(reaches_server=True, delay_s=seconds)


@dataclass(slots=True)
class _Order:
    fault: Fault
    method: str
    path: str
    times: int


class Proxy:
    """Passes requests on, notes them, and carries out faults in the order they were injected."""

    def __init__(self, host: str, port: int, framing: Framing) -> None:
        self.requests: list[str] = []
        """Method and path of every request, as they came."""
        self.port = 0
        self._target = (host, port)
        self._framing = framing
        self._orders: list[_Order] = []
        self._writers: set[asyncio.StreamWriter] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str, *, framing: Framing | None = None) -> AsyncIterator[Self]:
        """A proxy to a server on this machine, on a free port."""
        parts = urlsplit(url)
        proxy = cls(parts.hostname or "127.0.0.1", parts.port or 80, framing or http_message)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            for writer in tuple(proxy._writers):
                writer.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def inject(self, fault: Fault, method: str = "", path: str = "", *, times: int = 1) -> None:
        """Let the next requests of this method, with this in their path, meet a fault; "" is any."""
        self._orders.append(_Order(fault, method, path, times))

    def count(self, method: str, path: str) -> int:
        """How many requests there were of this method with this in their path."""
        return sum(line.startswith(method) and path in line for line in self.requests)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            self._open(writer, stack)
            with contextlib.suppress(OSError, EOFError):
                upstream = await asyncio.open_connection(*self._target)
                self._open(upstream[1], stack)
                while await self._pass_on(reader, writer, upstream):
                    pass

    def _open(self, writer: asyncio.StreamWriter, stack: contextlib.AsyncExitStack) -> None:
        self._writers.add(writer)
        stack.callback(self._writers.discard, writer)
        stack.callback(writer.close)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> bool:
        """Serve one request; whether the connection lives on."""
        request = await self._framing(reader)
        fault = self._meet(request)
        answer = b""
        if fault.reaches_server:
            upstream[1].write(request)
            answer = await self._framing(upstream[0])
        if fault.answer is not None:
            answer = fault.answer
        await asyncio.sleep(fault.delay_s)
        writer.write(answer[: fault.cut_at])
        await writer.drain()
        return fault.cut_at is None and b"\r\nconnection: close\r\n" not in answer.lower()

    def _meet(self, request: bytes) -> Fault:
        method, path, *_ = (*request.split(b"\r\n", 1)[0].decode(errors="replace").split(" "), "")
        self.requests.append(f"{method} {path}")
        for order in self._orders:
            if order.times and method.startswith(order.method) and order.path in path:
                order.times -= 1
                return order.fault
        return Fault(reaches_server=True)


async def http_message(reader: asyncio.StreamReader) -> bytes:
    """A request or an answer: its head, and as much as its Content-Length says."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head


async def slurm_message(reader: asyncio.StreamReader) -> bytes:
    """A message of slurmctld's own protocol: its length in four bytes, and as much."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big"))
