"""A real proxy between our code and a server, that breaks what it is told to break.

async with Proxy.to(slurm.slurmrestd_url) as proxy:
    proxy.inject(LOST_REPLY, "POST", "/job/submit")
    ... the server gets the request, the client never gets the answer ...
    assert proxy.requests[-1] == "POST /slurm/v0.0.45/job/submit"

Speaks HTTP/1.1 as slurmrestd and the API server do, watches and TLS on either side included, and with
`framing=slurm_message` slurmctld's own protocol. `tests.fault_bench` puts one before each peer of a sandbox's services.
"""

import asyncio
import contextlib
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlsplit

Framing = Callable[[asyncio.StreamReader], AsyncIterator[bytes]]
"""Reads one message as its pieces come; most have one piece."""
_REMEMBERED = 20_000


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
    arrives_after_s: float | None = None
    """So long after the answer the server does it all the same; None: it never does."""
    changed: Callable[[Any], Any] | None = None
    """Applied to the JSON of the server's answer before the client gets it: a server that is another in one point."""
    then: Callable[[], object] | None = None
    """Done when the server has done its part, and before the client hears of it."""

    def and_then(self, do: Callable[[], object]) -> Self:
        """The same fault, and this happens before the client could notice."""
        return replace(self, then=do)


PASSED_ON = Fault(reaches_server=True)
LOST_REPLY = Fault(reaches_server=True, cut_at=0)
LOST_REQUEST = Fault(reaches_server=False, answer=b"", cut_at=0)
TRUNCATED = Fault(reaches_server=True, cut_at=200)


def answers(
    status: int, body: str, *, content_type: str = "application/json", reaches_server: bool = False
) -> Fault:
    """The client gets this; the server never hears of it, or does it all the same."""
    content = body.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return Fault(reaches_server=reaches_server, answer=head.encode() + content)


def late(seconds: float, fault: Fault = LOST_REQUEST) -> Fault:
    """The client is told, or believes, that nothing was done; then it is."""
    return replace(fault, reaches_server=False, arrives_after_s=seconds)


def lie(change: Callable[[Any], Any]) -> Fault:
    """The server's own answer, changed in one point."""
    return Fault(reaches_server=True, changed=change)


def slow(seconds: float) -> Fault:
    """The server does it; the answer takes its time."""
    return Fault(reaches_server=True, delay_s=seconds)


@dataclass(slots=True)
class _Order:
    fault: Fault
    method: str
    path: str
    times: int


@dataclass(eq=False, slots=True)
class _Exchange:
    line: str
    flows: asyncio.Event = field(default_factory=asyncio.Event)


class Proxy:
    """Passes requests on, notes them, and carries out faults in the order they were injected.

    Its methods may be called from any thread.
    """

    def __init__(
        self, host: str, port: int, framing: Framing, upstream_tls: ssl.SSLContext | None
    ) -> None:
        self.requests: deque[str] = deque(maxlen=_REMEMBERED)
        """Method and path of the last requests, as they came; LATE before those that arrived after all."""
        self.port = 0
        self._target = (host, port)
        self._framing = framing
        self._upstream_tls = upstream_tls
        self._orders: list[_Order] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._exchanges: set[_Exchange] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._late = asyncio.TaskGroup()
        self._loop = asyncio.get_running_loop()

    @classmethod
    @asynccontextmanager
    async def to(
        cls,
        url: str,
        *,
        framing: Framing | None = None,
        tls: ssl.SSLContext | None = None,
        upstream_tls: ssl.SSLContext | None = None,
    ) -> AsyncIterator[Self]:
        """A proxy to a server on this machine, on a free port.

        Args:
            url: the server's.
            framing: what it speaks; HTTP unless told otherwise.
            tls: the certificate to serve with; None: no TLS.
            upstream_tls: whom to trust as the server; None: no TLS.
        """
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        proxy = cls(host, port, framing or http_message, upstream_tls)
        async with proxy._late:
            server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0, ssl=tls)
            proxy.port = server.sockets[0].getsockname()[1]
            try:
                yield proxy
            finally:
                server.close()
                await proxy._end()

    @property
    def url(self) -> str:
        """Where it listens, without TLS."""
        return f"http://127.0.0.1:{self.port}"

    def inject(self, fault: Fault, method: str = "", path: str = "", *, times: int = 1) -> None:
        """Let the next requests of this method, with this in their path, meet a fault; "" is any, "…$" the path's end."""
        self._orders.append(_Order(fault, method, path, times))

    def forget(self) -> None:
        """Take back the faults that have met no request."""
        self._orders.clear()

    def freeze(self, method: str = "", path: str = "") -> None:
        """Deliver nothing more of the answers under way, nor close them; what is asked from now on is answered."""
        self._loop.call_soon_threadsafe(self._freeze, method, path)

    def thaw(self) -> None:
        """Deliver what was held back."""
        self._loop.call_soon_threadsafe(self._thaw)

    def cut(self) -> None:
        """Break every connection; new ones are accepted."""
        self._loop.call_soon_threadsafe(self._cut)

    def count(self, method: str, path: str) -> int:
        """How many requests there were of this method with this in their path."""
        return sum(line.startswith(method) and path in line for line in tuple(self.requests))

    def _freeze(self, method: str, path: str) -> None:
        for exchange in self._exchanges:
            if exchange.line.startswith(method) and path in exchange.line:
                exchange.flows.clear()

    def _thaw(self) -> None:
        for exchange in self._exchanges:
            exchange.flows.set()

    def _cut(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()
        self._thaw()

    async def _end(self) -> None:
        self._cut()
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if (task := asyncio.current_task()) is not None:
                self._serving.add(task)
                stack.callback(self._serving.discard, task)
            self._open(writer, stack)
            stack.callback(writer.close)
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                upstream = await asyncio.open_connection(*self._target, ssl=self._upstream_tls)
                self._open(upstream[1], stack)
                stack.callback(upstream[1].transport.abort)  # TLS would wait for a farewell
                while await self._pass_on(reader, writer, upstream):
                    pass

    def _open(self, writer: asyncio.StreamWriter, stack: contextlib.AsyncExitStack) -> None:
        self._writers.add(writer)
        stack.callback(self._writers.discard, writer)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> bool:
        """Serve one request; whether the connection lives on."""
        request = b"".join([piece async for piece in self._framing(reader)])
        line, fault = self._meet(request)
        if fault.reaches_server:
            upstream[1].write(request)
        pieces = self._framing(upstream[0]) if fault.reaches_server else _only(b"")
        first = await anext(pieces)
        if fault.answer is not None:
            async for _ in pieces:  # nobody hears it
                pass
            first = fault.answer
        if fault.changed is not None:
            first = _changed([first] + [piece async for piece in pieces], fault.changed)
        await asyncio.sleep(fault.delay_s)
        if fault.then is not None:
            fault.then()
        if fault.arrives_after_s is not None:
            self._send_late(line, request, fault.arrives_after_s)
        with self._under_way(line) as exchange:
            if not await _deliver(first, pieces, writer, exchange, fault.cut_at):
                return False
        return b"\r\nconnection: close\r\n" not in first.lower()

    def _meet(self, request: bytes) -> tuple[str, Fault]:
        method, path, *_ = (*request.split(b"\r\n", 1)[0].decode(errors="replace").split(" "), "")
        line = f"{method} {path}"
        self.requests.append(line)
        for order in tuple(self._orders):
            if method.startswith(order.method) and order.path in f"{path}$":
                order.times -= 1
                if order.times <= 0:
                    self._orders.remove(order)
                return line, order.fault
        return line, PASSED_ON

    def _send_late(self, line: str, request: bytes, after_s: float) -> None:
        async def send() -> None:
            await asyncio.sleep(after_s)
            with contextlib.suppress(OSError, EOFError):
                reader, writer = await asyncio.open_connection(
                    *self._target, ssl=self._upstream_tls
                )
                writer.write(request)
                async for _ in self._framing(reader):
                    pass
                writer.close()
            self.requests.append(f"LATE {line}")

        self._late.create_task(send())

    @contextlib.contextmanager
    def _under_way(self, line: str) -> Iterator[_Exchange]:
        self._exchanges.add(exchange := _Exchange(line))
        exchange.flows.set()
        try:
            yield exchange
        finally:
            self._exchanges.discard(exchange)


async def _deliver(
    first: bytes,
    pieces: AsyncIterator[bytes],
    writer: asyncio.StreamWriter,
    exchange: _Exchange,
    cut_at: int | None,
) -> bool:
    """Hand an answer over as it comes; False if it was cut off."""
    piece, left = first, cut_at
    while True:
        await exchange.flows.wait()
        if writer.is_closing():  # who asked has hung up
            return False
        writer.write(piece[:left])
        await writer.drain()
        if left is not None:
            left -= len(piece)
            if left <= 0:
                return False
        try:
            piece = await anext(pieces)
        except StopAsyncIteration:
            return left is None


def _changed(pieces: Sequence[bytes], change: Callable[[Any], Any]) -> bytes:
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    if len(pieces) > 1:  # each chunk is behind a line with its size
        body = b"".join(chunk.partition(b"\r\n")[2][:-2] for chunk in pieces[1:])
    content = json.dumps(change(json.loads(body))).encode()
    kept = [
        field
        for field in head.split(b"\r\n")
        if not field.lower().startswith((b"content-length:", b"transfer-encoding:"))
    ]
    return b"\r\n".join([*kept, b"Content-Length: %d" % len(content), b"", content])


async def _only(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


async def http_message(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A request or an answer: its head, and as much as its Content-Length says, or chunk after chunk."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:])
    if fields.get(b"transfer-encoding", b"").strip() == b"chunked":
        yield head
        while True:
            size = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(size, 16) + 2)
            yield size + chunk
            if int(size, 16) == 0:
                return
    yield head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


async def slurm_message(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A message of slurmctld's own protocol: its length in four bytes, and as much."""
    length = await reader.readexactly(4)
    yield length + await reader.readexactly(int.from_bytes(length, "big"))
