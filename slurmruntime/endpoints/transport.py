"""Sending requests to the slurmrestd of a Controller, wherever its objects say that it is at the time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from slurmclient import UnusableTls
from slurmclient.errors import Unavailable
from slurmclient.transport.exchange import Reply, Request
from slurmclient.transport.failover import Transport
from slurmruntime.endpoints import signing
from slurmruntime.endpoints.finding import KnownServers
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Refused

LOOK_AGAIN_S: Final = 30.0
"""A RestApi that comes, goes or gets another port or CA is noticed after so long."""

FindServers = Callable[[], Awaitable[KnownServers | Refused]]
Opens = Callable[[KnownServers], Transport]


@dataclass(slots=True)
class _Way:
    """A transport, and how many requests are under way on it."""

    servers: KnownServers
    transport: Transport
    users: int = 0


class FoundTransport:
    """A transport to servers that may move: opened at the first request, and anew when they have moved."""

    def __init__(self, find: FindServers, opens: Opens, clock: Clock) -> None:
        """Prepare it; nothing is read.

        Args:
            find: reads where the servers are; raises PeerError.
            opens: opens a transport to them; raises UnusableTls.
            clock: of the process.
        """
        self._find = find
        self._opens = opens
        self._clock = clock
        self._way: _Way | None = None
        self._looks_at_s = float("-inf")
        self._looking = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections."""
        way, self._way = self._way, None
        if way is not None:
            await way.transport.close()

    async def user(self) -> str:
        """Return the user of the token: there is one token for all servers."""
        return signing.USER

    async def exchange(self, request: Request) -> Reply:
        """Send a request and read its answer; like `Transport.exchange`."""
        async with self._held(request) as transport:
            return await transport.exchange(request)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; like `Transport.open`."""
        async with self._held(request) as transport, transport.open(request) as response:
            yield response

    async def rest(self, operation: str, response: aiohttp.ClientResponse) -> bytes:
        """Read all of an opened answer; like `Transport.rest`."""
        if self._way is None:
            raise Unavailable(operation, "the connection is closed")
        return await self._way.transport.rest(operation, response)

    def avoid(self, server: int) -> None:
        """Send the next requests to another server."""
        if self._way is not None:
            self._way.transport.avoid(server)

    @asynccontextmanager
    async def _held(self, request: Request) -> AsyncIterator[Transport]:
        """Keep a transport open while a request is under way on it."""
        way = await self._current(request.operation)
        way.users += 1
        try:
            yield way.transport
        except Unavailable:
            self._looks_at_s = float("-inf")  # it may have moved
            raise
        finally:
            way.users -= 1
            if way is not self._way and not way.users:
                await way.transport.close()

    async def _current(self, operation: str) -> _Way:
        async with self._looking:
            way, now_s = self._way, self._clock.monotonic()
            if way is not None and now_s < self._looks_at_s:
                return way
            try:
                found = await self._find()
            except PeerError as error:
                if way is not None:
                    return way
                raise Unavailable(operation, f"cannot look for slurmrestd: {error}") from error
            if isinstance(found, Refused):
                raise Unavailable(operation, found.text)
            self._looks_at_s = now_s + LOOK_AGAIN_S
            if way is None or way.servers != found:
                try:
                    self._way = _Way(found, self._opens(found))
                except UnusableTls as error:
                    if way is not None:
                        return way
                    raise Unavailable(operation, str(error)) from error
                if way is not None and not way.users:
                    await way.transport.close()
            assert self._way is not None  # noqa: S101  # set above, or known
            return self._way
