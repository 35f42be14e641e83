"""Run uvicorn as a task on a bound socket until a stop event, with a TLS context of ours.

It does not touch signals, logging or the process, and does not poll. Bodies are read completely
before the application is called. Head and body of a response are sent in one write: uvicorn uses
two, hence two segments (and TLS records), which on a socket without TCP_NODELAY cost every call
40 ms because Nagle's algorithm waits for a delayed ACK.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from slurmruntime.process.accepting import Door
from slurmruntime.process.entrance import (
    CONNECTION,
    Entrance,
    GatheringTransport,
    ResponseSlicer,
)

BODY_LIMIT_BYTES = 8 * 2**20
"""The API server accepts objects of 3 MiB (<https://github.com/kubernetes/kubernetes/issues/19781>), and a review may have one twice."""

BODIES_LIMIT_BYTES = 32 * 2**20
"""Limit on all bodies being received; above it, only small ones are accepted. Twenty of the largest objects that etcd stores have room."""

SMALL_BYTES = 64 * 2**10
"""A review usually has 10 kB, and senders of slow, long bodies must not keep it out."""

HEAD_LIMIT_BYTES = 64 * 2**10
"""The parser itself has no limit."""

HEADS_LIMIT_BYTES = 8 * 2**20
"""Limit on all heads being received; above it, only small ones go on."""

SMALL_HEAD_BYTES = 8 * 2**10
"""Heads of the API server have some 500 bytes."""

MOST_AHEAD = 8
"""Requests sent ahead of responses, at which a connection is cut. uvicorn takes any number, and each costs 3 KiB."""

MOST_CONNECTIONS = 512
"""An API server opens one for each review under way, and keeps few: by default it creates 200 objects at once. One costs
50 KiB with TLS, so all of them, with as many that have not asked, cost a fifth of the webhook's memory limit."""

REQUEST_S = 30.0
"""Time for a head, and for a body, to arrive, and for a response to be taken: the API server's longest wait for a webhook."""

KEEP_ALIVE_S = 120
"""Longer than the 90 s of Go's clients: the client closes first, so no request meets a closing connection."""


def bind(address: str) -> socket.socket:
    """Return a socket bound to `HOST:PORT` or `[::]:PORT`; port 0 lets the system choose.

    Raises:
        OSError: the address cannot be bound; the message names it.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    sock: socket.socket | None = None
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # asyncio sets TCP_NODELAY only if the socket's protocol is explicitly TCP
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
    most_connections: int = MOST_CONNECTIONS,
    limits_bodies: bool = True,
) -> None:
    """Serve until `stop` is set, let requests finish for up to `grace_s` seconds, close `sock`.

    Up to `most_connections` may be open that have not sent a request with its body yet, and as many that have. Beyond,
    the oldest of the former is closed for each new one, and of the latter the oldest whose request is not being worked
    on. So a client that opens many closes its own, and a probe still gets its response.

    Args:
        limits_bodies: Whether `app` is called once the body is complete and within limits; False for one that refuses
            some before, and has a `BodyLimit` of its own.
    """
    config = uvicorn.Config(
        ResponseSlicer(BodyLimit(app) if limits_bodies else app),
        # uvicorn calls it like the class
        http=cast(
            "type[asyncio.Protocol]",
            functools.partial(OneWriteProtocol, entrance=Entrance(most_connections)),
        ),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config, stop, tls)
    try:
        await server.serve(sockets=[sock])
    finally:
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()  # none after an orderly stop, all after a cancellation
        sock.close()


class _Refused(Exception):
    """A body is rejected before it is complete; has status and text of the response."""


class BodyLimit:
    """Passes complete bodies to `app`.

    Answers 413 to a body that is too long, 408 to one that is too slow, and 503 while too many are
    being received.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit_bytes: int = BODY_LIMIT_BYTES,
        *,
        all_limit_bytes: int = BODIES_LIMIT_BYTES,
        small_bytes: int = SMALL_BYTES,
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._all_limit_bytes = all_limit_bytes
        self._small_bytes = small_bytes
        self._received_bytes = 0
        """Bytes received of incomplete bodies."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        body = bytearray()
        try:
            async with asyncio.timeout(REQUEST_S):
                if not await self._read(receive, body):
                    return
        except TimeoutError:
            await _refuse(send, 408, f"the body did not arrive within {REQUEST_S:g} s")
            return
        except _Refused as refused:
            await _refuse(send, *refused.args)
            return
        finally:
            self._received_bytes -= len(body)
        pending: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def receive_complete() -> Message:
            nonlocal pending
            message, pending = pending, None
            return message or await receive()

        await self._app(scope, receive_complete, send)

    async def _read(self, receive: Receive, body: bytearray) -> bool:
        """Read the body, False if the client has disconnected; raise _Refused if it is too long, or one too many."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            piece = message.get("body", b"")
            body += piece
            self._received_bytes += len(piece)
            more = message.get("more_body", False)
            if len(body) > self._limit_bytes:
                raise _Refused(413, f"the body is longer than {self._limit_bytes} bytes")
            if self._received_bytes > self._all_limit_bytes and len(body) > self._small_bytes:
                raise _Refused(503, "too many requests are being received")
        return True


async def _refuse(send: Send, status: int, why: str) -> None:
    text = f"{why}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


class _Server(uvicorn.Server):
    """Stops at an event, instead of on a signal or a flag that is polled ten times a second."""

    def __init__(
        self, config: uvicorn.Config, stop: asyncio.Event, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(config)
        self.servers = []
        self._stop = stop
        self._tls = tls
        self._doors: list[Door] = []

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for sock in sockets or ():
            sock.settimeout(0)
            sock.listen(self.config.backlog)
            self._doors.append(Door(sock, self._connection, self._tls))
        self.started = True

    def _connection(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # one of uvicorn's protocols
            config=self.config, server_state=self.server_state, app_state={}
        )

    @override
    async def main_loop(self) -> None:
        async with asyncio.TaskGroup() as group:
            doors = [group.create_task(door.run()) for door in self._doors]
            await self._stop.wait()
            for door in doors:
                door.cancel()
            for connection in tuple(self.server_state.connections):
                connection.shutdown()  # before those that wait for the same event answer

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol over a transport that combines writes."""

    def __init__(self, *args: Any, entrance: Entrance, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._entrance = entrance
        self.app_state = {CONNECTION: self}
        self.unsent_bytes = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # the loop makes nothing else for a stream socket
        stream = cast("asyncio.Transport", transport)
        super().connection_made(GatheringTransport(stream, self.loop))
        self._held_bytes = 0
        """Received, and part of no body: a head, trailers, sizes of chunks; with bodies, requests that are sent ahead."""
        self._body_bytes = 0
        self._is_in_head = False
        self._head_deadline = self.loop.call_later(KEEP_ALIVE_S, self.cut)
        self._taking_deadline: asyncio.TimerHandle | None = None
        self._entrance.enter(self)

    @override
    def data_received(self, data: bytes) -> None:
        """Pass on the data, but cut the connection if the head is too long or too slow."""
        if not self._held_bytes and not self.is_answering:
            self._await_head()
        before, self._body_bytes = self.cycle, 0
        super().data_received(data)
        if self.has_asked:
            self._entrance.has_asked(self)
        if len(self.pipeline) >= MOST_AHEAD:
            self.cut()
        elif self.is_answering and self.cycle is not before and not self.pipeline:
            self._forget_held()
            self._head_deadline.cancel()
        else:
            self._hold(len(data) - (0 if self.pipeline else self._body_bytes))

    def _hold(self, count: int) -> None:
        self._held_bytes += count
        self._entrance.heads_bytes += count
        too_many = self._entrance.heads_bytes > HEADS_LIMIT_BYTES
        if self._held_bytes > (SMALL_HEAD_BYTES if too_many else HEAD_LIMIT_BYTES):
            self.cut()

    def _forget_held(self) -> None:
        self._entrance.heads_bytes -= self._held_bytes
        self._held_bytes = 0

    def _await_head(self) -> None:
        self._head_deadline.cancel()
        self._head_deadline = self.loop.call_later(REQUEST_S, self.cut)

    @override
    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if len(self.pipeline) >= MOST_AHEAD:
            raise OverflowError  # what else has been received is not parsed
        super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_in_head:
            self._await_head()
        elif not self.pipeline:
            self._forget_held()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking_deadline = self.loop.call_later(REQUEST_S, self.cut)
        self._entrance.takes_little(self)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._entrance.has_taken(self)
        if self._taking_deadline:
            self._taking_deadline.cancel()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._entrance.leave(self)
        self._forget_held()
        self._head_deadline.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    @property
    def is_answering(self) -> bool:
        """Whether a head is complete and its response is not."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def has_asked(self) -> bool:
        """Whether a request is complete, with its body, and its response is not."""
        return self.is_answering and not self.cycle.more_body

    @property
    def is_working(self) -> bool:
        """Whether a response is being made. One that the client does not take is made."""
        return self.has_asked and not self.flow.write_paused

    @property
    def untaken_bytes(self) -> int:
        """What the client has not taken of its responses."""
        return self.unsent_bytes + self.transport.get_write_buffer_size()

    def cut(self) -> None:
        """Close the connection at once."""
        self.transport.abort()
