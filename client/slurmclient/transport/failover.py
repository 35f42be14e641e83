"""Sending requests to the first of several servers that can be reached, with a token."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from slurmclient.errors import LostReply, Unavailable
from slurmclient.transport.exchange import Reply, Request, Server, check_url
from slurmclient.transport.jwt import user_of
from slurmclient.transport.tls import Tls
from slurmclient.transport.tokens import TokenSource

REFUSED_TOKEN: Final = (401, 511)
"""The statuses of a refused token: slurmrestd's own, and slurmctld's (such as for an expired one)."""


class Transport:
    """Sends requests to the first server that can be reached."""

    def __init__(
        self,
        urls: Sequence[str],
        token: TokenSource | None,
        tls: Tls | None,
        *,
        connections: int,
        timeout_s: float,
    ) -> None:
        """Create the connection pools; nothing is sent.

        Args:
            urls: The servers, the preferred one first; see `Server`.
            token: The source of tokens; None to send none.
            tls: Certificates for https; None to trust the system's CAs.
            connections: The maximum number of connections to each server.
            timeout_s: The deadline for one exchange.

        Raises:
            ValueError: If a URL has another form than `Server` expects.
        """
        for url in urls:  # before a pool is open that nobody would close
            check_url(url)
        self._token = token
        self._servers = [
            Server(url, tls, connections=connections, timeout_s=timeout_s) for url in urls
        ]
        self._preferred = 0
        """The index of the server to try first."""

    async def close(self) -> None:
        """Close all connections."""
        for server in self._servers:
            await server.close()

    async def user(self) -> str:
        """Return the user of the token; "" if there is no token, or it names no user.

        Raises:
            Unauthorized: If the source has no token.
        """
        return user_of(await self._token.token()) if self._token else ""

    async def exchange(self, request: Request) -> Reply:
        """Send a request and read its answer.

        Raises:
            Unauthorized: If there is no token to send.
            Unavailable: If the request was sent to no server.
            LostReply: If it was sent and no complete answer came back.
        """
        async with self.open(request, is_streamed=False) as response:
            return Reply(status=response.status, body=await response.read())

    @asynccontextmanager
    async def open(
        self, request: Request, *, is_streamed: bool = True
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the block reads the answer.

        A refused token is replaced once, if the source has another one by then. With `is_streamed`
        the deadline applies to each piece of the answer.

        Raises:
            Unauthorized: If there is no token to send.
            Unavailable: If the request was sent to no server.
            LostReply: If it was sent and no complete answer came back.
        """
        refused = ""
        for _ in range(2):
            token = await self._token.token(refused=refused) if self._token else ""
            async with self._reached(
                request, _headers(request, token), is_streamed=is_streamed
            ) as response:
                if not refused and response.status in REFUSED_TOKEN and self._token:
                    refused = token
                    if await self._token.token(refused=refused) != refused:
                        continue
                yield response
                return

    @asynccontextmanager
    async def _reached(
        self, request: Request, headers: dict[str, str], *, is_streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Try each server once; prefer the one that answers, or the one after a lost reply."""
        count = len(self._servers)
        first = self._preferred
        for number in range(count):
            index = (first + number) % count
            try:
                async with self._servers[index].exchange(
                    request, headers, is_streamed=is_streamed
                ) as response:
                    self._preferred = index
                    yield response
                    return
            except LostReply:
                self._preferred = (index + 1) % count
                raise
            except Unavailable:
                if number == count - 1:
                    raise


def _headers(request: Request, token: str) -> dict[str, str]:
    headers = {"X-SLURM-USER-NAME": request.user} if request.user else {}
    if request.content is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["X-SLURM-USER-TOKEN"] = token
    return headers
