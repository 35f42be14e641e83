"""HTTP exchanges with slurmrestd: tokens, deadlines, fail-over, and whether a request that failed had left us."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from slurmclient.errors import LostReply, Unavailable
from slurmclient.transport.connection import connector
from slurmclient.transport.tls import Tls
from slurmclient.transport.tokens import TokenSource, user_of

REFUSED_TOKEN: Final = (401, 511)
"""slurmrestd's refusal, and slurmctld's; an expired token gets the latter."""
OK: Final = 200
NOT_FOUND: Final = 404

_NO_ANSWER: Final = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError
_NOT_CONNECTED: Final = (
    aiohttp.InvalidURL,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent."""

    operation: str
    method: str
    path: str
    """Percent-encoded, without the query."""
    query: Sequence[tuple[str, str]] = ()
    content: bytes | None = None
    user: str = ""
    """As whom it is meant, where that is not the token's own user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of whatever status, read to its end."""

    status: int
    body: bytes

    @property
    def is_unknown_path(self) -> bool:
        """There is no such path at the server, which says so in text; an unknown job is 404 with JSON."""
        return self.status == NOT_FOUND and not self.body.lstrip().startswith(b"{")


class Server:
    """One slurmrestd."""

    def __init__(self, url: str, tls: Tls | None, *, connections: int, timeout_s: float) -> None:
        """Open a pool; nothing is sent.

        Args:
            url: `http://host:6820`, `https://…`, or `unix:///run/slurmrestd.socket`.
            tls: For https.
            connections: At most so many.
            timeout_s: For one exchange.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https", "unix"} or not (parts.hostname or parts.path):
            raise ValueError(f"expected http://HOST:PORT, https://… or unix:///PATH, got {url!r}")
        self._tls = tls or (Tls() if parts.scheme == "https" else None)
        is_unix = parts.scheme == "unix"
        self._base = "http://localhost" if is_unix else url.rstrip("/")
        # For people: without a password that a proxy may want.
        self.address = url if is_unix else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._timeout_s = timeout_s
        self._session = aiohttp.ClientSession(
            connector=connector(
                limit=connections,
                tls=self._tls.context if self._tls else None,
                socket=parts.path if is_unix else "",
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "slurm-client"},
            # Half of the deadline: then a server that cannot be reached is told from a reply that got lost.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=timeout_s / 2, sock_read=timeout_s
            ),
        )
        # aiohttp repeats a GET or DELETE whose connection breaks; some of Slurm's change something.
        self._session._retry_connection = False  # noqa: SLF001  # there is no public way

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()

    @asynccontextmanager
    async def exchange(
        self, request: Request, headers: dict[str, str], *, is_streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the body of the answer is read inside.

        Raises:
            Unavailable: nothing was sent.
            LostReply: it was sent, and no whole answer came back.
        """
        query = f"?{urlencode(request.query)}" if request.query else ""
        where = f"slurmrestd at {self.address}"
        try:
            async with (
                asyncio.timeout(None if is_streamed else self._timeout_s),
                self._session.request(
                    request.method,
                    URL(f"{self._base}{request.path}{query}", encoded=True),
                    data=request.content,
                    headers=headers,
                    allow_redirects=False,
                ) as response,
            ):
                yield response
        except _NO_ANSWER as error:
            if isinstance(error, _NOT_CONNECTED):
                self._reload()
                raise Unavailable(request.operation, f"cannot reach {where}: {error}") from error
            if isinstance(error, TimeoutError):
                words = f"no answer from {where} in {self._timeout_s:g} s"
                raise LostReply(request.operation, words) from error
            self._reload()
            # Not what the error says of itself: aiohttp's may repeat the request, token and all.
            raise LostReply(
                request.operation, f"{where} broke off ({type(error).__name__})"
            ) from error

    def _reload(self) -> None:
        if self._tls:
            self._tls.reload()


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
