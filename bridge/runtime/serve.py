"""uvicorn as a well-behaved task: on a bound socket, until a stop event, with a TLS context of ours.

It leaves signals, logging and the process alone; nobody polls while it runs. Bodies are read whole before the
application is called. Head and body of an answer leave in one write: uvicorn makes two, hence two segments (and TLS
records), which on a socket without TCP_NODELAY cost every call 40 ms of Nagle's algorithm against delayed ACKs.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_LIMIT_BYTES = 8 * 2**20
"""The API server takes objects of 3 MiB at most (<https://github.com/kubernetes/kubernetes/issues/19781>), and a review
can hold an object twice."""

KEEP_ALIVE_S = 120
"""Longer than the 90 s of Go's clients: the one who calls closes first, so no request meets a closing connection."""


def bind(address: str) -> socket.socket:
    """A listening address as a bound socket; `HOST:PORT`, `[::]:PORT`; port 0 lets the system choose.

    Raises:
        OSError: the address cannot be had; the message names it.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    sock: socket.socket | None = None
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # asyncio sets TCP_NODELAY only where the socket says that it is TCP
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(where)
    except OSError as error:
        if sock:
            sock.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    return sock


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    *,
    stop: asyncio.Event,
    tls: ssl.SSLContext | None = None,
    grace_s: int = 10,
) -> None:
    """Serve until `stop` is set, then let requests under way finish for `grace_s` seconds; closes `sock`."""
    config = uvicorn.Config(
        limit_body(app),
        http=OneWriteProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
        ssl_context_factory=(lambda _config, _default: tls) if tls else None,
    )
    server = _Server(config, stop)
    try:
        await server.serve(sockets=[sock])
    finally:
        server.abandon()
        sock.close()


def limit_body(app: ASGIApp, limit_bytes: int = BODY_LIMIT_BYTES) -> ASGIApp:
    """Hand `app` each body whole, and answer 413 to one that is too long."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > limit_bytes:
                await _refuse(send, limit_bytes)
                return
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def receive_whole() -> Message:
            nonlocal whole
            message, whole = whole, None
            return message or await receive()

        await app(scope, receive_whole, send)

    return limited


async def _refuse(send: Send, limit_bytes: int) -> None:
    text = f"the body is longer than {limit_bytes} bytes\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})


class _Server(uvicorn.Server):
    """Stops when it is told, not when a signal comes or a flag is looked at ten times a second."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self.servers = []
        self._stop = stop

    @override
    async def main_loop(self) -> None:
        await self._stop.wait()

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def abandon(self) -> None:
        """Cut whatever is still open: nothing after an orderly stop, everything after a cancellation."""
        for server in self.servers:
            server.close()
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol over a transport that gathers its writes."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(
            "asyncio.Transport", transport
        )  # the loop makes nothing else for a stream socket
        super().connection_made(_GatheringTransport(stream, self.loop))


class _GatheringTransport(asyncio.Transport):
    """Passes on in one write what was written within one turn of the loop."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._gathered: list[bytes] = []

    @override
    def write(self, data: Any) -> None:
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)

    def _flush(self) -> None:
        data = b"".join(self._gathered)
        self._gathered.clear()
        if data and not self._inner.is_closing():
            self._inner.write(data)

    @override
    def close(self) -> None:
        self._flush()
        self._inner.close()

    @override
    def abort(self) -> None:
        self._gathered.clear()
        self._inner.abort()

    @override
    def is_closing(self) -> bool:
        return self._inner.is_closing()

    @override
    def pause_reading(self) -> None:
        self._inner.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._inner.resume_reading()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
