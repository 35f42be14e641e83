"""Sending requests to the first of several servers that can be reached, with a token."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, Protocol, TypeVar

import aiohttp

from slurmclient.errors import LostReply, Unavailable
from slurmclient.transport.exchange import Reply, Request, Server, check_url, read_body
from slurmclient.transport.jwt import user_of
from slurmclient.transport.tls import Tls
from slurmclient.transport.tokens import TokenSource, check_token

T = TypeVar("T")

REFUSED_TOKEN: Final = (401, 511)
"""The statuses of a refused token: slurmrestd's own, and slurmctld's (such as for an expired one)."""

MOST_BYTES: Final = 1 << 30
"""The longest answer to take: 200 000 jobs with all their fields."""


class Sender(Protocol):
    """The interface of a `Transport`, as the callers of operations use it."""

    async def close(self) -> None:
        """Close all connections."""

    async def user(self) -> str:
        """Return the user of the token."""

    async def exchange(self, request: Request) -> Reply:
        """Send a request and read its answer."""

    def open(self, request: Request) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request; the block reads the answer piece by piece."""

    async def rest(self, operation: str, response: aiohttp.ClientResponse) -> bytes:
        """Read all of an opened answer."""

    def avoid(self, server: int) -> None:
        """Send the next requests to another server."""


class Transport:
    """Sends requests without interpreting them."""

    def __init__(
        self,
        urls: Sequence[str],
        token: TokenSource | None,
        tls: Tls | None,
        *,
        connections: int,
        timeout_s: float,
        user_agent: str = "slurm-client",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Create the connection pools, one for each server, the preferred one first; nothing is sent.

        Args:
            token: The source of tokens; None to send none.
            tls: Certificates for https; None to trust the system's CAs.
            most_bytes: The longest answer to take; a streamed one has no limit.

        Raises:
            ValueError: If a URL has another form than `Server` expects.
        """
        for url in urls:  # before the first pool is open, as an error would leave it open
            check_url(url)
        self._token = token
        self._most_bytes = most_bytes
        self._servers = [
            Server(url, tls, connections=connections, timeout_s=timeout_s, user_agent=user_agent)
            for url in urls
        ]
        self._current = 0
        """The index of the server that is used until it fails."""

    async def close(self) -> None:
        """Close all connections."""
        for server in self._servers:
            await server.close()

    async def user(self) -> str:
        """Return the user of the token, "" without one; raise Unauthorized if the source fails."""
        return user_of(await self._token.token()) if self._token else ""

    async def exchange(self, request: Request) -> Reply:
        """Send a request and read its answer.

        It goes to the server that answered last, and to the others in turn while none can be
        reached. A request that may have been sent is never sent to another server. A refused token is
        replaced once, if the source has another one by then.

        Raises:
            Unauthorized: If there is no token to send.
            Unavailable: If the request was sent to no server.
            LostReply: If it was sent and no complete answer came back.
            Malformed: If the answer is too long.
        """

        async def send(index: int, headers: dict[str, str]) -> Reply:
            server = self._servers[index]
            status, body = await server.send(request, headers, most_bytes=self._most_bytes)
            return Reply(status=status, body=body, server=index)

        token = await self._token.token() if self._token else ""
        reply = await self._reach(request, token, send)
        if reply.status in REFUSED_TOKEN and (renewed := await self._other_than(token)):
            reply = await self._reach(request, renewed, send)
        return reply

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request as `exchange` does; the block reads the answer piece by piece.

        The deadline applies to each piece of the answer. The block may also raise `LostReply`.
        """
        async with AsyncExitStack() as opened:
            used = self._current

            async def send(index: int, headers: dict[str, str]) -> aiohttp.ClientResponse:
                nonlocal used
                used = index
                return await opened.enter_async_context(self._servers[index].open(request, headers))

            token = await self._token.token() if self._token else ""
            response = await self._reach(request, token, send)
            if response.status in REFUSED_TOKEN and (renewed := await self._other_than(token)):
                response = await self._reach(request, renewed, send)
            try:
                yield response
            except (aiohttp.ClientError, OSError):
                self.avoid(used)  # the server's own context turns it into our error
                raise

    async def rest(self, operation: str, response: aiohttp.ClientResponse) -> bytes:
        """Read all of an opened answer; raise Malformed if it is too long."""
        return await read_body(operation, response, self._most_bytes)

    def avoid(self, server: int) -> None:
        """Send the next requests to another server, unless they already go there."""
        if server == self._current:
            self._current = (server + 1) % len(self._servers)

    async def _other_than(self, refused: str) -> str:
        """Return another token than the refused one; "" if there is none."""
        other = await self._token.token(refused=refused) if self._token else ""
        return "" if other == refused else other

    async def _reach(
        self, request: Request, token: str, send: Callable[[int, dict[str, str]], Awaitable[T]]
    ) -> T:
        headers = _headers(request, token)
        failures: list[Unavailable] = []
        first = self._current
        for number in range(len(self._servers)):
            index = (first + number) % len(self._servers)
            try:
                return await send(index, headers)
            except Unavailable as error:
                self.avoid(index)
                if isinstance(error, LostReply):
                    raise
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise Unavailable(request.operation, "; ".join(failure.words for failure in failures))


def _headers(request: Request, token: str) -> dict[str, str]:
    headers = {"X-SLURM-USER-NAME": request.user} if request.user else {}
    if request.content is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["X-SLURM-USER-TOKEN"] = check_token(token)
    return headers
