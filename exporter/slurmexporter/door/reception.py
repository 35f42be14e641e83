"""Accepts connections. They are bounded in number and in time, and those who ask nothing keep nobody out.

Strangers, which have not sent a request that may be answered, are counted apart from the others: beyond
`MOST_STRANGERS`, the oldest of them is closed for each new one. Whoever has asked is not closed for strangers.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final

from slurmexporter.door.web_file import WebFile

MOST_STRANGERS: Final = 128
MOST_CALLERS: Final = 128
"""Connections that have sent a request that was answered. With the strangers' and Slurm's, they need a quarter of the
1024 files that a process usually may open, and with TLS some 300 KiB each: asyncio's buffer has 256."""

HANDSHAKE_S: Final = 5.0
HEAD_S: Final = 10.0
"""Time for the first bytes and the end of a request's head, handshake included."""
ANSWER_S: Final = 30.0
"""Time to take a response: Prometheus gives up after 10 s by default."""
IDLE_S: Final = 330.0
"""Time between requests. Prometheus closes connections after five minutes."""

_NO_FILES_S: Final = 0.1
_BACKLOG: Final = 128


class Caller(asyncio.Protocol):
    """One connection: passes all on to the HTTP protocol, within its deadlines."""

    def __init__(self, room: "Room", http: asyncio.Protocol) -> None:
        self.http = http
        self.is_answered = False
        """Whether a response is being made."""
        self.opening: asyncio.Task[None] | None = None
        self._room = room
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline: asyncio.TimerHandle | None = self._loop.call_later(HEAD_S, self.cut)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with HTTP."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # a stream's
        self._transport = transport
        self.http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on data; the head that they begin has a deadline."""
        if self._deadline is None:
            self._deadline = self._loop.call_later(HEAD_S, self.cut)
        self.http.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self.http.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self.http.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self.http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._room.leave(self)
        self._disarm()
        self.http.connection_lost(exc)

    def begin(self) -> None:
        """Note that a request is complete, and a response is being made."""
        self.is_answered = True
        self._disarm()
        self._deadline = self._loop.call_later(ANSWER_S, self.cut)

    def end(self) -> None:
        """Note that the response is about to be sent."""
        self.is_answered = False
        self._disarm()
        self._deadline = self._loop.call_later(ANSWER_S, self._cut_unless_taken)

    def cut(self) -> None:
        """Close the connection at once."""
        self._room.leave(self)
        self._disarm()
        if self._transport:
            self._transport.abort()
        elif self.opening:
            self.opening.cancel()

    def _cut_unless_taken(self) -> None:
        if self._transport and self._transport.get_write_buffer_size():
            self.cut()
        self._deadline = None

    def _disarm(self) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline = None


class Room:
    """The open connections, oldest first, and their limits."""

    def __init__(self) -> None:
        self._strangers: dict[Caller, None] = {}
        self._callers: dict[Caller, None] = {}
        self._by_protocol: dict[object, Caller] = {}

    def enter(self, caller: Caller) -> None:
        """Note a new connection; close a stranger's if there are too many."""
        self._strangers[caller] = None
        self._by_protocol[caller.http] = caller
        if len(self._strangers) > MOST_STRANGERS:
            next(iter(self._strangers)).cut()

    def has_asked(self, caller: Caller) -> None:
        """Note that a connection has sent a request that may be answered."""
        if self._strangers.pop(caller, caller) is caller:
            return
        self._callers[caller] = None
        if len(self._callers) > MOST_CALLERS:
            next((one for one in self._callers if not one.is_answered), caller).cut()

    def leave(self, caller: Caller) -> None:
        """Note that a connection is closed."""
        self._strangers.pop(caller, None)
        self._callers.pop(caller, None)
        self._by_protocol.pop(caller.http, None)

    def caller(self, protocol: object) -> Caller | None:
        """Return the connection that has this HTTP protocol; None if it has been closed."""
        return self._by_protocol.get(protocol)


class Reception:
    """Accepts connections on one socket."""

    def __init__(
        self, sock: socket.socket, room: Room, web: WebFile, speak: Callable[[], asyncio.Protocol]
    ) -> None:
        """speak: returns the HTTP protocol of a new connection."""
        self._sock = sock
        self._room = room
        self._web = web
        self._speak = speak
        self._opening: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._sock)
                except OSError:  # no file descriptor is left, or the caller has gone
                    await asyncio.sleep(_NO_FILES_S)
                    continue
                caller = Caller(self._room, self._speak())
                caller.opening = loop.create_task(self._open(caller, connection))
                self._opening.add(caller.opening)
                caller.opening.add_done_callback(self._opening.discard)
                self._room.enter(caller)
                await asyncio.sleep(0)  # a queue of connections is accepted without any pause else
        finally:
            for task in self._opening:
                task.cancel()

    async def _open(self, caller: Caller, connection: socket.socket) -> None:
        context = self._web.rules.context
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: caller,
                connection,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_S if context else None,
            )
        except (OSError, TimeoutError):  # no handshake, or none that we understand
            caller.cut()
        finally:
            caller.opening = None


def bind(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen; on all addresses if the host is "".

    Raises:
        OSError: If an address cannot be bound; the message names it.
    """
    sockets: list[socket.socket] = []
    addresses = socket.getaddrinfo(
        host or None,
        port,
        type=socket.SOCK_STREAM,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_PASSIVE,
    )
    with contextlib.ExitStack() as opened:
        for family, kind, proto, _, address in dict.fromkeys(addresses):
            try:
                sock = socket.socket(family, kind, proto)
            except OSError:  # the machine has no IPv6
                continue
            opened.callback(sock.close)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                sock.bind(address)
            except OSError as error:
                where = f"{address[0]}:{port}"
                raise OSError(error.errno, f"cannot listen on {where}: {error.strerror}") from error
            sock.listen(_BACKLOG)
            sock.settimeout(0)
            sockets.append(sock)
        opened.pop_all()
    return sockets
