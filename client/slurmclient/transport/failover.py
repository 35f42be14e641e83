"""HTTP exchanges with slurmrestd: tokens, deadlines, fail-over, and whether a request that failed had left us."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from slurmclient.errors import LostReply, Unavailable
from slurmclient.transport.exchange import Reply, Request, Server
from slurmclient.transport.jwt import user_of
from slurmclient.transport.tls import Tls
from slurmclient.transport.tokens import TokenSource

REFUSED_TOKEN: Final = (401, 511)
"""slurmrestd's refusal, and slurmctld's; an expired token gets the latter."""


OK: Final = 200


class Transport:
    """Sends requests to the first server that can be reached; knows nothing of what they mean."""

    def __init__(
        self,
        urls: Sequence[str],
        token: TokenSource | None,
        tls: Tls | None,
        *,
        connections: int,
        timeout_s: float,
    ) -> None:
        self._token = token
        self._servers = [
            Server(url, tls, connections=connections, timeout_s=timeout_s) for url in urls
        ]
        self._current = 0

    async def close(self) -> None:
        """Close all connections."""
        for server in self._servers:
            await server.close()

    @property
    def address(self) -> str:
        """Of the server that was reached last."""
        return self._servers[self._current].address

    async def user(self) -> str:
        """Say whose token is sent; "" if it does not say, or there is none."""
        return user_of(await self._token.token()) if self._token else ""

    def avoid_current(self) -> None:
        """Begin with the next server: this one does not answer."""
        self._current = (self._current + 1) % len(self._servers)

    async def exchange(self, request: Request) -> Reply:
        """Send a request and read the answer.

        Raises:
            Unauthorized: there is no token to send.
            Unavailable: nothing was sent, to no server.
            LostReply: it was sent, and no whole answer came back.
        """
        async with self.open(request, is_streamed=False) as response:
            return Reply(status=response.status, body=await response.read())

    @asynccontextmanager
    async def open(
        self, request: Request, *, is_streamed: bool = True
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """`exchange` for an answer that is read piece by piece; the deadline is then each piece's."""
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
        left = len(self._servers)
        while left:
            left -= 1
            answered = False
            try:
                async with self._servers[self._current].exchange(
                    request, headers, is_streamed=is_streamed
                ) as response:
                    answered = True
                    yield response
                    return
            except Unavailable as error:
                if answered or isinstance(error, LostReply) or not left:
                    raise
                self.avoid_current()


def _headers(request: Request, token: str) -> dict[str, str]:
    headers = {"X-SLURM-USER-NAME": request.user} if request.user else {}
    if request.content is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["X-SLURM-USER-TOKEN"] = token
    return headers
