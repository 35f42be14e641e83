"""Send requests to the slurmrestd of a Controller, at the address that its objects give at the time."""

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
from slurmruntime.endpoints.finding import ServerList
from slurmruntime.process.clock import Clock
from slurmruntime.values.errors import PEER_ERRORS
from slurmruntime.values.faults import Refusal

READ_AGAIN_S: Final = 30.0
"""How long until a RestApi that appears, vanishes or gets another port or CA is noticed."""

FindServers = Callable[[], Awaitable[ServerList]]
OpenTransport = Callable[[ServerList], Transport]


@dataclass(slots=True)
class _Link:
    """A transport, and the number of requests under way on it."""

    servers: ServerList
    transport: Transport
    users: int = 0


class ControllerTransport:
    """A transport to servers that may move: opened at the first request, and again when they have moved."""

    def __init__(self, find: FindServers, opens: OpenTransport, clock: Clock) -> None:
        """Read nothing yet. `find` raises Refusal and PeerError, `opens` UnusableTls."""
        self._find = find
        self._opens = opens
        self._clock = clock
        self._link: _Link | None = None
        self._read_again_at_s = float("-inf")
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections."""
        link, self._link = self._link, None
        if link is not None:
            await link.transport.close()

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
        if self._link is None:
            raise Unavailable(operation, "the connection is closed")
        return await self._link.transport.rest(operation, response)

    def avoid(self, server: int) -> None:
        """Send the next requests to another server."""
        if self._link is not None:
            self._link.transport.avoid(server)

    @asynccontextmanager
    async def _held(self, request: Request) -> AsyncIterator[Transport]:
        """Keep a transport open while a request is under way on it."""
        link = await self._current(request.operation)
        link.users += 1
        try:
            yield link.transport
        except Unavailable:
            self._read_again_at_s = float("-inf")  # it may have moved
            raise
        finally:
            link.users -= 1
            if link is not self._link and not link.users:
                await link.transport.close()

    async def _current(self, operation: str) -> _Link:
        async with self._reading:
            link, now_s = self._link, self._clock.monotonic()
            if link is not None and now_s < self._read_again_at_s:
                return link
            try:
                servers = await self._find()
            except Refusal as refusal:
                raise Unavailable(operation, refusal.text) from refusal
            except PEER_ERRORS as error:
                if link is not None:
                    return link
                raise Unavailable(operation, f"cannot look for slurmrestd: {error}") from error
            self._read_again_at_s = now_s + READ_AGAIN_S
            if link is None or link.servers != servers:
                try:
                    self._link = _Link(servers, self._opens(servers))
                except UnusableTls as error:
                    if link is not None:
                        return link
                    raise Unavailable(operation, str(error)) from error
                if link is not None and not link.users:
                    await link.transport.close()
            assert self._link is not None  # noqa: S101  # set above, or known
            return self._link
