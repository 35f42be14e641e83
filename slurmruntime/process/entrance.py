"""The open connections of one server: what they may hold together, and how responses are written to them.

A client chooses how many it opens, what it asks and when it takes the response. So what is bounded for one connection is
bounded for all of them, too, and whoever goes beyond closes own ones before those of others.
"""

import asyncio
from typing import Any, Final, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override

RESPONSES_LIMIT_BYTES: Final = 16 * 2**20
"""Limit on all responses that their clients do not take at once. A response may repeat much of a body of 8 MiB."""


SLICE_BYTES: Final = 64 * 2**10
"""Of a response, written at once. Transports with TLS encrypt whatever they get, and do not tell how much of it they hold."""

CONNECTION: Final = "slurm-bridge.dev/connection"
"""The key of a request's connection, in the state of its scope."""


class Guest(Protocol):
    """A connection."""

    unsent_bytes: int
    """The part of its response that has not been written yet."""

    @property
    def is_working(self) -> bool:
        """Whether a response is being made."""

    @property
    def untaken_bytes(self) -> int:
        """What the client has not taken of its responses."""

    def cut(self) -> None:
        """Close the connection at once."""


class Entrance:
    """The open connections of one server, oldest first, and their limits.

    Those that have not sent a request yet are counted apart: however many they are, they close none that has.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._silent: dict[Guest, None] = {}
        self._known: dict[Guest, None] = {}
        self._slow: dict[Guest, None] = {}
        self.heads_bytes = 0
        """Bytes of all heads that are being received."""

    def enter(self, connection: Guest) -> None:
        """Note a new connection; close the oldest that is silent if there are too many."""
        self._silent[connection] = None
        if len(self._silent) > self._most:
            self._close(next(iter(self._silent)))

    def has_asked(self, connection: Guest) -> None:
        """Note that a connection has sent a whole request; close one that has, too, if there are too many."""
        if self._silent.pop(connection, connection) is connection:
            return
        self._known[connection] = None
        if len(self._known) > self._most:
            self._close(next((one for one in self._known if not one.is_working), connection))

    def takes_little(self, connection: Guest) -> None:
        """Note that a response is not taken at once; close the oldest of these while they hold too much together."""
        self._slow[connection] = None
        held_bytes = sum(one.untaken_bytes for one in self._slow)
        for one in tuple(self._slow):
            if held_bytes <= RESPONSES_LIMIT_BYTES:
                break
            held_bytes -= one.untaken_bytes
            self._close(one)

    def has_taken(self, connection: Guest) -> None:
        """Note that a response has been taken."""
        self._slow.pop(connection, None)

    def leave(self, connection: Guest) -> None:
        """Note that a connection is closed."""
        self._silent.pop(connection, None)
        self._known.pop(connection, None)
        self._slow.pop(connection, None)

    def _close(self, connection: Guest) -> None:
        self.leave(connection)
        connection.cut()


class ResponseSlicer:
    """Writes responses of an application no faster than they are taken, once the application has done with the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive, collect)
        for message in messages:
            await _send(message, send, scope["state"][CONNECTION])


async def _send(message: Message, send: Send, connection: Guest) -> None:
    body = message.get("body", b"")
    if len(body) <= SLICE_BYTES:
        await send(message)
        return
    for start in range(0, len(body), SLICE_BYTES):
        end = min(start + SLICE_BYTES, len(body))
        connection.unsent_bytes = len(body) - end
        more = end < len(body) or message.get("more_body", False)
        await send({**message, "body": body[start:end], "more_body": more})
        await asyncio.sleep(0)  # it is written in the loop's next turn


class GatheringTransport(asyncio.Transport):
    """Combines all writes of one loop iteration into one."""

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
    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size()

    @override
    def pause_reading(self) -> None:
        self._inner.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._inner.resume_reading()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
